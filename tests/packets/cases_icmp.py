# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""ICMP and ICMPv6 for a service address: echo, errors by what they quote, the rest."""

import struct

from scapy.layers.inet import ICMP, IPOption_NOP, IPOption_RR
from scapy.layers.inet6 import (ICMPv6DestUnreach, ICMPv6EchoReply, ICMPv6EchoRequest, ICMPv6PacketTooBig,
                                ICMPv6ParamProblem, ICMPv6TimeExceeded, ICMPv6Unknown)
from scapy.layers.l2 import Dot1AD, Dot1Q
from scapy.packet import Raw

from answers import echo_reply
from cases import (BY_SOURCE, BY_SOURCE6, CLIENT, CLIENT6, LOCAL, LOCAL6, NOBODY, NOBODY6, ODD, WWW, WWW6, Answer, Case,
                   Drop, Flow, Forward, Pass, ether, ip4, ip6, tcp, udp)
from cases_ipv6 import AUTHENTICATION, DESTINATION, FRAGMENT, HOP_BY_HOP, ROUTING, authentication, chain, fragment, \
    options, routing

CASES = []

# ---- echo ----


def pinged(sentence, frame):
    return Case(sentence, frame, Answer("answer_echo", echo_reply(frame)))


def ping4(data=bytes(56), id=1, seq=1, **fields):
    return ip4(**{"flags": "DF", **fields}) / ICMP(id=id, seq=seq) / Raw(data)


def ping6(data=bytes(56), id=1, seq=1, **fields):
    return ip6(**fields) / ICMPv6EchoRequest(id=id, seq=seq, data=data)


for size in (0, 1, 2, 3, 7, 8, 18, 19, 56, 57, 1452, 1471, 1472):
    CASES += [
        pinged(f"ping with {size} bytes", ether() / ping4(bytes(i & 255 for i in range(size)))),
        pinged(f"ping over IPv6 with {size} bytes", ether() / ping6(bytes(i & 255 for i in range(min(size, 1452))),
                                                                     seq=size)),
    ]
for number in (0, 1, 0x0800, 0x8000, 0xF7FF, 0xF7FE, 0xF800, 0xFFFE, 0xFFFF):
    CASES += [
        pinged(f"ping with id {number} and no data", ether() / ping4(b"", id=number, seq=0)),
        pinged(f"ping with id {number} and as much in its data", ether() / ping4(struct.pack(">H", number), id=number)),
        pinged(f"ping over IPv6 with id {number} and no data", ether() / ping6(b"", id=number, seq=0)),
    ]
