# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The IPv6 header and its extensions, written byte by byte from RFC 8200 and RFC 4302."""

import struct

from scapy.layers.inet6 import ICMPv6ND_NA, ICMPv6ND_NS, ICMPv6ND_RA, ICMPv6ND_Redirect, ICMPv6ND_RS
from scapy.packet import Raw

from cases import LOCAL6, NOBODY6, ODD6, WWW6, Case, Drop, Flow, Forward, Pass, ether, flow_of, ip6, tcp, udp

HOP_BY_HOP, ROUTING, FRAGMENT, ESP, AUTHENTICATION, NOTHING, DESTINATION, MOBILITY, HIP, SHIM6 = (
    0, 43, 44, 50, 51, 59, 60, 135, 139, 140)

CASES = []

# ---- a chain of extension headers ----


def options(units=0):
    """Hop-by-hop or destination options of (units + 1) * 8 bytes: padding alone."""
    room, body = units * 8 + 6, b""
    while room > 1:
        size = min(room - 2, 255)
        body += bytes([1, size]) + bytes(size)
        room -= size + 2
    return bytes([units]) + body + bytes(room)


def routing(left=0, kind=4):
    return bytes([2, kind, left]) + bytes(4) + bytes(16)


def fragment(offset=0, more=False, number=0xABCD1234):
    return bytes([0]) + struct.pack(">HI", offset << 3 | more, number)


