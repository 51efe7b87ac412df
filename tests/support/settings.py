"""Configurations for tests: text in, settings or complaints out, and a part that behaves."""

from textwrap import dedent

from config.documents import Text
from config.parse import Surroundings, parse
from config.problems import ConfigError
from config.subscribers import RefusalError

MAIN = "config.yaml"


def parsed(main, *, dropins=(), **around):
    """Loaded settings; `dropins` are (name, text) pairs, `main` may begin indented."""
    data = main if isinstance(main, bytes) else dedent(main).encode()
    files = [Text(MAIN, data)]
    files += [Text(name, dedent(text).encode()) for name, text in dropins]
    return parse(files, Surroundings(**{"hostname": "n1", **around}))


def complaints(main, **around):
    """Every problem as the operator reads it; fails if there is none."""
    try:
        parsed(main, **around)
    except ConfigError as error:
        return [str(each) for each in error.problems]
    raise AssertionError("the configuration was taken")


class Part:
    """A subscriber with a value of its own, which can be told to fail at one step."""

    def __init__(self, name, sections, *, rebinds=(), fails=None, value=None):
        self.name = name
        self.sections = frozenset(sections)
        self.rebinds = frozenset(rebinds)
        self.fails = fails
        self.value = value
        self.steps = []

    def _step(self, step):
        self.steps.append(step)
        if self.fails == step:
            raise RefusalError(f"no {step} today")

    async def prepare(self, update):
        self._step("prepare")
        return (self.value, update.new)

    def commit(self, token):
        self.value = token[1]
        self._step("commit")

    def rollback(self, token):
        self.value = token[0]
        self._step("rollback")

    async def finalize(self, _token):
        self._step("finalize")
