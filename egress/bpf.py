"""Classic BPF: programs that let the kernel drop what nobody here wants to hear."""

from __future__ import annotations

import ctypes
import socket
from struct import Struct
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

SO_ATTACH_FILTER = 26
INSTRUCTIONS_MAX = 4096
"""BPF_MAXINSNS of the kernel."""

Instruction = tuple[int, int, int, int]
"""Operation, jump if true, jump if false, constant."""

_INSTRUCTION = Struct("=HBBI")
_PROGRAM = Struct("@HP")


def attach(listener: socket.socket, program: Sequence[Instruction]) -> None:
    """From now on `listener` hears only what `program` accepts; OSError if the kernel refuses."""
    assert 0 < len(program) <= INSTRUCTIONS_MAX
    code = ctypes.create_string_buffer(b"".join(_INSTRUCTION.pack(*each) for each in program))
    pointer = _PROGRAM.pack(len(program), ctypes.addressof(code))
    listener.setsockopt(socket.SOL_SOCKET, SO_ATTACH_FILTER, pointer)
