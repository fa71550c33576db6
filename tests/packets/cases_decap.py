# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The program on the backends: tunnel packets in, the clients' packets out."""

import struct
from dataclasses import dataclass

from scapy.layers.inet import ICMP, IP, IPOption_NOP
from scapy.layers.inet6 import IPv6, IPv6ExtHdrDestOpt, IPv6ExtHdrFragment
from scapy.layers.l2 import ARP, GRE, Dot1AD, Dot1Q
from scapy.packet import Raw

from cases import CLIENT, NOBODY, NOBODY6, WWW, WWW6, Case, Drop, Pass, ether, ip4, ip6, tcp, udp
from fleet import patched, split

SOURCES = ["10.1.0.2", "10.8.0.0/15", "fd00:1::2", "2001:db8:ffff::/48"]
INNER = ["192.0.2.0/27", "203.0.113.7", "2001:db8::/123"]
BACKEND, BACKEND6 = "10.1.0.11", "fd00:1::11"
BALANCER, BALANCER6 = "10.1.0.2", "fd00:1::2"


@dataclass
class Unwrapped:
    ecn: int = None  # None: as inside


# ---- words ----


def outer4(protocol, **fields):
    return IP(**{"src": BALANCER, "dst": BACKEND, "ttl": 64, "flags": "DF", "id": 0, "proto": protocol, **fields})


def outer6(protocol, **fields):
    return IPv6(**{"src": BALANCER6, "dst": BACKEND6, "hlim": 64, "fl": 0x12345, "nh": protocol, **fields})


def inner4(**fields):
    return ip4(**{"ttl": 63, **fields}) / tcp()


def inner6(**fields):
    return ip6(**{"hlim": 63, **fields}) / tcp()


PAIRS = {
    "IPv4 in IPv4": (lambda **f: outer4(4, **f), inner4),
    "IPv6 in IPv4": (lambda **f: outer4(41, **f), inner6),
    "IPv4 in IPv6": (lambda **f: outer6(4, **f), inner4),
    "IPv6 in IPv6": (lambda **f: outer6(41, **f), inner6),
}


def dscp(outer_is_4, value):
    return {"tos" if outer_is_4 else "tc": value}


def unwrapped(frame, ecn):
    """The frame without its outer header; what stood behind the inner packet stays there."""
    link, packet, padding = split(frame)
    size, protocol = ((packet[0] & 15) * 4, packet[9]) if packet[0] >> 4 == 4 else (40, packet[6])
    inner = packet[size + (12 if protocol == 17 else 0) :]  # UDP and GUE
    six = inner[0] >> 4 == 6
    if ecn is not None and six:
        inner = inner[:1] + bytes([inner[1] & 0xCF | ecn << 4]) + inner[2:]
    elif ecn is not None:
        inner = patched(inner, 1, inner[1] & 0xFC | ecn)
    return link[:-2] + (b"\x86\xdd" if six else b"\x08\x00") + inner + padding


CASES = []

# ---- the four pairs ----

TAGS = {"no tag": None, "one tag": Dot1Q(vlan=100, prio=3), "two tags": Dot1AD(vlan=2) / Dot1Q(vlan=3)}
for pair, (outer, inner) in PAIRS.items():
    for name, tags in TAGS.items():
        link = ether() / tags if tags else ether()
        CASES.append(Case(f"{pair}, {name}: unwrapped", link / outer() / inner(), Unwrapped()))
    outer_is_4, inner_is_4 = pair.endswith("IPv4"), pair.startswith("IPv4")
    ttl = "ttl" if inner_is_4 else "hlim"
    CASES += [
        Case(f"{pair}: UDP", ether() / outer() / (ip4() if inner_is_4 else ip6()) / udp(), Unwrapped()),
        Case(f"{pair}: the inner TTL is left as it is", ether() / outer() / inner(**{ttl: 1}), Unwrapped()),
        Case(f"{pair}: an outer TTL of 1 is enough",
             ether() / outer(**{"ttl" if outer_is_4 else "hlim": 1}) / inner(), Unwrapped()),
        Case(f"{pair}: an outer DSCP does not go inside",
             ether() / outer(**dscp(outer_is_4, 0xB8)) / inner(**dscp(inner_is_4, 0x28)), Unwrapped()),
        Case(f"{pair}: padding stays behind", bytes(ether() / outer() / inner()) + bytes(23), Unwrapped()),
        Case(f"{pair}: source not listed",
             ether() / outer(src="10.1.0.3" if outer_is_4 else "fd00:1::3") / inner(), Drop("decap_drop_source")),
        Case(f"{pair}: inner destination not listed",
             ether() / outer() / inner(dst=NOBODY if inner_is_4 else NOBODY6), Drop("decap_drop_inner")),
        Case(f"{pair}: an inner packet of the client's own address",
             ether() / outer() / inner(dst=CLIENT if inner_is_4 else "2001:db8:c::7"), Drop("decap_drop_inner")),
    ]

# ---- ECN: RFC 6040, figure 4 (0 not-ECT, 1 ECT(1), 2 ECT(0), 3 CE) ----

