"""What a refusal of the kernel means, in a sentence that names the fix."""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING

from egress.kernel import KernelError

if TYPE_CHECKING:
    from egress.model import Binding

TIMED_OUT = 0
"""The errno of a step that the kernel did not answer in time."""

_SENTENCES = {
    TIMED_OUT: "the kernel did not answer in time: its network lock is held by somebody else",
    errno.EPERM: "not permitted: needs CAP_NET_ADMIN and CAP_NET_RAW (run as root or grant them)",
    errno.EACCES: "IPv6 is off there: set net.ipv6.conf.{interface}.disable_ipv6=0",
    errno.EEXIST: "another program has put {ip} on {interface}: remove it there first",
    errno.EINVAL: "the kernel takes no {ip} on {interface}: is its MTU below 1280?",
    errno.ENODEV: "there is no interface {interface}: name another one, or bring it back",
    errno.ENXIO: "there is no interface {interface}: name another one, or bring it back",
    errno.ENETDOWN: "{interface} is down: bring it up (ip link set {interface} up)",
    errno.ENOBUFS: "the kernel is out of buffers: raise net.core.wmem_max and rmem_max",
    errno.ENOMEM: "the kernel is out of memory",
    errno.EMFILE: "too many open files: raise LimitNOFILE",
}


def refusal(action: str, error: int, binding: Binding | None = None, said: str = "") -> KernelError:
    """The error for `action`; `said` are the kernel's own words, if it had any."""
    sentence = _SENTENCES.get(error) or os.strerror(error)
    if binding is None:
        sentence = sentence.replace("{interface}", "the interface").replace("{ip}", "the address")
    else:
        sentence = sentence.format(interface=binding.interface, ip=binding.ip)
    if said:
        sentence = f"{sentence} ({said.rstrip('.')})"
    return KernelError(action, error, sentence)


def refusal_of(action: str, error: OSError, binding: Binding | None = None) -> KernelError:
    """The same for an exception of a socket; a timeout, and EAGAIN after one, is errno 0."""
    if isinstance(error, TimeoutError | BlockingIOError) or error.errno is None:
        return refusal(action, TIMED_OUT, binding)
    return refusal(action, error.errno, binding)
