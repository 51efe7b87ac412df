"""Random edits of a configuration, good and broken, and parts that fail when they are told to."""

from config.subscribers import RefusalError

SECTIONS = (["logging"], ["api", "metrics"], ["gossip"], ["egress", "node", "interfaces"])
STEPS = (None, None, None, "prepare", "commit", "rollback", "finalize")


class MoodyPart:
    """A subscriber that keeps the sections it runs on, and fails at a step if its mood says so.

    A roll-back that fails has done its work first: what is told as inconsistent is not lost.
    """

    def __init__(self, sections, settings):
        self.name = "+".join(sections)
        self.sections = frozenset(sections)
        self.rebinds = frozenset()
        self.moods = frozenset()
        self.running = self._of(settings)
        self.open = 0

    def _of(self, settings):
        return {name: getattr(settings, name) for name in self.sections}

    def _step(self, step):
        if step in self.moods:
            raise RefusalError(f"no {step} today")

    async def prepare(self, update):
        self._step("prepare")
        self.open += 1
        return (self.running, self._of(update.new))

    def commit(self, token):
        self.running = token[1]
        self._step("commit")

    def rollback(self, token):
        self.running = token[0]
        self.open -= 1
        self._step("rollback")

    async def finalize(self, _token):
        self.open -= 1
        self._step("finalize")


def good(rng):
    """A valid file: live changes, and sometimes some that wait or are forbidden."""
    rows = ["version: 1", "node:", "  name: n1"]
    if rng.random() < 0.3:
        rows.append(f"  weight: {rng.randrange(1, 9)}.0")
    rows.append("gossip:")
    rows.append(f"  fanout: {rng.randrange(1, 9)}")
    if rng.random() < 0.3:
        rows.append(f"  bind_port: {rng.randrange(7950, 7960)}")
    if rng.random() < 0.02:
        rows.append("  label: other")
    if rng.random() < 0.3:
        rows += ["logging:", f"  level: {rng.choice(['debug', 'info', 'error'])}"]
    if rng.random() < 0.1:
        rows += ["state:", "  dir: /srv/wayout"]
    rows += ["egress:", "  egresses:"]
    names = [each for each in range(6) if rng.random() < 0.8] or [0]
    rows += [f"    e{each}: {{egress_ip: 10.77.0.{each + 1}}}" for each in names]
    return "\n".join(rows) + "\n"


def broken(rng):
    """A file that somebody's editor, or a full disk, made of a good one."""
    body = good(rng)
    cut = rng.randrange(len(body))
    match rng.randrange(4):
        case 0:
            return body[:cut]
        case 1:
            return body[:cut] + rng.choice(["\t", "[", "}", ": ", "\0", "&a ", "é"]) + body[cut:]
        case 2:
            return body.replace("fanout", "fanot")
        case _:
            return body.replace("10.77.0.", "10.77.0.30", 1)