NOT_ECT, ECT1, ECT0, CE = range(4)
FIGURE_4 = {  # arriving inner: {arriving outer: outgoing}
    NOT_ECT: {NOT_ECT: NOT_ECT, ECT0: NOT_ECT, ECT1: NOT_ECT, CE: None},
    ECT0: {NOT_ECT: ECT0, ECT0: ECT0, ECT1: ECT1, CE: CE},
    ECT1: {NOT_ECT: ECT1, ECT0: ECT1, ECT1: ECT1, CE: CE},
    CE: {NOT_ECT: CE, ECT0: CE, ECT1: CE, CE: CE},
}
for pair, (outer, inner) in PAIRS.items():
    outer_is_4, inner_is_4 = pair.endswith("IPv4"), pair.startswith("IPv4")
    for inside, row in FIGURE_4.items():
        for outside, result in row.items():
            CASES.append(Case(
                f"{pair}: ECN {outside} outside, {inside} inside",
                ether() / outer(**dscp(outer_is_4, 0x50 | outside)) / inner(**dscp(inner_is_4, 0xB8 | inside)),
                Drop("decap_drop_ecn") if result is None else Unwrapped(result)))
CASES.append(Case("a wrong inner checksum is not made right by an ECN mark",
                  ether() / outer4(4, tos=CE) / ip4(tos=ECT0, chksum=0x1234) / tcp(), Unwrapped(CE)))

# ---- lists ----

for address, listed in {"10.8.0.0": True, "10.9.255.255": True, "10.7.255.255": False, "10.10.0.0": False}.items():
    CASES.append(Case(f"source {address} of 10.8.0.0/15", ether() / outer4(4, src=address) / inner4(),
                      Unwrapped() if listed else Drop("decap_drop_source")))
for address, listed in {"2001:db8:ffff::": True, "2001:db8:ffff:ffff:ffff:ffff:ffff:ffff": True,
                        "2001:db8:fffe:ffff:ffff:ffff:ffff:ffff": False, "2001:db9::": False}.items():
    CASES.append(Case(f"source {address} of 2001:db8:ffff::/48", ether() / outer6(41, src=address) / inner6(),
                      Unwrapped() if listed else Drop("decap_drop_source")))
for address, listed in {"192.0.2.0": True, "192.0.2.31": True, "192.0.2.32": False, "192.0.1.255": False,
                        "203.0.113.7": True, "203.0.113.6": False}.items():
    CASES.append(Case(f"inner destination {address}", ether() / outer4(4) / inner4(dst=address),
                      Unwrapped() if listed else Drop("decap_drop_inner")))
for address, listed in {"2001:db8::": True, "2001:db8::1f": True, "2001:db8::20": False}.items():
    CASES.append(Case(f"inner destination {address}", ether() / outer4(41) / inner6(dst=address),
                      Unwrapped() if listed else Drop("decap_drop_inner")))
CASES += [
    Case("an IPv4-mapped outer source is not the IPv4 source", ether() / outer6(4, src="::ffff:10.1.0.2") / inner4(),
         Drop("decap_drop_source")),
    Case("an IPv4-mapped inner destination is not the IPv4 one", ether() / outer4(41) / inner6(dst="::ffff:192.0.2.10"),
         Drop("decap_drop_inner")),
]

# ---- what is no tunnel is left as it is ----

CASES += [
    Case(sentence, frame, Pass("decap_pass_not_tunnel")) for sentence, frame in {
        "TCP to the backend itself": ether() / ip4(BACKEND) / tcp(),
        "TCP over IPv6 to the backend itself": ether() / ip6(BACKEND6) / tcp(),
        "UDP from a listed source": ether() / ip4(BACKEND, src=BALANCER) / udp(),
        "a client's packet to the service address": ether() / ip4(WWW) / tcp(),
        "a client's packet over IPv6": ether() / ip6(WWW6) / udp(),
        "ICMP": ether() / ip4(BACKEND) / ICMP(),
        "GRE": ether() / ip4(BACKEND) / GRE() / inner4(),
        "ARP": ether() / ARP(),
        "three tags": ether() / Dot1Q(vlan=1) / Dot1Q(vlan=2) / Dot1Q(vlan=3) / outer4(4) / inner4(),
        "a fragment that is no tunnel's": ether() / ip4(BACKEND, flags="MF", proto=17) / Raw(bytes(64)),
        "an IPv6 fragment of a tunnel packet": ether() / outer6(44) / IPv6ExtHdrFragment(nh=41, m=1) / inner6(),
        "an IPv6 tunnel behind destination options": ether() / outer6(60) / IPv6ExtHdrDestOpt(nh=41) / inner6(),
        "no tunnel, with a bad header length": ether() / ip4(BACKEND, ihl=3, proto=6) / Raw(bytes(40)),
        "an Ethernet header alone": bytes(ether(type=0x0800)),
    }.items()
]

# ---- options outside and inside, fragments ----

for words in (1, 5, 10):
    CASES.append(Case(f"{words * 4} bytes of outer options", ether() / outer4(4, options=[IPOption_NOP()] * words * 4) /
                      inner4(), Unwrapped()))