CASES += [
    pinged("ping of nothing but zeros, whose reply's sum is the other zero", ether() / ping4(bytes(56), id=0, seq=0)),
    pinged("ping padded to 60 bytes", bytes(ether() / ping4(b"x")) + b"\xa5" * 17),
    pinged("ping with TTL 1, which has arrived", ether() / ping4(ttl=1)),
    pinged("ping with TTL 255", ether() / ping4(ttl=255)),
    pinged("ping with hop limit 1, which has arrived", ether() / ping6(hlim=1)),
    pinged("ping without DF", ether() / ping4(flags=0, id=99)),
    pinged("ping with DSCP and ECN, which come back", ether() / ping4(tos=0xBB)),
    pinged("ping over IPv6 with class and label", ether() / ping6(tc=0xBB, fl=0x12345)),
    pinged("ping with options", ether() / ping4(options=[IPOption_NOP()] * 8)),
    pinged("ping that records its route", ether() / ping4(options=[IPOption_RR(routers=["0.0.0.0"] * 9, pointer=4)])),
    pinged("ping to another service address", ether() / ping4(dst=BY_SOURCE)),
    pinged("ping to another service address over IPv6", ether() / ping6(dst=BY_SOURCE6)),
    pinged("ping with a code", ether() / ip4() / ICMP(code=7) / Raw(b"code")),
    Case("ping to an address without a service", ether() / ping4(dst=NOBODY), Pass("pass_not_service")),
    Case("ping to an address without a service over IPv6", ether() / ping6(dst=NOBODY6), Pass("pass_not_service")),
    Case("ping by broadcast", ether(dst="ff:ff:ff:ff:ff:ff") / ping4(), Drop("drop_echo")),
    Case("ping by multicast over IPv6", ether(dst="33:33:00:00:00:10") / ping6(), Drop("drop_echo")),
    Case("ping from the service address itself", ether() / ping4(src=WWW), Drop("drop_source")),
    Case("ping from loopback", ether() / ping4(src="127.0.0.1"), Drop("drop_source")),
    Case("ping from a broadcast address", ether() / ping4(src="255.255.255.255"), Drop("drop_source")),
    Case("ping from the unspecified address", ether() / ping6(src="::"), Drop("drop_source")),
    Case("a ping's first seven bytes", ether() / ip4(proto=1) / Raw(b"\x08\0\0\0\0\1\0"), Drop("drop_truncated")),
    Case("a ping's first seven bytes, padded", bytes(ether() / ip4(proto=1) / Raw(b"\x08\0\0\0\0\1\0")) + bytes(19),
         Drop("drop_truncated")),
    Case("a ping's first seven bytes over IPv6", ether() / ip6(nh=58) / Raw(b"\x80\0\0\0\0\1\0"), Drop("drop_truncated")),
    Case("a ping's first seven bytes to an address of the host", ether() / ip4(LOCAL, proto=1) / Raw(b"\x08\0\0\0\0\1\0"),
         Pass("pass_unknown_port")),
]
# A wrong checksum stays as wrong: it is the client's to see.
WRONG = bytearray(bytes(ether() / ping4(b"data")))
WRONG[36] ^= 0x55
CASES.append(pinged("a ping with a wrong checksum gets no right one", bytes(WRONG)))
for name, tags in {"a tag": Dot1Q(vlan=9, prio=3), "two tags": Dot1AD(vlan=9) / Dot1Q(vlan=10)}.items():
    CASES += [pinged(f"ping with {name}", ether() / tags / ping4()),
              pinged(f"ping over IPv6 with {name}", ether() / tags / ping6())]

PING6 = ICMPv6EchoRequest(id=3, seq=4, data=b"behind")
for name, header in {"hop-by-hop options": (HOP_BY_HOP, options()), "destination options": (DESTINATION, options(3)),
                     "an atomic fragment header": (FRAGMENT, fragment())}.items():
    CASES.append(pinged(f"ping behind {name}, which come back", chain([header], PING6, 58)))
for name, header in {"a routing header": (ROUTING, routing()), "an authentication header": (AUTHENTICATION, authentication())
                     }.items():
    CASES.append(Case(f"ping behind {name}, which must not come back", chain([header], PING6, 58), Drop("drop_extensions")))

