# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The outer header, the size of what leaves, and where it leaves."""

from scapy.layers.inet import IPOption_NOP
from scapy.layers.l2 import Dot1AD, Dot1Q

from answers import too_big
from cases import NARROW, ODD, ODD6, Answer, Case, Drop, Forward, Pass, ether, ip4, ip6, tcp, udp

CASES = []

PAIRS = {
    "IPv4 in IPv4": (lambda **f: ip4(**f), tcp, 80, "www"),
    "IPv4 in IPv6": (lambda **f: ip4(**f), udp, 53, "dns"),
    "IPv6 in IPv4": (lambda **f: ip6(**f), tcp, 80, "www6"),
    "IPv6 in IPv6": (lambda **f: ip6(**f), udp, 4444, "udp6"),
}

# ---- DSCP and ECN ----

DSCP_ECN = (0x00, 0x01, 0x02, 0x03, 0x8C, 0xB8, 0xBB, 0xFC, 0xFF, 0x10, 0x0F)
for pair, (network, transport, port, service) in PAIRS.items():
    for tos in DSCP_ECN:
        field = {"tos" if pair.startswith("IPv4 in") else "tc": tos}
        CASES.append(Case(f"{pair}: DSCP {tos >> 2} and ECN {tos & 3} are copied outside",
                          ether() / network(**field) / transport(port), Forward(service)))

# ---- configured sources, of both families, in one pool ----

for number in range(8):
    CASES += [
        Case(f"configured sources, flow {number}", ether() / ip4() / tcp(7000, 5000 + number), Forward("mixed")),
        Case(f"configured sources over IPv6, flow {number}", ether() / ip6() / tcp(7000, 5000 + number), Forward("mixed6")),
    ]

# ---- labels and ids ----

for number in range(4):
    CASES += [
        Case(f"the flow label is the flow's, {number}", ether() / ip4() / udp(53, 100 + number), Forward("dns")),
        Case(f"two packets without DF have two ids, {number}", ether() / ip4(flags=0, id=number) / tcp(), Forward("www")),
    ]

# ---- another interface ----

for number in range(4):
    CASES += [
        Case(f"another interface has its own MAC addresses, flow {number}", ether() / ip4() / tcp(9000, 6000 + number),
             Forward("www-aside")),
        Case(f"another interface over IPv6, flow {number}", ether() / ip6() / tcp(9000, 6000 + number), Forward("aside6")),
    ]

# ---- path MTU: what counts is the packet, not the frame ----


def told(sentence, frame, mtu, options=None, frags=False):
    """A case of a packet too big for the way to its backend, about whose MTU the client is told."""
    first = (options or {}).get("linear")
    return Case(sentence, frame, Answer("answer_too_big", too_big(frame, mtu, first)), options or {}, frags)


def tcp_of(header, size, port):
    """TCP so that the whole IP packet has `size` bytes."""
    return tcp(port, payload=bytes(size - header - 20))


for family, network, header in ((4, lambda **f: ip4(ODD, **f), 20), (6, lambda **f: ip6(ODD6, **f), 40)):
    prefix = "odd" if family == 4 else "odd6-"
    for port, outer in ((82, 20), (83, 40)):
        fits = NARROW - outer
        pair = f"IPv{family} in IPv{4 if outer == 20 else 6}"
        CASES += [
            Case(f"{pair}: exactly fits", ether() / network() / tcp_of(header, fits, port), Forward(f"{prefix}{port}")),
            Case(f"{pair}: one byte less", ether() / network() / tcp_of(header, fits - 1, port), Forward(f"{prefix}{port}")),
            told(f"{pair}: one byte too big", ether() / network() / tcp_of(header, fits + 1, port), fits),
            told(f"{pair}: a full frame", ether() / network() / tcp_of(header, 1500, port), fits),
            told(f"{pair}: an odd number of bytes too big", ether() / network() / tcp_of(header, 1499, port), fits),
            told(f"{pair}: too big, with a tag", ether() / Dot1Q(vlan=5) / network() / tcp_of(header, fits, port), fits - 4),
            told(f"{pair}: too big, with two tags", ether() / Dot1AD(vlan=5) / Dot1Q(vlan=6, prio=7) / network() /
                 tcp_of(header, fits - 7, port), fits - 8),
            told(f"{pair}: too big, with padding", bytes(ether() / network() / tcp_of(header, 1490, port)) + b"\xa5" * 24,
                 fits),
            Case(f"{pair}: padding does not count", bytes(ether() / network() / tcp_of(header, fits, port)) + bytes(100),
                 Forward(f"{prefix}{port}")),
        ]