CASES += [
    Case("inner options", ether() / outer4(4) / ip4(options=[IPOption_NOP()] * 8) / tcp(), Unwrapped()),
    Case("an inner fragment is the host's to reassemble", ether() / outer4(4) / ip4(flags="MF", frag=3) / Raw(bytes(64)),
         Unwrapped()),
    Case("an inner IPv6 fragment is the host's to reassemble",
         ether() / outer4(41) / ip6() / IPv6ExtHdrFragment(nh=17, offset=9) / Raw(bytes(64)), Unwrapped()),
    Case("a tunnel in a tunnel is unwrapped once", ether() / outer4(4) / ip4() / ip4() / tcp(), Unwrapped()),
    Case("the first fragment of a tunnel packet", ether() / outer4(4, flags="MF") / inner4(), Drop("decap_drop_fragment")),
    Case("a later fragment of a tunnel packet", ether() / outer4(4, flags=0, frag=100) / inner4(),
         Drop("decap_drop_fragment")),
    Case("a fragment of an IPv6 packet in IPv4", ether() / outer4(41, flags="MF") / inner6(), Drop("decap_drop_fragment")),
    Case("other inner protocols too", ether() / outer4(4) / ip4() / ICMP(), Unwrapped()),
]

# ---- contradictions ----


def changed(at, value, base):
    frame = bytearray(bytes(base))
    frame[14 + at : 14 + at + len(value)] = value
    return bytes(frame)


def short(value):
    return struct.pack(">H", value)


FOUR, FOUR_SIX = bytes(ether() / outer4(4) / inner4()), bytes(ether() / outer4(41) / inner6())
SIX, SIX_FOUR = bytes(ether() / outer6(41) / inner6()), bytes(ether() / outer6(4) / inner4())
CASES += [
    Case(sentence, frame, Drop("decap_drop_header")) for sentence, frame in {
        "outer header length of 16": changed(0, b"\x44", FOUR),
        "outer header length of 0": changed(0, b"\x40", FOUR),
        "outer version 6 under the ethertype of IPv4": changed(0, b"\x65", FOUR),
        "outer version 4 under the ethertype of IPv6": changed(0, b"\x40", SIX),
        "outer total length below the header": changed(2, short(19), FOUR),
        "protocol 4 with IPv6 inside": changed(9, b"\x04", FOUR_SIX),
        "protocol 41 with IPv4 inside": changed(9, b"\x29", FOUR),
        "next header 4 with IPv6 inside": changed(6, b"\x04", SIX),
        "next header 41 with IPv4 inside": changed(6, b"\x29", SIX_FOUR),
        "inner header length of 16": changed(20, b"\x44", FOUR),
        "inner total length below the header": changed(22, short(19), FOUR),
    }.items()
]
CASES += [
    Case(sentence, frame, Drop("decap_drop_truncated")) for sentence, frame in {
        "outer total length that holds no inner header": changed(2, short(39), FOUR),
        "outer payload length that holds no inner header": changed(4, short(39), SIX),
        "outer total length shorter than the inner packet": changed(2, short(20 + len(inner4()) - 1), FOUR),
        "outer payload length shorter than the inner packet": changed(4, short(len(inner6()) - 1), SIX),
        "inner total length beyond the outer": changed(22, short(len(inner4()) + 1), FOUR),
        "inner payload length beyond the outer": changed(44, short(len(inner6()) - 40 + 1), SIX),
        "outer total length beyond the frame": changed(2, short(1000), FOUR),
        "outer payload length beyond the frame": changed(4, short(1000), SIX),
        "both lengths beyond the frame": changed(22, short(900), changed(2, short(920), FOUR)),
        "an inner header longer than the packet": changed(20, b"\x4f", bytes(ether() / outer4(4) / ip4(len=60) / udp())),
    }.items()
]
CASES += [
    Case("an inner packet shorter than the tunnel's", changed(2, short(len(FOUR) - 14 + 10), FOUR + bytes(10)), Unwrapped()),
]
for name, whole, headers in (("IPv4", FOUR, 34), ("IPv6", SIX, 54)):
    CASES += [Case(f"{name} in {name} cut after {size} of {len(whole)} bytes", whole[:size],
                   Pass("decap_pass_not_tunnel") if size < headers else Drop("decap_drop_truncated"))
              for size in range(14, len(whole))]

# ---- frames of several segments ----

CASES += [
    Case("a jumbo frame", ether() / outer4(4) / ip4() / tcp(payload=bytes(8000)), Unwrapped(), frags=True),
    Case("a jumbo frame of IPv6", ether() / outer6(41) / ip6() / tcp(payload=bytes(8001)), Unwrapped(), frags=True),
    Case("headers in a first segment of 54 bytes", ether() / outer4(4) / ip4() / tcp(payload=bytes(1000)), Unwrapped(),
         {"linear": 54}, frags=True),
    Case("an inner header beyond the first segment", ether() / outer4(4) / ip4() / tcp(payload=bytes(1000)),
         Drop("decap_drop_truncated"), {"linear": 50}, frags=True),
]
