"""What the doctor finds out by trying: seeds, ports, and the whole round on this host."""

import asyncio
import socket

from agent.doctor import network
from agent.doctor.examination import ORDER, examine
from agent.sysctls import Severity
from gossip.peer import Address


async def test_seeds_are_dialled_and_what_happens_is_told():
    server = await asyncio.start_server(lambda _, writer: writer.close(), "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        there, gone = Address("127.0.0.1", port), Address(*closed.getsockname())
        answers, refuses = await network.dial([there, gone])
    server.close()
    await server.wait_closed()

    assert (answers.severity, refuses.severity) == (Severity.OK, Severity.NOTE)
    assert "no daemon runs there" in refuses.why


def test_a_port_that_another_program_has_is_an_error():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as other:
        other.bind(("127.0.0.1", 0))
        taken = Address("127.0.0.1", other.getsockname()[1])

        assert network.of_port(taken).severity is Severity.ERROR

    assert network.of_port(taken).severity is Severity.OK


async def test_a_whole_round_comes_to_an_end_and_tells_the_worst_first(tmp_path):
    path = tmp_path / "config.yaml"
    path.write_text("version: 1\negres: {}\n")

    found = await examine(str(path), running=True)

    ranks = [ORDER.index(each.severity) for each in found]
    assert ranks == sorted(ranks)
    assert found[0].severity is Severity.ERROR
    assert any("egres: unknown key" in each.what for each in found)
    assert all(each.what and each.why for each in found)
