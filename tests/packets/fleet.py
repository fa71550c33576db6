# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What is configured, and what must come of a packet: computed from the document by the rules, not asked of shunt."""

import functools
import ipaddress
import json
import struct
import sys
from dataclasses import dataclass, field
from pathlib import Path

from scapy.layers.inet import IP, UDP
from scapy.layers.inet6 import IPv6
from scapy.packet import Raw
from scapy.utils import checksum

import maglev
from kernel import INTERFACES, XDP_REDIRECT, XDP_TX

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "golden"))
import flowhash  # noqa: E402

KEY = "5d1a0f3c9b7e42688cd4f02b6a91e7f3"

# The way to the backends by interface: the gateway's MAC address and the host's own addresses there.
GATEWAYS = {"in": "02:00:00:00:01:01", "out": "02:00:00:00:01:02"}
SOURCES = {"in": {4: "10.1.0.2", 6: "fd00:1::2"}, "out": {4: "10.2.0.2", 6: "fd00:2::2"}}


@dataclass
class Backend:
    name: str
    address: str
    weight: int = 1
    interface: str = "in"
    mtu: int = 9000
    reachable: bool = True
    routed: bool = False  # behind a gateway

    @property
    def family(self):
        return ipaddress.ip_address(self.address).version

    @property
    def gateway(self):
        return GATEWAYS[self.interface]

    @property
    def source(self):
        return SOURCES[self.interface][self.family]


@dataclass
class Pool:
    name: str
    backends: list
    size: int = 251
    source: list = field(default_factory=list)
    encapsulation: str = "ipip"
    port: int = 6080
    udp6_checksum: str = "computed"

    @functools.cached_property
    def owners(self):
        # A backend whose way was never known has no slots.
        return maglev.owners({b.name: b.weight for b in self.backends if b.reachable}, self.size)

    def owner(self, value):
        name = self.owners[flowhash.slot(value, self.size)]
        return next((b for b in self.backends if b.name == name), None)

    def outer_source(self, backend, value):
        """The host's own, the configured one, or one of the prefix by bits of the flow's hash."""
        for network in map(ipaddress.ip_network, self.source):
            if network.version == backend.family:
                bits = min(network.max_prefixlen - network.prefixlen, 32)
                return str(network.network_address + (value >> 16) % 2**bits)
        return backend.source

    def document(self):
        encapsulation = {"type": self.encapsulation, **({"source": self.source} if self.source else {})}
        if self.encapsulation == "gue":
            encapsulation |= {"port": self.port, "udp6-checksum": self.udp6_checksum}
        return {
            "name": self.name, "table": {"algorithm": "maglev", "size": self.size}, "encapsulation": encapsulation,
            "backends": [{"name": b.name, "address": b.address, "weight": b.weight} for b in self.backends],
        }


@dataclass
class Service:
    name: str
    address: str
    protocol: str
    ports: object
    pool: str
    hash: str = "5-tuple"
    unknown_port: str = "drop"
    echo: str = "answer"


@dataclass
class Flow:
    source: str
    sport: int
    destination: str
    dport: int
    protocol: int


@dataclass
class Forwarded:
    action: int
    frame: bytes
    backend: str
    length: int


class Fleet:
    def __init__(self, pools, services, local=(), settings=None):
        self.pools = {pool.name: pool for pool in pools}
        self.services = {service.name: service for service in services}
        self.locals = list(local)
        self.settings = settings or {}
        self.key = flowhash.Key(KEY)

    def backends(self):
        return [backend for pool in self.pools.values() for backend in pool.backends]

    def document(self):
        pools = [pool.document() for pool in self.pools.values()]
        services = [{
            "name": s.name, "address": s.address, "protocol": s.protocol, "ports": s.ports, "pool": s.pool,
            "hash": s.hash, "unknown-port": s.unknown_port, "echo": s.echo,
        } for s in self.services.values()]
        return json.dumps({"version": 1, "hash-key": KEY, "settings": self.settings, "pools": pools, "services": services})

    def hash(self, flow, mode="5-tuple"):
        return flowhash.flow_hash(self.key, flowhash.MODES.index(mode), flow.source, flow.sport, flow.destination,
                                  flow.dport, flow.protocol)

    def datagram(self, source, destination, number, protocol):
        """The hash that names a datagram among the fragments.  number: identification; protocol: 0 for IPv6."""
        size = "<I" if ipaddress.ip_address(source).version == 6 else "<H"
        (word,) = struct.unpack(size, struct.pack(size.replace("<", ">"), number))
        return flowhash.keyed_hash(self.key, source, destination, word, protocol + (len(flowhash.MODES) << 8))

    def forward(self, frame, flow, service, entropy=None):
        """The frame as it must leave.  `frame` is well-formed: Ethernet, any tags, IP.  entropy: in place of the hash."""
        service = self.services[service]
        pool = self.pools[service.pool]
        value = self.hash(flow, service.hash)
        backend = pool.owner(value)
        link, packet, padding = split(frame)
        if pool.encapsulation == "l2":
            ethertype, outer = link[-2:], b""
        else:
            ethertype = b"\x08\x00" if backend.family == 4 else b"\x86\xdd"
            outer = outer_header(packet, value if entropy is None else entropy, pool, backend)
        macs = mac(backend.gateway) + mac(INTERFACES[backend.interface])
        return Forwarded(
            XDP_TX if backend.interface == "in" else XDP_REDIRECT,
            macs + link[12:-2] + ethertype + outer + routed(packet) + padding,
            f"{pool.name}/{backend.name}", len(packet))