CASES += [
    Case("too big without DF: shunt does not fragment", ether() / ip4(ODD, flags=0) / tcp_of(20, 1500, 82),
         Drop("drop_too_big")),
    Case("too big with TTL 1: a router looks at that first", ether() / ip4(ODD, ttl=1) / tcp_of(20, 1500, 82),
         Drop("drop_ttl")),
    Case("too big with hop limit 1", ether() / ip6(ODD6, hlim=1) / tcp_of(40, 1500, 82), Drop("drop_ttl")),
    told("too big, with TTL 2", ether() / ip4(ODD, ttl=2) / tcp_of(20, 1500, 82), NARROW - 20),
    told("too big: nothing of TOS, id, options or evil bit is in the answer's header",
         ether() / ip4(ODD, tos=0xFF, id=0xBEEF, flags="DF+evil", options=[IPOption_NOP()] * 8) / tcp_of(28, 1500, 82),
         NARROW - 20),
    told("too big over IPv6: nothing of class or label is in the answer's header",
         ether() / ip6(ODD6, tc=0xFF, fl=0xABCDE) / tcp_of(40, 1500, 82), NARROW - 20),
    Case("too big, but came by broadcast", ether(dst="ff:ff:ff:ff:ff:ff") / ip4(ODD) / tcp_of(20, 1500, 82),
         Drop("drop_too_big")),
    Case("too big, but came by multicast", ether(dst="33:33:00:00:00:01") / ip6(ODD6) / tcp_of(40, 1500, 82),
         Drop("drop_too_big")),
    told("too big, a first fragment with DF", ether() / ip4(ODD, flags="DF+MF") / tcp_of(20, 1500, 82), NARROW - 20),
    Case("too big, a first fragment without DF", ether() / ip4(ODD, flags="MF") / tcp_of(20, 1500, 82),
         Drop("drop_too_big")),
]

# ---- headroom ----

CASES += [
    Case("16 bytes of headroom are too few for IPv4", bytes(200) + bytes(ether() / ip4() / tcp()), Drop("drop_headroom"),
         {"meta": 200}),
    Case("36 bytes of headroom are enough for IPv4", bytes(180) + bytes(ether() / ip4() / tcp()), Forward("www"),
         {"meta": 180}),
    Case("36 bytes of headroom are too few for IPv6", bytes(180) + bytes(ether() / ip4() / udp()), Drop("drop_headroom"),
         {"meta": 180}),
]

# ---- frames of several segments ----

BIG = 8900
CASES += [
    Case("a jumbo frame, IPv4 in IPv4", ether() / ip4() / tcp_of(20, BIG, 80), Forward("www"), frags=True),
    Case("a jumbo frame, IPv6 in IPv4", ether() / ip6() / tcp_of(40, BIG, 80), Forward("www6"), frags=True),
    Case("a jumbo frame, IPv4 in IPv6", ether() / ip4() / udp(53, payload=bytes(BIG - 28)), Forward("dns"), frags=True),
    Case("a jumbo frame, IPv6 in IPv6", ether() / ip6() / udp(4444, payload=bytes(BIG - 48)), Forward("udp6"), frags=True),
    Case("a jumbo frame that exactly fits", ether() / ip4() / tcp_of(20, 8980, 80), Forward("www"), frags=True),
    told("a jumbo frame one byte too big", ether() / ip4() / tcp_of(20, 8981, 80), 8980, frags=True),
    told("a jumbo frame of IPv6 one byte too big", ether() / ip6() / tcp_of(40, 8981, 80), 8980, frags=True),
    told("too big, headers in a first segment of 128 bytes", ether() / ip4(ODD) / tcp_of(20, 1400, 82), NARROW - 20,
         {"linear": 128}, frags=True),
    told("too big over IPv6, headers in a first segment of 131 bytes", ether() / ip6(ODD6) / tcp_of(40, 1400, 82),
         NARROW - 20, {"linear": 131}, frags=True),
    Case("a jumbo frame that claims one byte more than it has",
         bytes(ether() / ip4(len=BIG + 1) / tcp_of(20, BIG, 80)), Drop("drop_truncated"), frags=True),
    Case("a jumbo frame, unknown port", ether() / ip4() / tcp_of(20, BIG, 81), Drop("drop_unknown_port"), frags=True),
    Case("an odd jumbo frame", ether() / ip4() / tcp_of(20, 8899, 80), Forward("www"), frags=True),
    Case("a jumbo frame with padding", bytes(ether() / ip4() / tcp_of(20, BIG, 80)) + bytes(37), Forward("www"),
         frags=True),
]
for linear in (54, 64, 100, 128):
    CASES.append(Case(f"headers in a first segment of {linear} bytes", ether() / ip4() / tcp_of(20, 1400, 80), Forward("www"),
                      {"linear": linear}, frags=True))
CASES += [
    Case("IPv6 headers in a first segment of 74 bytes", ether() / ip6() / tcp_of(40, 1400, 80), Forward("www6"),
         {"linear": 74}, frags=True),
    Case("a first segment that ends with the TCP header", ether() / ip4() / tcp_of(20, 1400, 80), Forward("www"),
         {"linear": 54}, frags=True),
    Case("a first segment that ends inside the TCP header", ether() / ip4() / tcp_of(20, 1400, 80), Drop("drop_truncated"),
         {"linear": 53}, frags=True),
    Case("a first segment that ends before the ports", ether() / ip4() / tcp_of(20, 1400, 80), Drop("drop_truncated"),
         {"linear": 36}, frags=True),
    Case("a frame of several segments, not for a service", ether() / ip4("192.0.2.99") / tcp_of(20, 1400, 80),
         Pass("pass_not_service"), {"linear": 64}, frags=True),
]
