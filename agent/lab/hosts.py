"""Hosts as network namespaces on one bridge, as root or through a user namespace.

Every namespace belongs to a keeper, a process that sleeps in it; whoever wants in enters by the
keeper's pid (nsenter). So nothing has a name on the machine that could collide with another's,
and ending the keepers ends the segment. Rootless, one more keeper owns the user namespace in
which the others are made. The same commands serve both.

Unplugging a host takes its port on the bridge down: the host loses its carrier (K06b).
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

from agent.lab.processes import LabError, Process, end, environment, path, spawn_ready

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from agent.lab.addresses import Place

TOOLS = {"ip": "iproute2", "nsenter": "util-linux", "unshare": "util-linux"}
SWITCH = "switch"
READY = ("sh", "-c", "echo ready; exec sleep infinity >/dev/null 2>&1")
PATIENCE = 20.0
"""Seconds for one command; a machine under load takes a while to make a hundred links."""
INTERFACE = "eth0"
RESTRICTIONS = {
    "/proc/sys/kernel/unprivileged_userns_clone": "0",
    "/proc/sys/kernel/apparmor_restrict_unprivileged_userns": "1",
    "/proc/sys/user/max_user_namespaces": "0",
}
"""Settings that keep ordinary users from user namespaces, with the value that does."""


def require_tools() -> None:
    """LabError if a program is missing without which there is no lab."""
    missing = {package for tool, package in TOOLS.items() if not find(tool)}
    if missing:
        names = " ".join(sorted(missing))
        raise LabError(f"programs are missing, install them: apt-get install {names}")


def find(tool: str) -> str | None:
    """Where a program is, system folders included."""
    return shutil.which(tool, path=path())


class Network:
    """The segment of one lab: keepers by name, and the way into each namespace.

    `keepers` is what is there already (from a record); `user` is the keeper of the user
    namespace, None as root.
    """

    def __init__(
        self, keepers: dict[str, Process] | None = None, user: Process | None = None
    ) -> None:
        self.keepers = keepers if keepers is not None else {}
        self.user = user

    # -- making ----------------------------------------------------------------------------

    def open(self, names: Iterable[str], made: Callable[[], None]) -> None:
        """Make a namespace for the switch and for each name; `made` is called after each step.

        LabError, with what to do, where neither root nor user namespaces give us any.
        """
        require_tools()
        try:
            self._keep(SWITCH)
        except LabError as refused:
            self._open_user(refused)
        made()
        for name in names:
            self._keep(name)
            made()

    def wire(self, places: Iterable[Place], prefix: int) -> None:
        """Make the bridge, and hang every host on it with its own addresses."""
        self.batch(
            SWITCH,
            ["link add br0 type bridge mcast_snooping 0", "link set br0 up", "link set lo up"],
        )
        self.attach(places, prefix)

    def attach(self, places: Iterable[Place], prefix: int) -> None:
        """Hang hosts on the bridge."""
        every = list(places)
        lines: list[str] = []
        for place in every:
            link, pid = port(place.name), self.keepers[place.name].pid
            lines += [
                f"link add {link} type veth peer name {INTERFACE} netns {pid}",
                f"link set {link} master br0",
                f"link set {link} up",
            ]
        self.batch(SWITCH, lines)
        for place in every:
            self.batch(place.name, _settling(place, prefix))

    def revive(self, place: Place, prefix: int) -> None:
        """A host that was destroyed comes back: a fresh namespace on the bridge."""
        # Its port is there still if somebody has a shell in the old namespace.
        self.run(SWITCH, ("ip", "link", "del", port(place.name)), check=False)
        self._keep(place.name)
        self.attach([place], prefix)

    def destroy(self, name: str) -> None:
        """The namespace of an unplugged host goes, with everything that its kernel knew."""
        end([self.keepers.pop(name)])

    # -- faults ----------------------------------------------------------------------------

    def unplug(self, name: str) -> None:
        """The host's port on the bridge goes down."""
        self.run(SWITCH, ("ip", "link", "set", port(name), "down"))

    def plug(self, name: str) -> None:
        """The host's port on the bridge comes up."""
        self.run(SWITCH, ("ip", "link", "set", port(name), "up"))

    def plugged(self, name: str) -> bool:
        """Whether the port of a host is up."""
        shown = self.run(SWITCH, ("ip", "-o", "link", "show", "dev", port(name)), check=False)
        return "UP" in shown.partition("<")[2].partition(">")[0].split(",")

    # -- going in --------------------------------------------------------------------------

    def inside(self, name: str, argv: Sequence[str]) -> list[str]:
        """The command line that runs `argv` in a host; its process is that of `argv`."""
        keeper = self.keepers.get(name)
        if keeper is None or not keeper.alive:
            raise LabError(f"there is no host {name!r} in this lab, 'wayout lab status' lists them")
        user = ("--user", "--preserve-credentials") if self.user is not None else ()
        return ["nsenter", "--target", str(keeper.pid), *user, "--net", "--", *argv]

    def run(self, name: str, argv: Sequence[str], *, feed: str = "", check: bool = True) -> str:
        """Run a command in a host; its standard output, or LabError with its complaint."""
        try:
            done = subprocess.run(  # noqa: S603 - our own tools, by argument vector
                self.inside(name, argv),
                input=feed,
                env=environment(),
                capture_output=True,
                text=True,
                check=False,
                timeout=PATIENCE,
            )
        except subprocess.TimeoutExpired:
            raise LabError(f"{argv[0]} in {name} took more than {PATIENCE:g} s") from None
        if done.returncode and check:
            why = " ".join(done.stderr.split()) or f"exit code {done.returncode}"
            raise LabError(f"'{' '.join(argv)}' in {name} failed, {why}")
        return done.stdout

    def batch(self, name: str, lines: Iterable[str]) -> None:
        """Run several commands of `ip` in one process; the first that fails ends it."""
        self.run(name, ("ip", "-batch", "-"), feed="\n".join(lines) + "\n")

    @property
    def processes(self) -> tuple[Process, ...]:
        """All keepers; that of the user namespace comes last."""
        return (*self.keepers.values(), *([self.user] if self.user else []))

    def _keep(self, name: str) -> None:
        argv = ["unshare", "--net", "--", *READY]
        if self.user is not None:
            entry = ["nsenter", "--target", str(self.user.pid), "--user", "--preserve-credentials"]
            argv = [*entry, "--", *argv]
        self.keepers[name] = spawn_ready(argv, patience=PATIENCE)

    def _open_user(self, refused: LabError) -> None:
        argv = ["unshare", "--user", "--map-root-user", "--", *READY]
        try:
            self.user = spawn_ready(argv, patience=PATIENCE)
            self._keep(SWITCH)
            self.run(SWITCH, ("ip", "link", "set", "lo", "up"))
        except LabError as error:
            raise LabError(_advice(refused, error)) from error