# ---- bytes ----


def mac(text):
    return bytes.fromhex(text.replace(":", ""))


def split(frame):
    """A frame into link header, IP packet by its own length, and what comes behind."""
    at = 12
    while frame[at : at + 2] in (b"\x81\x00", b"\x88\xa8"):
        at += 4
    at += 2
    if frame[at] >> 4 == 4:
        length = struct.unpack_from(">H", frame, at + 2)[0]
    else:
        length = 40 + struct.unpack_from(">H", frame, at + 4)[0]
    return frame[:at], frame[at : at + length], frame[at + length :]


def patched(packet, at, value):
    """An IPv4 packet with one byte of its header replaced, and its checksum with it.

    A checksum that was wrong stays as wrong as it was (RFC 1624), so that the receiver sees it.
    """
    size = (packet[0] & 15) * 4
    header = bytearray(packet[:size])
    header[10:12] = b"\0\0"
    off = (struct.unpack_from(">H", packet, 10)[0] - checksum(bytes(header))) % 0xFFFF
    header[at] = value
    now = checksum(bytes(header))
    if off:
        now = (now + off) % 0xFFFF or 0xFFFF
    header[10:12] = struct.pack(">H", now)
    return bytes(header) + packet[size:]


def routed(packet):
    """The packet after one more router: TTL less one."""
    if packet[0] >> 4 == 6:
        return packet[:7] + bytes([packet[7] - 1]) + packet[8:]
    return patched(packet, 8, packet[8] - 1)


def outer_header(packet, value, pool, backend):
    """By Scapy: DSCP and ECN copied (RFC 2983, uniform; RFC 6040, normal mode), TTL fresh."""
    inner6 = packet[0] >> 4 == 6
    protocol = 41 if inner6 else 4
    (word,) = struct.unpack_from(">I", packet)
    tos = word >> 20 & 0xFF if inner6 else packet[1]
    source = pool.outer_source(backend, value)
    middle, payload = b"", routed(packet)
    if pool.encapsulation == "gue":
        # Variant 0, no control, no options; entropy in the source port, of the dynamic range.
        payload = bytes([0, protocol, 0, 0]) + payload
        protocol = 17
        middle = UDP(sport=0xC000 | value & 0x3FFF, dport=pool.port, len=8 + len(payload),
                     chksum=0 if backend.family == 4 or pool.udp6_checksum == "zero" else None)
    if backend.family == 6:
        header = IPv6(src=source, dst=backend.address, tc=tos, fl=value & 0xFFFFF | 1,
                      plen=len(payload) + len(middle), nh=protocol, hlim=64)
    else:
        dont_fragment = inner6 or packet[6] & 0x40
        # An id only where somebody may fragment: the client's, mixed with its flow and its place in its datagram.
        number = 0
        if not dont_fragment:
            offset = struct.unpack_from(">H", packet, 6)[0] & 0x1FFF
            mixed = struct.unpack_from("<H", packet, 4)[0] ^ (value ^ offset * 0x9E37) & 0xFFFF
            (number,) = struct.unpack(">H", struct.pack("<H", mixed))
        header = IP(src=source, dst=backend.address, tos=tos, len=20 + len(middle) + len(payload), id=number,
                    flags="DF" if dont_fragment else 0, ttl=64, proto=protocol)
    if not middle:
        return bytes(header)
    return bytes(header / middle / Raw(payload))[: -len(routed(packet))]
