# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What a case is, the network that the cases are about, and short words for its packets."""

from dataclasses import dataclass, field

from scapy.layers.inet import IP, TCP, UDP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import Ether
from scapy.packet import Raw

from fleet import Backend, Fleet, Flow, Pool, Service
from kernel import INTERFACES


@dataclass
class Forward:
    service: str
    flow: Flow = None  # None: what Scapy reads in the packet


@dataclass
class Answer:
    reason: str
    frame: bytes  # that goes back


@dataclass
class Drop:
    reason: str


@dataclass
class Pass:
    reason: str


@dataclass
class Case:
    sentence: str
    frame: object  # Scapy packet, or bytes
    expect: object
    options: dict = field(default_factory=dict)  # of the run: meta, linear
    frags: bool = False  # only for the build that takes frames of several segments


# ---- the network ----

WWW, WWW6 = "192.0.2.10", "2001:db8::10"
BY_SOURCE, BY_SOURCE6 = "192.0.2.11", "2001:db8::11"
BY_SOURCE_PORT, BY_SOURCE_PORT6 = "192.0.2.12", "2001:db8::12"
LOCAL, LOCAL6 = "192.0.2.20", "2001:db8::20"
TUNNEL, TUNNEL6 = "192.0.2.44", "2001:db8::44"
ODD, ODD6 = "192.0.2.30", "2001:db8::30"
SHUT, SHUT6 = "192.0.2.40", "2001:db8::40"  # refuses other ports, drops pings
STICKY, STICKY6 = "192.0.2.50", "2001:db8::50"  # by source alone into one pool, pings too
NOBODY, NOBODY6 = "192.0.2.99", "2001:db8::99"
CLIENT, CLIENT6 = "198.51.100.7", "2001:db8:c::7"
CLIENT_MAC = "02:00:00:00:0c:01"

# MTU of the backends of the pools narrow4 and narrow6.
NARROW = 1400

POOLS = [
    Pool("web4", [Backend("a", "10.1.0.11", 1), Backend("b", "10.1.0.12", 2), Backend("c", "10.1.0.13", 4)]),
    Pool("web6", [Backend("a", "fd00:1::11", 3), Backend("b", "fd00:1::12", 3), Backend("c", "fd00:1::13", 1)], 4099),
    Pool("mixed", [Backend("m4", "10.1.0.21", 2), Backend("m6", "fd00:1::21", 2), Backend("n6", "fd00:1::22", 1)], 65537,
         ["192.0.2.254", "2001:db8:ffff::1"]),
    Pool("large", [Backend("only", "10.1.0.31")], 1048573),
    Pool("weightless", [Backend("w", "10.1.0.41", 0)]),
    Pool("unreachable", [Backend("u", "10.1.0.42", reachable=False)]),
    Pool("half", [Backend("u", "10.1.0.43", reachable=False), Backend("v", "10.1.0.44")]),
    Pool("narrow4", [Backend("n", "10.1.0.51", mtu=NARROW)]),
    Pool("narrow6", [Backend("n", "fd00:1::51", mtu=NARROW)]),
    Pool("aside", [Backend("s4", "10.2.0.11", interface="out"), Backend("s6", "fd00:2::11", interface="out")]),
    Pool("gue4", [Backend("a", "10.1.0.71"), Backend("b", "10.1.0.72")], encapsulation="gue"),
    Pool("gue6", [Backend("a", "fd00:1::71"), Backend("b", "fd00:1::72")], encapsulation="gue"),
    Pool("gue6-zero", [Backend("z", "fd00:1::73")], encapsulation="gue", port=5555, udp6_checksum="zero"),
    Pool("gue-narrow4", [Backend("n", "10.1.0.74", mtu=NARROW)], encapsulation="gue"),
    Pool("gue-narrow6", [Backend("n", "fd00:1::74", mtu=NARROW)], encapsulation="gue"),
    Pool("l2", [Backend("v4", "10.1.0.75", mtu=NARROW), Backend("v6", "fd00:2::75", interface="out", mtu=NARROW)],
         encapsulation="l2"),
    Pool("spread4", [Backend("s", "10.1.0.76")], source=["10.77.3.0/24"]),
    Pool("spread6", [Backend("s", "fd00:1::76")], source=["fd00:77:0:5::/64"]),
    Pool("gue-spread", [Backend("s4", "10.1.0.77"), Backend("s6", "fd00:1::77")], encapsulation="gue",
         source=["10.78.0.0/17", "fd00:78::/120"]),
    Pool("broken", [Backend("x", "10.1.0.61")]),  # its backend is a test's own to change
]

