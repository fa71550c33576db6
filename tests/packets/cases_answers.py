# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What an address's own settings make of pings, unknown ports and fragments; and, in SETTLED, what the document's do."""

import itertools

from scapy.layers.inet import ICMP, IPOption_NOP
from scapy.layers.inet6 import ICMPv6EchoRequest
from scapy.layers.l2 import Dot1AD, Dot1Q
from scapy.packet import Raw

from answers import echo_reply, port_unreachable, reset, time_exceeded, too_big
from cases import (CLIENT, CLIENT6, LOCAL, NARROW, NETWORK, ODD, ODD6, POOLS, SERVICES, SHUT, SHUT6, STICKY, STICKY6, WWW,
                   WWW6, Answer, Case, Drop, Flow, Forward, Pass, ether, ip4, ip6, tcp, udp)
from cases_encap import tcp_of
from cases_icmp import error4, error6, ping4, ping6, quoted6
from cases_ipv6 import DESTINATION, FRAGMENT, chain, fragment, options
from fleet import Fleet

CASES = []

# ---- unknown-port: refuse ----


def refused(sentence, frame, answer=reset):
    return Case(sentence, frame, Answer("answer_refused", answer(frame)))


for flags in itertools.chain.from_iterable(itertools.combinations("FSPAU", size) for size in range(6)):
    flags = "".join(flags)
    CASES += [
        refused(f"TCP {flags or 'without flags'} to a port that refuses", ether() / ip4(SHUT) / tcp(
            81, flags=flags, seq=0xFFFFFFF0, ack=0x89ABCDEF)),
        refused(f"TCP {flags or 'without flags'} to a port that refuses, IPv6", ether() / ip6(SHUT6) / tcp(
            81, flags=flags, seq=7, ack=0, payload=b"")),
        Case(f"TCP R{flags} to a port that refuses: a reset answers none", ether() / ip4(SHUT) / tcp(81, flags="R" + flags),
             Drop("drop_unknown_port")),
    ]