# A ping larger than a frame: each fragment is turned round by itself.
LARGE = bytes(ip4() / ICMP(id=5, seq=6) / Raw(bytes(i % 251 for i in range(4000))))[20:]
for at in (0, 1480, 2960):
    CASES.append(pinged(f"a fragmented ping, from byte {at} on", ether() / ip4(
        flags="MF" if at < 2960 else 0, frag=at // 8, proto=1, id=31) / Raw(LARGE[at : at + 1480])))
LARGE6 = bytes(ip6() / ICMPv6EchoRequest(id=5, seq=6, data=bytes(i % 251 for i in range(2800))))[40:]
for at in (0, 1448):
    CASES.append(pinged(f"a fragmented ping over IPv6, from byte {at} on", ether() / ip6(nh=44) / Raw(
        bytes([58]) + fragment(at // 8, at == 0, 31) + LARGE6[at : at + 1448])))
CASES += [
    Case("a later fragment of ICMP to an address of the host", ether() / ip4(LOCAL, frag=9, proto=1) / Raw(bytes(64)),
         Pass("pass_unknown_port")),
    Case("a first fragment of an ICMP error", ether() / ip4(flags="MF") / ICMP(type=3, code=1) / Raw(bytes(64)),
         Drop("drop_icmp")),
    Case("a later fragment of ICMP from loopback", ether() / ip4(src="127.0.0.1", frag=9, proto=1) / Raw(bytes(64)),
         Drop("drop_source")),
]

# ---- errors: to the backend whose packet is quoted ----

ROUTER, ROUTER6 = "203.0.113.1", "2001:db8:f::1"
FLOW, FLOW6 = Flow(CLIENT, 40000, WWW, 80, 6), Flow(CLIENT6, 40000, WWW6, 80, 6)

ERRORS4 = {"fragmentation needed": ICMP(type=3, code=4, nexthopmtu=1400), "network unreachable": ICMP(type=3, code=0),
           "host unreachable": ICMP(type=3, code=1), "administratively prohibited": ICMP(type=3, code=13),
           "time exceeded": ICMP(type=11, code=0), "reassembly time exceeded": ICMP(type=11, code=1),
           "parameter problem": ICMP(type=12)}
ERRORS6 = {"packet too big": ICMPv6PacketTooBig(mtu=1400), "no route": ICMPv6DestUnreach(code=0),
           "address unreachable": ICMPv6DestUnreach(code=3), "hop limit exceeded": ICMPv6TimeExceeded(code=0),
           "parameter problem over IPv6": ICMPv6ParamProblem(code=1)}


def error4(quote, message=None, dst=WWW, src=ROUTER, size=None, **fields):
    quote = bytes(quote)
    return ether() / ip4(dst, src=src, **fields) / (message or ERRORS4["fragmentation needed"]) / Raw(quote[:size])


def error6(quote, message=None, dst=WWW6, src=ROUTER6, size=None):
    quote = bytes(quote)
    return ether() / ip6(dst, src=src) / (message or ERRORS6["packet too big"]) / Raw(quote[:size])


def sent4(transport=None, src=WWW, **fields):
    """A backend's packet to the client."""
    return ip4(CLIENT, src=src, **fields) / (transport or tcp(40000, 80, payload=bytes(500)))


def sent6(transport=None, src=WWW6):
    return ip6(CLIENT6, src=src) / (transport or tcp(40000, 80, payload=bytes(500)))


for name, message in ERRORS4.items():
    CASES += [
        Case(f"{name}: to the backend of the quoted flow", error4(sent4(), message), Forward("www", FLOW)),
        Case(f"{name}: quoted UDP", error4(sent4(udp(40000, 53)), message), Forward("dns", Flow(CLIENT, 40000, WWW, 53, 17))),
        Case(f"{name}: not for a service", error4(sent4(src=NOBODY), message, NOBODY), Pass("pass_not_service")),
    ]
for name, message in ERRORS6.items():
    CASES += [
        Case(f"{name}: to the backend of the quoted flow", error6(sent6(), message), Forward("www6", FLOW6)),
        Case(f"{name}: quoted UDP", error6(sent6(udp(40000, 4444)), message),
             Forward("udp6", Flow(CLIENT6, 40000, WWW6, 4444, 17))),
        Case(f"{name}: not for a service", error6(sent6(src=NOBODY6), message, NOBODY6), Pass("pass_not_service")),
    ]
for size in (20 + 8, 20 + 9, 20 + 20, 20 + 500, 548):
    CASES.append(Case(f"an error that quotes {size} bytes", error4(sent4(), size=size), Forward("www", FLOW)))
for size in (0, 1, 19, 20, 24, 27):
    CASES.append(Case(f"an error that quotes only {size} bytes", error4(sent4(), size=size), Drop("drop_truncated")))
    CASES.append(Case(f"an error that quotes only {size} bytes, padded with what is no quote",
                      bytes(error4(sent4(), size=size)) + bytes(sent4())[size:], Drop("drop_truncated")))
for size in (40 + 8, 40 + 20, 1232):
    CASES.append(Case(f"an error over IPv6 that quotes {size} bytes", error6(sent6(tcp(40000, 80, payload=bytes(1400))),
                                                                             size=size), Forward("www6", FLOW6)))
for size in (0, 39, 40, 47):
    CASES.append(Case(f"an error over IPv6 that quotes only {size} bytes", error6(sent6(), size=size), Drop("drop_truncated")))

for flow in range(6):
    CASES += [
        Case(f"errors about many flows, {flow}", error4(sent4(tcp(1000 + flow, 443)), src=f"203.0.113.{flow + 1}"),
             Forward("www", Flow(CLIENT, 1000 + flow, WWW, 443, 6))),
        Case(f"errors about many flows over IPv6, {flow}", error6(sent6(tcp(1000 + flow, 7000))),
             Forward("mixed6", Flow(CLIENT6, 1000 + flow, WWW6, 7000, 6))),
    ]
QUOTE6 = {
    "options": [(DESTINATION, options(2))], "a hop-by-hop and a routing header": [(HOP_BY_HOP, options()), (ROUTING, routing())],
    "an atomic fragment header": [(FRAGMENT, fragment())], "the header of a first fragment": [(FRAGMENT, fragment(0, True))],
}


def quoted6(headers, transport, protocol=6, src=WWW6):
    frame = bytes(chain(headers, transport, protocol, dst=CLIENT6, src=src))
    return frame[14:]


for name, headers in QUOTE6.items():
    CASES.append(Case(f"an error over IPv6 that quotes {name}", error6(quoted6(headers, tcp(40000, 80))), Forward("www6", FLOW6)))
CASES += [
    Case("an error that quotes options", error4(sent4(options=[IPOption_NOP()] * 12)), Forward("www", FLOW)),
    Case("an error that quotes options and 8 bytes", error4(sent4(options=[IPOption_NOP()] * 40), size=68), Forward("www", FLOW)),
    Case("an error that quotes options and 7 bytes", error4(sent4(options=[IPOption_NOP()] * 40), size=67),
         Drop("drop_truncated")),
    Case("an error with options of its own", error4(sent4(), options=[IPOption_NOP()] * 4), Forward("www", FLOW)),
    Case("an error that quotes a first fragment", error4(sent4(flags="MF")), Forward("www", FLOW)),
    Case("an error that quotes a later fragment", error4(sent4(flags=0, frag=50)), Drop("drop_icmp_quote")),
    Case("an error that quotes a later fragment over IPv6", error6(quoted6([(FRAGMENT, fragment(50))], tcp(40000, 80))),
         Drop("drop_icmp_quote")),
    Case("an error that quotes seven extension headers", error6(quoted6([(DESTINATION, options())] * 7, tcp(40000, 80))),
         Drop("drop_extensions")),
    Case("an error that quotes another service's packet", error4(sent4(src=ODD)), Drop("drop_icmp_quote")),
    Case("an error that quotes a packet to the service", error4(ip4(WWW, src=CLIENT) / tcp()), Drop("drop_icmp_quote")),
    Case("an error that quotes a port without a service", error4(sent4(tcp(40000, 81))), Drop("drop_icmp_quote")),
    Case("an error that quotes SCTP", error4(ip4(CLIENT, src=WWW, proto=132) / Raw(bytes(64))), Drop("drop_icmp_quote")),
    Case("an error that quotes an echo reply of ours", error4(ip4(CLIENT, src=WWW) / ICMP(type=0) / Raw(bytes(56))),
         Drop("drop_icmp_quote")),
    Case("an error that quotes an error", error4(ip4(CLIENT, src=WWW) / ICMP(type=3) / Raw(bytes(56))),
         Drop("drop_icmp_quote")),
    Case("an error that quotes another version", error4(b"\x65" + bytes(sent4())[1:]), Drop("drop_icmp_quote")),
    Case("an error that quotes a header of 16 bytes", error4(b"\x44" + bytes(sent4())[1:]), Drop("drop_icmp_quote")),
    Case("an error over IPv6 that quotes another version", error6(b"\x40" + bytes(sent6())[1:]), Drop("drop_icmp_quote")),
    Case("an error about a packet to loopback", error4(ip4("127.0.0.1", src=WWW) / tcp(40000, 80)), Drop("drop_source")),
    Case("an error from the service address itself", error4(sent4(), src=WWW), Drop("drop_source")),
    Case("an error from loopback", error4(sent4(), src="127.0.0.1"), Drop("drop_source")),
    Case("an error from the client", error4(sent4(), src=CLIENT), Forward("www", FLOW)),
    Case("an error by source address alone", error4(ip4(CLIENT, src=BY_SOURCE) / tcp(40000, 80), dst=BY_SOURCE),
         Forward("source", Flow(CLIENT, 9, BY_SOURCE, 9, 6))),
    Case("an error with TTL 1", error4(sent4(), ttl=1), Drop("drop_ttl")),
    Case("an error with TTL 2", error4(sent4(), ttl=2), Forward("www", FLOW)),
    Case("an error behind a destination option",
         chain([(DESTINATION, options())], ERRORS6["packet too big"] / Raw(bytes(sent6())), 58, src=ROUTER6),
         Forward("www6", FLOW6)),
    Case("an error too big for the way to the backend gets no answer",
         error4(ip4(CLIENT, src=ODD) / tcp(40000, 82, payload=bytes(1400)), dst=ODD), Drop("drop_too_big")),
    Case("an error for a service on an address of the host", error4(sent4(src=LOCAL), dst=LOCAL),
         Forward("local", Flow(CLIENT, 40000, LOCAL, 80, 6))),
    Case("an error for another port of it is the host's", error4(sent4(tcp(40000, 22), src=LOCAL), dst=LOCAL),
         Pass("pass_unknown_port")),
    Case("an error about a ping of it is the host's", error4(ip4(CLIENT, src=LOCAL) / ICMP() / Raw(bytes(56)), dst=LOCAL),
         Pass("pass_unknown_port")),
    Case("an error that quotes too little to it is the host's", error4(sent4(src=LOCAL), dst=LOCAL, size=27),
         Pass("pass_unknown_port")),
    Case("an error for another port of it is the host's, IPv6", error6(sent6(tcp(40000, 22), src=LOCAL6), dst=LOCAL6),
         Pass("pass_unknown_port")),
]
for name, tags in {"a tag": Dot1Q(vlan=9), "two tags": Dot1AD(vlan=9) / Dot1Q(vlan=10)}.items():
    CASES += [
        Case(f"an error with {name}", ether() / tags / error4(sent4()).payload, Forward("www", FLOW)),
        Case(f"an error over IPv6 with {name}", ether() / tags / error6(sent6()).payload, Forward("www6", FLOW6)),
    ]

# ---- neither echo nor error ----

for kind in (0, 1, 2, 4, 5, 9, 10, 13, 14, 15, 17, 30, 42, 255):
    CASES.append(Case(f"ICMP type {kind}", ether() / ip4(proto=1) / Raw(bytes([kind]) + bytes(63)), Drop("drop_icmp")))
for kind in (0, 5, 100, 127, 130, 131, 132, 138, 143, 255):
    CASES.append(Case(f"ICMPv6 type {kind}", ether() / ip6(nh=58) / Raw(bytes([kind]) + bytes(63)), Drop("drop_icmp")))
CASES += [
    Case("an echo reply", ether() / ip4() / ICMP(type=0) / Raw(bytes(56)), Drop("drop_icmp")),
    Case("an echo reply over IPv6", ether() / ip6() / ICMPv6EchoReply(data=bytes(56)), Drop("drop_icmp")),
    Case("an echo reply to an address of the host", ether() / ip4(LOCAL) / ICMP(type=0) / Raw(bytes(56)),
         Pass("pass_unknown_port")),
    Case("ICMP without a type", ether() / ip4(proto=1), Drop("drop_truncated")),
    Case("ICMPv6 without a type", ether() / ip6(nh=58), Drop("drop_truncated")),
    Case("ICMPv6 of four bytes", ether() / ip6() / ICMPv6Unknown(type=143), Drop("drop_truncated")),
]