def authentication(icv=12):
    return bytes([(12 + icv) // 4 - 2, 0, 0]) + struct.pack(">II", 256, 1) + bytes(range(icv))


def chain(headers, transport, protocol=6, dst=WWW6, **fields):
    """headers: [(type, what follows its next-header byte)]."""
    types = [kind for kind, _ in headers] + [protocol]
    body = b"".join(bytes([following]) + rest for (_, rest), following in zip(headers, types[1:]))
    return ether() / ip6(dst, nh=types[0], **fields) / Raw(body + bytes(ip6(dst) / transport)[40:])


TCP_FLOW, UDP_FLOW = flow_of(ether() / ip6() / tcp()), flow_of(ether() / ip6() / udp())

KINDS = {
    "hop-by-hop options": (HOP_BY_HOP, options()),
    "hop-by-hop options of 264 bytes": (HOP_BY_HOP, options(32)),
    "destination options": (DESTINATION, options()),
    "destination options of 2,048 bytes": (DESTINATION, options(255)),
    "a routing header used up": (ROUTING, routing()),
    "a routing header with segments left": (ROUTING, routing(left=1)),
    "a routing header of type 0": (ROUTING, routing(kind=0)),
    "an authentication header": (AUTHENTICATION, authentication()),
    "an authentication header with a long value": (AUTHENTICATION, authentication(64)),
    "an authentication header with the shortest value": (AUTHENTICATION, authentication(0)),
    "an atomic fragment": (FRAGMENT, fragment()),
}
for name, header in KINDS.items():
    CASES += [
        Case(f"{name}: TCP goes to the backend", chain([header], tcp()), Forward("www6", TCP_FLOW)),
        Case(f"{name}: UDP goes to the backend", chain([header], udp(), 17), Forward("udp6", UDP_FLOW)),
        Case(f"{name}: an unknown port behind it", chain([header], tcp(81)), Drop("drop_unknown_port")),
        Case(f"{name}: not for a service", chain([header], tcp(), dst=NOBODY6), Pass("pass_not_service")),
    ]

# As many as shunt walks, and one more.
for count in range(8):
    headers = [(DESTINATION, options(i % 3)) for i in range(count)]
    CASES.append(Case(f"{count} extension headers", chain(headers, tcp()),
                      Forward("www6", TCP_FLOW) if count <= 6 else Drop("drop_extensions")))
MIXED = [(HOP_BY_HOP, options()), (DESTINATION, options(1)), (ROUTING, routing()), (FRAGMENT, fragment()),
         (AUTHENTICATION, authentication()), (DESTINATION, options(2))]
CASES += [
    Case("all six kinds in the order of RFC 8200", chain(MIXED, tcp()), Forward("www6", TCP_FLOW)),
    Case("all six kinds in another order", chain(MIXED[::-1], udp(), 17), Forward("udp6", UDP_FLOW)),
    Case("one extension header of 2,048 bytes and one of 1,024",
         chain([(DESTINATION, options(255)), (HOP_BY_HOP, options(127))], tcp()), Forward("www6", TCP_FLOW)),
    Case("six extension headers of 2,048 bytes, which no first segment holds",
         chain([(DESTINATION, options(255))] * 6, tcp()), Drop("drop_truncated"), frags=True),
    Case("100 extension headers", chain([(DESTINATION, options())] * 100, tcp()), Drop("drop_extensions")),
    Case("seven, not for a service", chain([(DESTINATION, options())] * 7, tcp(), dst=NOBODY6), Pass("pass_not_service")),
    Case("no next header", ether() / ip6(nh=NOTHING) / Raw(b"data"), Drop("drop_protocol")),
    Case("no next header behind an extension", chain([(DESTINATION, options())], tcp(), NOTHING), Drop("drop_protocol")),
    Case("ESP", ether() / ip6(nh=ESP) / Raw(bytes(32)), Drop("drop_protocol")),
    Case("ESP behind an extension", chain([(DESTINATION, options())], tcp(), ESP), Drop("drop_protocol")),
    Case("a mobility header", ether() / ip6(nh=MOBILITY) / Raw(bytes(32)), Drop("drop_protocol")),
    Case("HIP", ether() / ip6(nh=HIP) / Raw(bytes(40)), Drop("drop_protocol")),
    Case("an unknown next header", ether() / ip6(nh=253) / Raw(bytes(32)), Drop("drop_protocol")),
]

# ---- fragments ----

# Each alone; for datagrams see test_fragments.py.
FRAGMENTS = {
    "a later fragment": fragment(100, True),
    "the last fragment": fragment(100, False),
    "the fragment at the highest offset": fragment(8191, False),
}
for name, header in FRAGMENTS.items():
    CASES += [
        Case(f"{name} of IPv6 for a service", chain([(FRAGMENT, header)], udp(), 17), Drop("drop_fragment_unknown")),
        Case(f"{name} behind options", chain([(HOP_BY_HOP, options()), (FRAGMENT, header)], tcp()),
             Drop("drop_fragment_unknown")),
        Case(f"{name} of IPv6, not for a service", chain([(FRAGMENT, header)], tcp(), dst=NOBODY6), Pass("pass_not_service")),
        Case(f"{name} of IPv6 for an address of the host", chain([(FRAGMENT, header)], tcp(), dst=LOCAL6),
             Pass("pass_unknown_port")),
    ]
FIRST = (FRAGMENT, fragment(0, True, 4711))
CASES += [
    Case("a first fragment of IPv6 goes to the backend", chain([FIRST], udp(), 17), Forward("udp6", UDP_FLOW)),
    Case("a first fragment of IPv6 behind options", chain([(HOP_BY_HOP, options()), FIRST], tcp()),
         Forward("www6", TCP_FLOW)),
    Case("a first fragment of IPv6 with options behind its header", chain([FIRST, (DESTINATION, options())], tcp()),
         Forward("www6", TCP_FLOW)),
    Case("a first fragment of IPv6, not for a service", chain([FIRST], tcp(), dst=NOBODY6), Pass("pass_not_service")),
    Case("a first fragment of IPv6 for an unknown port", chain([FIRST], tcp(81)), Drop("drop_unknown_port")),
    Case("a first fragment of IPv6 for another port of the host's", chain([FIRST], tcp(22), dst=LOCAL6),
         Pass("pass_unknown_port")),
    Case("a first fragment of IPv6 that ends inside the TCP header",
         bytes(chain([FIRST], tcp(), plen=24))[: 14 + 40 + 24], Drop("drop_truncated")),
    Case("a later fragment that says it begins with options",
         chain([(FRAGMENT, fragment(9, True, 4712))], tcp(), DESTINATION), Drop("drop_fragment_unknown")),
    Case("a later fragment of an unknown protocol", chain([(FRAGMENT, fragment(9, True, 4713))], tcp(), 253),
         Drop("drop_protocol")),
]
RESERVED = bytes([0]) + struct.pack(">HI", 0x0006, 7)
CASES.append(Case("an atomic fragment with the reserved bits set", chain([(FRAGMENT, RESERVED)], tcp()),
                  Forward("www6", TCP_FLOW)))

# ---- contradictions and lengths ----


def changed(at, value, base=None):
    frame = bytearray(bytes(base if base is not None else ether() / ip6() / tcp()))
    frame[14 + at : 14 + at + len(value)] = value
    return bytes(frame)


def payload_length(value, base=None):
    return changed(4, struct.pack(">H", value), base)


PAYLOAD_LENGTH = len(tcp())
CASES += [Case(f"version {version} under the ethertype of IPv6", changed(0, bytes([version << 4])),
               Drop("drop_ip_header")) for version in (0, 4, 5, 7, 15)]
CASES += [
    Case("a bad IPv6 version, not for a service", changed(0, b"\x40", ether() / ip6(NOBODY6) / tcp()), Pass("pass_not_service")),
    Case("payload length 0 (a jumbogram, or nothing)", payload_length(0), Drop("drop_truncated")),
    Case("payload length that ends inside the TCP header", payload_length(19), Drop("drop_truncated")),
    Case("payload length that ends inside the extension headers", payload_length(7, chain([(DESTINATION, options())], tcp())),
         Drop("drop_truncated")),
    Case("payload length that ends with the extension headers", payload_length(8, chain([(DESTINATION, options())], tcp())),
         Drop("drop_truncated")),
    Case("payload length that ends with the TCP header", payload_length(20), Forward("www6")),
    Case("payload length that ends inside the UDP header", payload_length(7, ether() / ip6() / udp()),
         Drop("drop_truncated")),
    Case("payload length that ends with the UDP header, which claims more", payload_length(8, ether() / ip6() / udp()),
         Drop("drop_l4_header")),
    Case("payload length that ends with the UDP header", payload_length(8, ether() / ip6() / udp(len=8)), Forward("udp6")),
    Case("a UDP length of 7 over IPv6", ether() / ip6() / udp(len=7), Drop("drop_l4_header")),
    Case("a TCP header that claims 16 bytes over IPv6", ether() / ip6() / tcp(dataofs=4), Drop("drop_l4_header")),
    Case("a TCP header that claims 16 bytes behind options", chain([(DESTINATION, options())], tcp(dataofs=4)),
         Drop("drop_l4_header")),
    Case("payload length one more than the frame holds", payload_length(PAYLOAD_LENGTH + 1), Drop("drop_truncated")),
    Case("payload length 65,535", payload_length(65535), Drop("drop_truncated")),
    Case("payload length one less than the frame holds", payload_length(PAYLOAD_LENGTH - 1), Forward("www6")),
    Case("an extension header that reaches beyond the payload",
         payload_length(24, chain([(DESTINATION, options(3))], tcp())), Drop("drop_truncated")),
    Case("an extension header that reaches beyond the frame",
         ether() / ip6(nh=DESTINATION) / Raw(bytes([6, 255]) + bytes(62)), Drop("drop_truncated")),
    Case("a chain that ends with the frame", ether() / ip6(nh=DESTINATION) / Raw(bytes([DESTINATION, 0]) + bytes(6)),
         Drop("drop_truncated")),
    Case("an extension header that says it is as short as can be, and the frame ends in it",
         ether() / ip6(nh=HOP_BY_HOP) / Raw(bytes([6, 0, 1, 4])), Drop("drop_truncated")),
]
WHOLE = bytes(chain([(HOP_BY_HOP, options()), (DESTINATION, options(1))], tcp(payload=b"payload")))
CASES += [
    Case(f"IPv6, cut after {size} of {len(WHOLE)} bytes", WHOLE[:size],
         Pass("pass_not_ip") if size < 54 else Drop("drop_truncated")) for size in range(14, len(WHOLE))
]
SHORT = bytes(ether() / ip6(NOBODY6) / tcp())
CASES += [
    Case(f"IPv6, not for a service, cut after {size} bytes", SHORT[:size],
         Pass("pass_not_ip") if size < 54 else Pass("pass_not_service")) for size in (14, 53, 54, 60, 74)
]

# ---- hop limit, addresses ----

CASES += [
    Case("hop limit 0", ether() / ip6(hlim=0) / tcp(), Drop("drop_ttl")),
    Case("hop limit 1", ether() / ip6(hlim=1) / tcp(), Drop("drop_ttl")),
    Case("hop limit 2 arrives with 1 inside and 64 outside", ether() / ip6(hlim=2) / tcp(), Forward("www6")),
    Case("hop limit 255", ether() / ip6(hlim=255) / tcp(), Forward("www6")),
    Case("hop limit 1, IPv6 in IPv6", ether() / ip6(hlim=1) / udp(), Drop("drop_ttl")),
    Case("hop limit 2, IPv6 in IPv6", ether() / ip6(hlim=2) / udp(), Forward("udp6")),
    Case("hop limit 1 behind extensions", chain([(DESTINATION, options())], tcp(), hlim=1), Drop("drop_ttl")),
    Case("hop limit 1, without a backend: that is said first", ether() / ip6(ODD6, hlim=1) / tcp(80),
         Drop("drop_no_backend")),
    Case("an IPv4-mapped destination is no IPv4 service", ether() / ip6("::ffff:192.0.2.10") / tcp(),
         Pass("pass_not_service")),
    Case("an IPv4-compatible destination is no IPv4 service", ether() / ip6("::192.0.2.10") / tcp(),
         Pass("pass_not_service")),
    Case("a translated destination (64:ff9b::/96) is no IPv4 service", ether() / ip6("64:ff9b::192.0.2.10") / tcp(),
         Pass("pass_not_service")),
    Case("an IPv4-mapped source is hashed like another", ether() / ip6(src="::ffff:198.51.100.7") / tcp(),
         Forward("www6")),
    Case("a link-local source", ether() / ip6(src="fe80::1") / tcp(), Forward("www6")),
    Case("a flow label inside does not show outside", ether() / ip6(fl=0xABCDE) / udp(), Forward("udp6")),
    Case("half of a service address is none", ether() / ip6("2001:db8:1::10") / tcp(), Pass("pass_not_service")),
]

# ---- neighbour discovery for the address itself is the host's ----

for name, message in {
    "router solicitation": ICMPv6ND_RS(), "router advertisement": ICMPv6ND_RA(),
    "neighbour solicitation": ICMPv6ND_NS(tgt=WWW6), "neighbour advertisement": ICMPv6ND_NA(tgt=WWW6),
    "redirect": ICMPv6ND_Redirect(tgt=WWW6, dst=WWW6),
}.items():
    CASES.append(Case(f"a {name} by unicast", ether() / ip6(hlim=255) / message, Pass("pass_not_service")))
CASES.append(Case("ports of the flow are read behind extensions, not in them",
                  chain([(DESTINATION, bytes([0, 0x1F, 0x90, 0x00, 0x50, 0, 0]))], tcp(443, 1234)),
                  Forward("www6", Flow(TCP_FLOW.source, 1234, WWW6, 443, 6))))

# ---- sources ----

CASES += [Case(f"from {source}", ether() / ip6(src=source) / tcp(), Forward("www6"))
          for source in ("2001:db8::11", "fd00::1", "::2", "fe80::2")]
CASES += [Case(f"from {source}, which is no client", ether() / ip6(src=source) / tcp(), Drop("drop_source"))
          for source in ("::", "::1", "ff02::1", "ff0e::1")]
CASES += [Case(f"from {source}, not for a service", ether() / ip6(NOBODY6, src=source) / tcp(), Pass("pass_not_service"))
          for source in ("::", "::1", "ff02::1", NOBODY6)]
CASES += [
    Case("from ::1 behind options", chain([(DESTINATION, options())], tcp(), src="::1"), Drop("drop_source")),
    Case("seven extension headers to an address of the host", chain([(DESTINATION, options())] * 7, tcp(), dst=LOCAL6),
         Pass("pass_unknown_port")),
    Case("from ::1 to a service on an address of the host", ether() / ip6(LOCAL6, src="::1") / tcp(80), Drop("drop_source")),
    Case("from ::1 to another port of it", ether() / ip6(LOCAL6, src="::1") / tcp(22), Pass("pass_unknown_port")),
]