for size in (0, 1, 5, 6, 100, 1460):
    CASES += [
        refused(f"a SYN with {size} bytes to a port that refuses", ether() / ip4(SHUT) / tcp(
            9, flags="S", seq=0xFFFFFFFF - size // 2, payload=bytes(size))),
        refused(f"a FIN with {size} bytes to a port that refuses, IPv6", ether() / ip6(SHUT6) / tcp(
            9, flags="F", seq=1000, payload=bytes(min(size, 1440)))),
        refused(f"a datagram of {size} bytes to a port that refuses", ether() / ip4(SHUT) / udp(54, payload=bytes(size)),
                port_unreachable),
        refused(f"a datagram of {size} bytes to a port that refuses, IPv6", ether() / ip6(SHUT6) / udp(
            54, payload=bytes(min(size, 1452))), port_unreachable),
    ]
for name, tags in {"a tag": Dot1Q(vlan=9, prio=3), "two tags": Dot1AD(vlan=9) / Dot1Q(vlan=10)}.items():
    CASES += [
        refused(f"refused with {name}", ether() / tags / ip4(SHUT) / tcp(81, flags="S")),
        refused(f"refused with {name}, IPv6", ether() / tags / ip6(SHUT6) / tcp(81, flags="S")),
        refused(f"a datagram refused with {name}", ether() / tags / ip4(SHUT) / udp(81), port_unreachable),
        refused(f"a datagram refused with {name}, IPv6", ether() / tags / ip6(SHUT6) / udp(81), port_unreachable),
    ]
# An error is longer than what it is about; a reset is not.
CASES += [
    Case("24 bytes of headroom are too few for an ICMP error", bytes(192) + bytes(ether() / ip4(SHUT) / udp(54)),
         Drop("drop_headroom"), {"meta": 192}),
    Case("36 bytes of headroom are too few for an ICMPv6 error", bytes(180) + bytes(ether() / ip6(SHUT6) / udp(54)),
         Drop("drop_headroom"), {"meta": 180}),
    Case("36 bytes of headroom are enough for an ICMP error", bytes(180) + bytes(ether() / ip4(SHUT) / udp(54)),
         Answer("answer_refused", port_unreachable(ether() / ip4(SHUT) / udp(54))), {"meta": 180}),
    Case("no headroom is needed for a reset", bytes(216) + bytes(ether() / ip4(SHUT) / tcp(81)),
         Answer("answer_refused", reset(ether() / ip4(SHUT) / tcp(81))), {"meta": 216}),
]
SYN_OPTIONS = [("MSS", 1460), ("SAckOK", b""), ("Timestamp", (1, 0)), ("NOP", None), ("WScale", 7)]
CASES += [
    refused("a SYN with TCP options is refused", ether() / ip4(SHUT) / tcp(81, flags="S", options=SYN_OPTIONS, payload=b"")),
    refused("a SYN with TCP options is refused, IPv6", ether() / ip6(SHUT6) / tcp(81, flags="S", options=SYN_OPTIONS)),
    refused("a SYN with IP options is refused", ether() / ip4(SHUT, options=[IPOption_NOP()] * 8) / tcp(81, flags="S")),
    refused("a datagram with IP options is refused, and quoted with them",
            ether() / ip4(SHUT, options=[IPOption_NOP()] * 8) / udp(81), port_unreachable),
    refused("a SYN behind extension headers is refused", chain([(DESTINATION, options(3))], tcp(81, flags="S"), dst=SHUT6)),
    refused("a datagram behind extension headers is refused", chain([(DESTINATION, options(3))], udp(81), 17, dst=SHUT6),
            port_unreachable),
    refused("a SYN padded to 60 bytes is refused", bytes(ether() / ip4(SHUT) / tcp(81, flags="S", payload=b"")) + bytes(6)),
    refused("a datagram with padding is refused, without it in the quote",
            bytes(ether() / ip4(SHUT) / udp(81, payload=b"odd")) + b"\xa5" * 15, port_unreachable),
    refused("a SYN with TTL 1 has arrived, and is refused", ether() / ip4(SHUT, ttl=1) / tcp(81, flags="S")),
    refused("a traceroute's last datagram", ether() / ip4(SHUT, ttl=1) / udp(33434, payload=bytes(32)), port_unreachable),
    refused("TCP to a port that has only UDP is refused", ether() / ip4(SHUT) / tcp(53, flags="S")),
    refused("UDP to a port that has only TCP is refused", ether() / ip4(SHUT) / udp(80), port_unreachable),
    refused("a first fragment of a datagram to a port that refuses", ether() / ip4(SHUT, flags="MF") / udp(
        81, payload=bytes(64)), port_unreachable),
    Case("a first fragment of a segment to a port that refuses", ether() / ip4(SHUT, flags="MF") / tcp(81, flags="S"),
         Drop("drop_unknown_port")),
    Case("a later fragment of a datagram to an address that refuses", ether() / ip4(SHUT, id=8, frag=9, proto=17) /
         Raw(bytes(64)), Drop("drop_fragment_unknown")),
    Case("a SYN by broadcast is not refused", ether(dst="ff:ff:ff:ff:ff:ff") / ip4(SHUT) / tcp(81, flags="S"),
         Drop("drop_unknown_port")),
    Case("a datagram by multicast is not refused", ether(dst="01:00:5e:00:00:01") / ip4(SHUT) / udp(81),
         Drop("drop_unknown_port")),
    Case("a SYN from loopback is not refused", ether() / ip4(SHUT, src="127.0.0.1") / tcp(81, flags="S"),
         Drop("drop_source")),
    Case("a bad TCP header is not refused", ether() / ip4(SHUT) / tcp(81, dataofs=4), Drop("drop_l4_header")),
    Case("port 0 is not refused", ether() / ip4(SHUT) / tcp(0, flags="S"), Drop("drop_port_zero")),
    Case("another protocol is not refused", ether() / ip4(SHUT, proto=132) / Raw(bytes(64)), Drop("drop_protocol")),
    Case("an error that quotes a port that refuses", error4(ip4(CLIENT, src=SHUT) / tcp(40000, 81), dst=SHUT),
         Drop("drop_icmp_quote")),
    Case("the service of an address that refuses", ether() / ip4(SHUT) / tcp(80), Forward("shut")),
    Case("the service of an address that refuses, IPv6", ether() / ip6(SHUT6) / tcp(80), Forward("shut6")),
]

# ---- echo: drop and forward ----

PING, PING_6 = Flow(CLIENT, 0, STICKY, 0, 1), Flow(CLIENT6, 0, STICKY6, 0, 58)
CASES += [
    Case("ping to an address that drops it", ether() / ping4(dst=SHUT), Drop("drop_echo")),
    Case("ping to an address that drops it, IPv6", ether() / ping6(dst=SHUT6), Drop("drop_echo")),
    Case("a fragment of a ping to an address that drops it", ether() / ip4(SHUT, frag=9, proto=1) / Raw(bytes(64)),
         Drop("drop_echo")),
    Case("ping to an address that forwards it", ether() / ping4(dst=STICKY), Forward("sticky", PING)),
    Case("ping to an address that forwards it, IPv6", ether() / ping6(dst=STICKY6), Forward("sticky6", PING_6)),
    Case("ping behind a routing header can be forwarded", chain(
        [(43, bytes([2, 4, 0]) + bytes(20))], ICMPv6EchoRequest(data=b"x"), 58, dst=STICKY6), Forward("sticky6", PING_6)),
    Case("another client's ping", ether() / ping4(dst=STICKY, src="198.51.100.77"),
         Forward("sticky", Flow("198.51.100.77", 0, STICKY, 0, 1))),
    Case("a client's TCP goes where its pings go", ether() / ip4(STICKY) / tcp(80, 4711), Forward("sticky", PING)),
    Case("a client's UDP goes there too", ether() / ip4(STICKY) / udp(99, 4711), Forward("sticky-udp", PING)),
    Case("a first fragment of a ping is forwarded", ether() / ip4(STICKY, flags="MF") / ICMP() / Raw(bytes(64)),
         Forward("sticky", PING)),
    Case("a later fragment of a ping is forwarded", ether() / ip4(STICKY, flags=0, frag=9, proto=1) / Raw(bytes(64)),
         Forward("sticky", PING)),
    Case("a later fragment of a ping is forwarded, IPv6", chain([(FRAGMENT, fragment(9, False, 3))], Raw(bytes(64)), 58,
                                                                 dst=STICKY6), Forward("sticky6", PING_6)),
    Case("ping from loopback is not forwarded", ether() / ping4(dst=STICKY, src="127.0.0.1"), Drop("drop_source")),
    Case("ping with TTL 1 is not forwarded", ether() / ping4(dst=STICKY, ttl=1), Drop("drop_ttl")),
    Case("an echo reply is not forwarded", ether() / ip4(STICKY) / ICMP(type=0) / Raw(bytes(56)), Drop("drop_icmp")),
    Case("an error that quotes a backend's echo reply", error4(ip4(CLIENT, src=STICKY) / ICMP(type=0) / Raw(bytes(56)),
                                                               dst=STICKY), Forward("sticky", PING)),
    Case("an error that quotes a backend's echo reply, IPv6",
         error6(quoted6([], Raw(b"\x81\0\0\0\0\1\0\1"), 58, STICKY6), dst=STICKY6), Forward("sticky6", PING_6)),
]

# ---- all services of an address by source: fragments and what quotes them need no note ----

CASES += [
    Case("a later fragment goes by source", ether() / ip4(STICKY, id=9, frag=100, proto=17) / Raw(bytes(64)),
         Forward("sticky", PING)),
    Case("a later fragment goes by source, IPv6", chain([(FRAGMENT, fragment(9, True, 9))], Raw(bytes(64)), dst=STICKY6),
         Forward("sticky6", PING_6)),
    Case("a later fragment of an unknown protocol goes nowhere", ether() / ip4(STICKY, frag=100, proto=99) / Raw(bytes(64)),
         Drop("drop_protocol")),
    Case("a later fragment from loopback goes nowhere", ether() / ip4(STICKY, src="127.0.0.1", frag=9, proto=17) /
         Raw(bytes(64)), Drop("drop_source")),
    Case("an error that quotes a later fragment goes by source", error4(
        ip4(CLIENT, src=STICKY, frag=50, flags=0) / tcp(40000, 80), dst=STICKY), Forward("sticky", PING)),
    Case("an error that quotes nothing but a later fragment's header goes by source", error4(
        ip4(CLIENT, src=STICKY, frag=50, flags=0) / tcp(40000, 80), dst=STICKY, size=20), Forward("sticky", PING)),
    Case("an error that quotes a later fragment goes by source, IPv6", error6(
        quoted6([(FRAGMENT, fragment(50))], tcp(40000, 80), 6, STICKY6), dst=STICKY6), Forward("sticky6", PING_6)),
]

# ---- the document's settings ----

SETTLED = Fleet(POOLS, SERVICES, NETWORK.locals, {"ttl-exceeded": "answer", "too-big-without-df": "send",
                                                  "error-rate": 1000000})


def exceeded(sentence, frame):
    return Case(sentence, frame, Answer("answer_ttl", time_exceeded(frame)))


def told(sentence, frame, mtu):
    return Case(sentence, frame, Answer("answer_too_big", too_big(frame, mtu)))


SETTLED_CASES = []
for ttl in (0, 1):
    SETTLED_CASES += [
        exceeded(f"TTL {ttl} is answered", ether() / ip4(ttl=ttl) / tcp()),
        exceeded(f"TTL {ttl} of UDP is answered", ether() / ip4(ttl=ttl) / udp()),
        exceeded(f"hop limit {ttl} is answered", ether() / ip6(hlim=ttl) / tcp()),
        exceeded(f"hop limit {ttl} of UDP is answered", ether() / ip6(hlim=ttl) / udp()),
        exceeded(f"TTL {ttl} of a ping to be forwarded is answered", ether() / ping4(dst=STICKY, ttl=ttl)),
        exceeded(f"hop limit {ttl} of a ping to be forwarded is answered", ether() / ping6(dst=STICKY6, hlim=ttl)),
    ]
for size in (0, 1, 2, 3, 4, 507, 508, 509, 1400):
    SETTLED_CASES += [
        exceeded(f"a segment of {size} bytes is quoted as far as it goes", ether() / ip4(ttl=1) / tcp(payload=bytes(
            i & 255 for i in range(size)))),
        exceeded(f"a segment of {size} bytes is quoted as far as it goes, IPv6", ether() / ip6(hlim=1) / tcp(payload=bytes(
            i & 255 for i in range(size)))),
    ]
for size in (1231, 1232, 1233):
    SETTLED_CASES.append(exceeded(f"a packet of {size} bytes over IPv6", ether() / ip6(hlim=1) / tcp_of(40, size, 80)))
SETTLED_CASES += [
    exceeded("TTL 1 with options is answered", ether() / ip4(ttl=1, options=[IPOption_NOP()] * 40) / tcp()),
    exceeded("TTL 1 without DF is answered", ether() / ip4(ttl=1, flags=0) / tcp()),
    exceeded("TTL 1 of a first fragment is answered", ether() / ip4(ttl=1, flags="MF", id=11) / udp(payload=bytes(64))),
    exceeded("hop limit 1 behind extension headers is answered", chain([(DESTINATION, options())], tcp(), hlim=1)),
    exceeded("TTL 1 with a tag is answered", ether() / Dot1Q(vlan=3) / ip4(ttl=1) / tcp()),
    exceeded("hop limit 1 with two tags is answered", ether() / Dot1AD(vlan=3) / Dot1Q(vlan=4) / ip6(hlim=1) / tcp()),
    exceeded("TTL 1 of a padded packet is answered", bytes(ether() / ip4(ttl=1) / tcp(payload=b"")) + bytes(6)),
    exceeded("TTL 1 of a packet too big: the TTL is said", ether() / ip4(ODD, ttl=1) / tcp_of(20, 1500, 82)),
    exceeded("hop limit 1 of a packet too big", ether() / ip6(ODD6, hlim=1) / tcp_of(40, 1500, 82)),
    Case("TTL 1 of an ICMP error is not answered", error4(ip4(CLIENT, src=WWW) / tcp(40000, 80), ttl=1), Drop("drop_ttl")),
    Case("TTL 1 of a later fragment is not answered", ether() / ip4(STICKY, ttl=1, id=12, frag=9, proto=17) / Raw(bytes(64)),
         Drop("drop_ttl")),
    Case("TTL 1 by broadcast is not answered", ether(dst="ff:ff:ff:ff:ff:ff") / ip4(ttl=1) / tcp(), Drop("drop_ttl")),
    Case("hop limit 1 by multicast is not answered", ether(dst="33:33:00:00:00:01") / ip6(hlim=1) / tcp(), Drop("drop_ttl")),
    Case("TTL 1 from loopback is not answered", ether() / ip4(src="127.0.0.1", ttl=1) / tcp(), Drop("drop_source")),
    Case("TTL 2 is forwarded", ether() / ip4(ttl=2) / tcp(), Forward("www")),
    Case("TTL 1 to an unknown port is not answered", ether() / ip4(ttl=1) / tcp(81), Drop("drop_unknown_port")),
    Case("TTL 1 to another port of the host's", ether() / ip4(LOCAL, ttl=1) / tcp(22), Pass("pass_unknown_port")),
    Case("TTL 1 of a ping that is answered", ether() / ping4(ttl=1),
         Answer("answer_echo", echo_reply(ether() / ping4(ttl=1)))),
    Case("too big without DF: sent as it is", ether() / ip4(ODD, flags=0) / tcp_of(20, 1500, 82), Forward("odd82")),
    Case("too big without DF: sent as it is, in IPv6", ether() / ip4(ODD, flags=0) / tcp_of(20, 1500, 83), Forward("odd83")),
    Case("a fragment too big is sent as it is", ether() / ip4(ODD, flags="MF", id=13) / tcp_of(20, 1500, 82),
         Forward("odd82")),
    Case("too big without DF, with a tag: sent as it is", ether() / Dot1Q(vlan=3) / ip4(ODD, flags=0) / tcp_of(20, 1500, 82),
         Forward("odd82")),
    told("too big with DF: told", ether() / ip4(ODD) / tcp_of(20, 1500, 82), NARROW - 20),
    told("too big over IPv6: told", ether() / ip6(ODD6) / tcp_of(40, 1500, 83), NARROW - 40),
    Case("too big without DF and TTL 1: sent nowhere", ether() / ip4(ODD, flags=0, ttl=1) / tcp_of(20, 1500, 82),
         Answer("answer_ttl", time_exceeded(ether() / ip4(ODD, flags=0, ttl=1) / tcp_of(20, 1500, 82)))),
]
WIDE = 65535 - 20
SETTLED_CASES += [
    Case("the longest packet whose outer length can be said is sent", ether() / ip4(ODD, flags=0) / tcp_of(20, WIDE, 82),
         Forward("odd82"), frags=True),
    Case("one byte more is too big for ever", ether() / ip4(ODD, flags=0) / tcp_of(20, WIDE + 1, 82), Drop("drop_too_big"),
         frags=True),
]
