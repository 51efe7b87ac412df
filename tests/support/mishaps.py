"""What befalls a world of owners, drawn from a seed; each mishap says whether it happened."""

from dataclasses import replace

from egress.model import Selector

STRANGER = "02:00:00:00:00:99"
PAUSES = (0.3, 0.8, 1.5, 2.2, 2.6, 3.2, 4.5, 8.0, 20.0)
CUTS = (0.1, 0.3, 0.45, 0.6, 1.0, 3.0, 8.0, 20.0)
RESTS = (0.02, 0.1, 0.3, 0.7, 1.5, 3.0, 6.0)


def host_death(world, rng):
    victims = [host for host in world.hosts if host.up]
    if sum(host.running for host in world.hosts) > 2:
        world.kill_host(rng.choice(victims))


def boot(world, _):
    for host in world.hosts:
        if not host.up:
            world.boot_host(host)


def crash(world, rng):
    if daemons := [host for host in world.hosts if host.owner]:
        world.end_daemon(rng.choice(daemons))


def restart(world, _):
    for host in world.hosts:
        if host.up and host.owner is None:
            world.start_daemon(host)


def bounce(world, rng):
    """Killed, and started again by the service manager."""
    if daemons := [host for host in world.hosts if host.owner]:
        host = rng.choice(daemons)
        world.end_daemon(host)
        world.run(rng.choice((0.05, 0.3, 1.0, 3.5)))
        if host.up and host.owner is None:
            world.start_daemon(host)


def upgrade(world, rng):
    """A restart that keeps the addresses, of a host that may die meanwhile."""
    daemons = [host for host in world.hosts if host.running and not host.owner.leaving]
    if not daemons:
        return
    host = rng.choice(daemons)
    host.owner.restart()
    world.run(rng.choice((0.3, 1.0, 3.0, 8.0)))
    if host.up and host.owner is None:
        world.start_daemon(host)


def pause(world, rng):
    if running := [host for host in world.hosts if host.running]:
        world.pause(rng.choice(running), rng.choice(PAUSES) * rng.uniform(0.8, 1.2))


def drain(world, rng):
    if daemons := [host for host in world.hosts if host.owner]:
        world.drain(rng.choice(daemons), wish=True)


def undrain(world, _):
    for host in world.hosts:
        if host.owner and host.owner.draining and not host.owner.leaving:
            world.drain(host, wish=False)


def leave(world, rng):
    running = [host for host in world.hosts if host.running]
    if len(running) > 2:
        world.leave(rng.choice(running))


def gossip_cut(world, rng):
    """The daemons of two sides hear nothing of each other; the LAN is whole."""
    _split(world, rng, wire=False)
    if rng.random() < 0.3:
        pause(world, rng)
        world.run(rng.choice(RESTS))
    world.heal()


def segment_cut(world, rng):
    """The switch falls in two: neither gossip nor questions pass; the gateway is on one side."""
    _split(world, rng, wire=True)
    world.heal()


def _split(world, rng, *, wire):
    world.split(rng.sample(world.hosts, rng.randint(1, len(world.hosts) - 1)), wire=wire)
    world.run(rng.choice(CUTS) * rng.uniform(0.8, 1.2))


def stranger(world, rng):
    ip = rng.choice(world.ips)
    if not world.carriers(ip):
        world.strangers[ip] = STRANGER
        world.log("stranger", "comes", ip)


def stranger_goes(world, _):
    world.strangers.clear()


def deletion(world, rng):
    """Another program removes an address; not from a host whose daemon is stopped (see below)."""
    ip = rng.choice(world.ips)
    if all(host.running for host in world.carriers(ip)):
        world.delete(ip)


def reload_storm(world, rng):
    """Selectors change, egresses go and come back, several times within a second."""
    whole = world.egresses
    for _ in range(rng.randint(1, 6)):
        kept = [each for each in whole if rng.random() < 0.8] or list(whole)
        half = rng.choice(("odd", "even", None))
        narrow = Selector() if half is None else Selector(labels=(("half", half),))
        world.reload(replace(each, selector=rng.choice((Selector(), narrow))) for each in kept)
        world.run(rng.uniform(0.01, 0.6))
    world.reload(whole)


PLANNED = (drain, undrain, leave, restart, reload_storm, upgrade)
DEATHS = (host_death, boot, crash, restart, bounce, deletion)
STALLS = (pause, pause, bounce, upgrade, restart)
CUTS_OF_GOSSIP = (gossip_cut, gossip_cut, pause, drain, undrain)
CUTS_OF_SEGMENT = (segment_cut, segment_cut, drain, undrain, leave, restart)
STRANGERS = (stranger, stranger_goes)
ALL = (*PLANNED, *DEATHS, *STALLS, *CUTS_OF_GOSSIP, *STRANGERS)
"""All at once, but no cut of the segment: with stalled or killed daemons that has exceptions."""


def trouble(world, rng, kinds, seconds):
    """Mishaps of these kinds, with random rests between them."""
    end = world.now + seconds
    while world.now < end:
        world.run(rng.choice(RESTS) * rng.uniform(0.5, 1.5))
        rng.choice(kinds)(world, rng)


def peace(world, seconds):
    """Everything is mended, and time passes."""
    world.heal()
    world.strangers.clear()
    world.run(25)
    undrain(world, None)
    boot(world, None)
    restart(world, None)
    world.run(seconds)
