"""A daemon in a namespace of its own, under a service manager that listens."""

import os
import socket
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

from support.namespaces import Segment

ROOT = Path(__file__).resolve().parents[2]
WAYOUT = [sys.executable, "-I", "-m", "agent"]


@contextmanager
def managed(folder, *words, more="", program=(*WAYOUT, "run")):
    """A daemon under a service manager that listens; its process, its file, and what it said."""
    with (
        Segment("a", prefix="wr") as segment,
        socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager,
    ):
        manager.bind(str(folder / "notify"))
        manager.settimeout(20)
        path = folder / "config.yaml"
        path.write_text(
            f"version: 1\nnode: {{name: n1, address: {segment['a'].ip4}}}\n"
            f"api: {{socket: {folder}/sock, http_listen: off}}\n"
            f"state: {{dir: {folder}/state, runtime_dir: {folder}/run}}\n"
            f"egress: {{egresses: {{a: {{egress_ip: 10.77.0.201}}}}}}\n{more}"
        )
        environment = os.environ | {
            "NOTIFY_SOCKET": str(folder / "notify"),
            "PYTHONPATH": f"{ROOT}:{ROOT}/tests",
        }
        daemon = segment["a"].start(
            *program,
            "--config",
            str(path),
            *words,
            env=environment,
            stderr=subprocess.DEVNULL,
        )
        try:
            yield daemon, path, manager
        finally:
            daemon.terminate()
            daemon.wait(20)


def heard(manager, first):
    """The fields of the next datagram that begins so."""
    while True:
        lines = manager.recv(4096).decode().split("\n")
        if lines[0] == first:
            return dict(line.split("=", 1) for line in lines)