ODD_PORTS = {80: "weightless", 81: "unreachable", 82: "narrow4", 83: "narrow6", 84: "large", 85: "half", 86: "broken"}

TUNNEL_PORTS = {"gue4": 14, "gue6": 16, "gue6-zero": 17, "gue-narrow4": 18, "gue-narrow6": 19, "l2": 12, "spread4": 24,
                "spread6": 26, "gue-spread": 28}

SERVICES = [
    Service("www", WWW, "tcp", [80, 443, "8000-8399"], "web4"),
    Service("www-aside", WWW, "tcp", [9000], "aside"),
    Service("dns", WWW, "udp", [53], "web6"),
    Service("udp", WWW, "udp", "any", "web4"),
    Service("mixed", WWW, "tcp", [7000], "mixed"),
    Service("mixed-udp", WWW, "udp", [7000], "mixed"),
    Service("www6", WWW6, "tcp", [80, 443], "web4"),
    Service("udp6", WWW6, "udp", "any", "web6"),
    Service("mixed6", WWW6, "tcp", [7000], "mixed"),
    Service("aside6", WWW6, "tcp", [9000], "aside"),
    Service("source", BY_SOURCE, "tcp", "any", "web4", hash="source"),
    Service("source6", BY_SOURCE6, "tcp", "any", "web6", hash="source"),
    Service("source-port", BY_SOURCE_PORT, "tcp", "any", "web4", hash="source-port"),
    Service("source-port6", BY_SOURCE_PORT6, "tcp", "any", "web6", hash="source-port"),
    Service("local", LOCAL, "tcp", [80], "web4", unknown_port="pass"),
    Service("local6", LOCAL6, "tcp", [80], "web4", unknown_port="pass"),
]
SERVICES += [
    Service("shut", SHUT, "tcp", [80], "web4", unknown_port="refuse", echo="drop"),
    Service("shut-dns", SHUT, "udp", [53], "web6", unknown_port="refuse", echo="drop"),
    Service("shut6", SHUT6, "tcp", [80], "web6", unknown_port="refuse", echo="drop"),
    Service("sticky", STICKY, "tcp", [80], "web4", hash="source", unknown_port="refuse", echo="forward"),
    Service("sticky-udp", STICKY, "udp", "any", "web4", hash="source", unknown_port="refuse", echo="forward"),
    Service("sticky6", STICKY6, "tcp", [80], "web6", hash="source", echo="forward"),
    Service("sticky6-udp", STICKY6, "udp", "any", "web6", hash="source", echo="forward"),
]
SERVICES += [Service(f"odd{port}", ODD, "tcp", [port], pool) for port, pool in ODD_PORTS.items()]
SERVICES += [Service(f"odd6-{port}", ODD6, "tcp", [port], pool) for port, pool in ODD_PORTS.items()]
SERVICES += [Service(f"{protocol}{family}-{pool}", address, protocol, [port], pool) for pool, port in TUNNEL_PORTS.items()
             for family, address in ((4, TUNNEL), (6, TUNNEL6)) for protocol in ("tcp", "udp")]

NETWORK = Fleet(POOLS, SERVICES, local=[LOCAL, LOCAL6])

# ---- packets ----

PAYLOAD = b"GET / HTTP/1.1\r\n\r\n"


def ether(**fields):
    return Ether(**{"src": CLIENT_MAC, "dst": INTERFACES["in"], **fields})


def ip4(dst=WWW, **fields):
    return IP(**{"src": CLIENT, "dst": dst, "id": 0x1234, "flags": "DF", **fields})


def ip6(dst=WWW6, **fields):
    return IPv6(**{"src": CLIENT6, "dst": dst, **fields})


def tcp(dport=80, sport=40000, payload=PAYLOAD, **fields):
    return TCP(**{"sport": sport, "dport": dport, "flags": "PA", **fields}) / Raw(payload)


def udp(dport=53, sport=40000, payload=PAYLOAD, **fields):
    return UDP(**{"sport": sport, "dport": dport, **fields}) / Raw(payload)


def flow_of(packet):
    """The flow as Scapy reads it."""
    packet = Ether(bytes(packet))
    network = packet.getlayer(IP) or packet.getlayer(IPv6)
    transport = packet.getlayer(TCP) or packet.getlayer(UDP)
    return Flow(network.src, transport.sport, network.dst, transport.dport, 6 if isinstance(transport, TCP) else 17)
