"""Which hosts may take part at all: packets and streams of others are refused unread."""

from __future__ import annotations

from ipaddress import IPv4Network, IPv6Network, ip_address

REMEMBERED = 4096
"""Verdicts kept; a flood of sources costs time but no memory."""

Network = IPv4Network | IPv6Network


class Admission:
    """`networks` that members may come from; empty admits everybody. Replaced as a whole."""

    def __init__(self, networks: tuple[Network, ...] = ()) -> None:
        self.networks = networks
        self._verdicts: dict[str, bool] = {}

    def admits(self, host: str) -> bool:
        """Whether packets from this IP literal are read."""
        if not self.networks:
            return True
        known = self._verdicts.get(host)
        if known is None:
            if len(self._verdicts) >= REMEMBERED:
                self._verdicts.clear()
            known = self._verdicts[host] = self._judge(host)
        return known

    def _judge(self, host: str) -> bool:
        try:
            ip = ip_address(host)
        except ValueError:
            return False
        return any(ip.version == net.version and ip in net for net in self.networks)
