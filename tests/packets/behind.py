# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Errors from the way behind us: about packets as the program sent them, of each encapsulation."""

import ipaddress
import struct
from contextlib import contextmanager

from scapy.layers.inet import ICMP
from scapy.layers.inet6 import ICMPv6PacketTooBig
from scapy.packet import Raw

from cases import NETWORK, TUNNEL, TUNNEL_PORTS, ether, flow_of, ip4, ip6, tcp

ROUTER, ROUTER6 = "10.1.0.1", "fd00:1::1"


def mapped(address):
    address = ipaddress.ip_address(address)
    return address.packed if address.version == 6 else bytes(10) + b"\xff\xff" + address.packed


def whole(address):
    return struct.pack("<I", 128) + mapped(address)


class Way:
    """From the balancer to the one backend that gets `frame`, by a pool's encapsulation."""

    def __init__(self, kernel, pool):
        self.kernel = kernel
        self.frame = ether() / ip4(TUNNEL) / tcp(TUNNEL_PORTS[pool])
        flow, service = flow_of(self.frame), f"tcp4-{pool}"
        value = NETWORK.hash(flow)
        self.backend = NETWORK.pools[pool].owner(value)
        self.source = NETWORK.pools[pool].outer_source(self.backend, value)
        self.sent = NETWORK.forward(bytes(self.frame), flow, service).frame
        self.outer = self.sent[14:]
        self.id = struct.pack("<I", kernel.ask("counters")["backends"][f"{pool}/{self.backend.name}"]["id"])
        self.entry = kernel.peek("backends", self.id)

    def error(self, mtu, quote=None, size=48):
        """Fragmentation needed, or packet too big.  size: bytes that are quoted."""
        quote = (quote or self.outer)[:size]
        if self.backend.family == 6:
            return ether() / ip6(self.source, src=ROUTER6) / ICMPv6PacketTooBig(mtu=mtu) / Raw(quote)
        return ether() / ip4(self.source, src=ROUTER) / ICMP(type=3, code=4, nexthopmtu=mtu) / Raw(quote)

    def state(self):
        """(path MTU, errors, whether it was lowered)"""
        (word,) = struct.unpack_from("<Q", self.kernel.peek("backends", self.id))
        errors, lowered = struct.unpack("<QQ", self.kernel.peek("backend_path", self.id))
        return word >> 32 & 0xFFFF, errors, lowered != 0

    def put_back(self):
        self.kernel.poke("backends", self.id, self.entry)
        self.kernel.poke("backend_path", self.id, bytes(16))


@contextmanager
def known(kernel, pool, source=None):
    """The way, while the program knows its outer source (or `source`, a prefix as the map has it) and its endpoint."""
    way = Way(kernel, pool)
    source, endpoint = source or whole(way.source), mapped(way.backend.address)
    kernel.poke("outer_sources", source, b"\1")
    kernel.poke("endpoints", endpoint, struct.pack("<HH", 1, *struct.unpack("<I", way.id)) + bytes(28))
    way.put_back()
    try:
        yield way
    finally:
        kernel.poke("outer_sources", source, b"")
        kernel.poke("endpoints", endpoint, b"")
        way.put_back()