def _advice(refused: LabError, error: LabError) -> str:
    """What to do where no namespaces are to be had."""
    if os.geteuid() == 0:
        return (
            f"cannot make network namespaces although we are root, {refused}, "
            "a container needs --privileged (or --cap-add SYS_ADMIN --cap-add NET_ADMIN)"
        )
    for file, value in RESTRICTIONS.items():
        setting = Path(file)
        if setting.exists() and setting.read_text().strip() == value:
            name = file.removeprefix("/proc/sys/").replace("/", ".")
            return (
                "ordinary users may not make user namespaces on this machine "
                f"({name} = {value}), run the same command as root or change that setting"
            )
    return f"cannot make namespaces as an ordinary user, {error}, run the same command as root"


def port(name: str) -> str:
    """The end of a host's cable at the switch."""
    return f"p-{name}"


def _settling(place: Place, prefix: int) -> list[str]:
    # No address of the kernel's own making: duplicate address detection would take two seconds.
    return [
        "link set lo up",
        f"link set {INTERFACE} address {place.mac} addrgenmode none",
        f"link set {INTERFACE} up",
        f"addr add {place.ip4}/{prefix} dev {INTERFACE}",
        f"addr add {place.link_local}/64 dev {INTERFACE} nodad",
        f"addr add {place.ip6}/64 dev {INTERFACE} nodad",
    ]
