# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The IPv4 header: options, contradictions, lengths, fragments, TTL, DF and id."""

import struct

from scapy.layers.inet import IP, IPOption_LSRR, IPOption_NOP, IPOption_Router_Alert, IPOption_Timestamp
from scapy.packet import Raw

from cases import LOCAL, NOBODY, ODD, WWW, Case, Drop, Forward, Pass, ether, ip4, tcp, udp

CASES = []

# ---- options ----

OPTIONS = {
    "a router alert": [IPOption_Router_Alert()],
    "four NOPs": [IPOption_NOP()] * 4,
    "a source route": [IPOption_LSRR(routers=["10.9.9.9"])],
    "a timestamp": [IPOption_Timestamp()],
    "40 bytes of options": [IPOption_NOP()] * 40,
}
for name, options in OPTIONS.items():
    CASES += [
        Case(f"{name}: goes to the backend", ether() / ip4(options=options) / tcp(), Forward("www")),
        Case(f"{name}: a UDP datagram in IPv6", ether() / ip4(options=options) / udp(), Forward("dns")),
        Case(f"{name}: not for a service", ether() / ip4(NOBODY, options=options) / tcp(), Pass("pass_not_service")),
    ]
CASES += [
    Case("options that look like another port are not taken for one",
         ether() / ip4(options=[IPOption_NOP()] * 4) / tcp(81), Drop("drop_unknown_port")),
]

# ---- contradictions ----


def changed(at, value, base=None, l3=14):
    """A good frame with bytes at an offset of its IP header replaced."""
    frame = bytearray(bytes(base if base is not None else ether() / ip4() / tcp()))
    frame[l3 + at : l3 + at + len(value)] = value
    return bytes(frame)


def length(value, base=None):
    return changed(2, struct.pack(">H", value), base)


GOOD = len(ip4() / tcp())
LONG = ether() / ip4() / tcp(payload=bytes(64))
CASES += [Case(f"a header length of {words * 4} bytes", changed(0, bytes([0x40 | words])), Drop("drop_ip_header"))
          for words in range(5)]
CASES += [Case(f"version {version} under the ethertype of IPv4", changed(0, bytes([version << 4 | 5])),
               Drop("drop_ip_header")) for version in (0, 3, 5, 6, 15)]
CASES += [
    Case("a header length of 60 bytes in a packet of 58", changed(0, b"\x4f", length(58)), Drop("drop_ip_header")),
    Case("a header length of 60 bytes that leaves 19 for TCP", length(79, changed(0, b"\x4f", LONG)),
         Drop("drop_truncated")),
    Case("a header length of 60 bytes that takes TCP for options", changed(0, b"\x4f", LONG), Drop("drop_l4_header")),
    Case("total length 0", length(0), Drop("drop_ip_header")),
    Case("total length below the header", length(19), Drop("drop_ip_header")),
    Case("total length of a bare IP header", length(20), Drop("drop_truncated")),
    Case("total length that ends inside the TCP header", length(39), Drop("drop_truncated")),
    Case("total length that ends with the TCP header", length(40), Forward("www")),
    Case("total length that ends inside the UDP header", length(27, ether() / ip4() / udp()), Drop("drop_truncated")),
    Case("total length that ends with the UDP header, which claims more", length(28, ether() / ip4() / udp()),
         Drop("drop_l4_header")),
    Case("total length that ends with the UDP header", length(28, ether() / ip4() / udp(len=8)), Forward("dns")),
    Case("total length one more than the frame holds", length(GOOD + 1), Drop("drop_truncated")),
    Case("total length 65,535", length(65535), Drop("drop_truncated")),
    Case("total length one less than the frame holds", length(GOOD - 1), Forward("www")),
    Case("a bad header length, not for a service", changed(0, b"\x44", ether() / ip4(NOBODY) / tcp()),
         Pass("pass_not_service")),
    Case("a bad version, not for a service", changed(0, b"\x65", ether() / ip4(NOBODY) / tcp()), Pass("pass_not_service")),
    Case("a bad total length, not for a service", length(7, ether() / ip4(NOBODY) / tcp()), Pass("pass_not_service")),
    Case("a wrong header checksum is not made right", changed(10, b"\x12\x34"), Forward("www")),
    Case("the reserved flag is not copied outside", changed(6, b"\xc0\x00"), Forward("www")),
    Case("a TCP header that claims 60 bytes in a packet that has them not",
         ether() / ip4() / tcp(dataofs=15, payload=b""), Drop("drop_l4_header")),
    Case("a TCP header that claims all of the packet", ether() / ip4() / tcp(dataofs=15, payload=bytes(40)),
         Forward("www")),
    Case("a TCP header that claims one word too many", ether() / ip4() / tcp(dataofs=15, payload=bytes(39)),
         Drop("drop_l4_header")),
    Case("a wrong TCP checksum is the backend's to judge", ether() / ip4() / tcp(chksum=0xBEEF), Forward("www")),
    Case("UDP without a checksum", ether() / ip4() / udp(chksum=0), Forward("dns")),
]

# ---- cut short at every byte ----

WHOLE = bytes(ether() / ip4() / tcp(payload=b"payload"))
NOT_FOR_US = bytes(ether() / ip4(NOBODY) / tcp(payload=b"payload"))
CASES += [
    Case(f"cut after {size} of {len(WHOLE)} bytes",
         WHOLE[:size], Pass("pass_not_ip") if size < 34 else Drop("drop_truncated")) for size in range(14, len(WHOLE))
]
CASES += [
    Case(f"not for a service, cut after {size} bytes", NOT_FOR_US[:size],
         Pass("pass_not_ip") if size < 34 else Pass("pass_not_service")) for size in (14, 20, 33, 34, 40, 53, 60)
]

CASES += [Case(f"a TCP header that claims {words * 4} bytes", ether() / ip4() / tcp(dataofs=words), Drop("drop_l4_header"))
          for words in range(5)]
for claimed in (0, 1, 7, 27, 65535):
    CASES.append(Case(f"a UDP length of {claimed} for 18 bytes of payload", ether() / ip4() / udp(len=claimed),
                      Drop("drop_l4_header")))
for claimed in (8, 25, 26):
    CASES.append(Case(f"a UDP length of {claimed} for 18 bytes of payload", ether() / ip4() / udp(len=claimed),
                      Forward("dns")))

# ---- fragments, each alone; for datagrams see test_fragments.py ----

FRAGMENTS = {
    "a middle fragment": {"flags": "MF", "frag": 100},
    "the last fragment": {"flags": 0, "frag": 185},
    "a fragment with DF": {"flags": "MF+DF", "frag": 1},
    "a fragment at the highest offset": {"flags": 0, "frag": 8191},
}
for name, fields in FRAGMENTS.items():
    CASES += [
        Case(f"{name} for a service", ether() / ip4(id=7, **fields) / udp(payload=bytes(64)),
             Drop("drop_fragment_unknown")),
        Case(f"{name}, not for a service", ether() / ip4(NOBODY, **fields) / udp(), Pass("pass_not_service")),
        Case(f"{name} for an address of the host", ether() / ip4(LOCAL, id=7, **fields) / tcp(), Pass("pass_unknown_port")),
    ]
CASES += [
    Case("a fragment of nothing but 8 bytes", ether() / ip4(id=7, flags=0, frag=3, proto=17) / Raw(b"12345678"),
         Drop("drop_fragment_unknown")),
    Case("a first fragment goes to the backend", ether() / ip4(flags="MF") / udp(payload=bytes(64)), Forward("dns")),
    Case("a first fragment of TCP", ether() / ip4(flags="MF") / tcp(payload=bytes(64)), Forward("www")),
    Case("a first fragment whose UDP length is that of the datagram",
         ether() / ip4(flags="MF") / udp(len=4000, payload=bytes(64)), Forward("dns")),
    Case("a first fragment whose UDP length is below its header's",
         ether() / ip4(flags="MF") / udp(len=7, payload=bytes(64)), Drop("drop_l4_header")),
    Case("a first fragment that ends inside the TCP header (RFC 1858)",
         ether() / ip4(flags="MF", proto=6) / Raw(bytes(tcp())[:16]), Drop("drop_truncated")),
    Case("a first fragment that ends inside the TCP options",
         ether() / ip4(flags="MF") / tcp(dataofs=8, payload=bytes(8)), Drop("drop_l4_header")),
    Case("a first fragment of 8 bytes of UDP", ether() / ip4(flags="MF") / udp(len=1000, payload=b""), Forward("dns")),
    Case("a first fragment, not for a service", ether() / ip4(NOBODY, flags="MF") / udp(), Pass("pass_not_service")),
    Case("a first fragment for a service on an address of the host", ether() / ip4(LOCAL, flags="MF") / tcp(80),
         Forward("local")),
    Case("a first fragment for another port of it is the host's", ether() / ip4(LOCAL, flags="MF") / tcp(22),
         Pass("pass_unknown_port")),
    Case("a first fragment for an unknown port", ether() / ip4(flags="MF") / tcp(81), Drop("drop_unknown_port")),
]

# ---- TTL ----

CASES += [
    Case("TTL 0", ether() / ip4(ttl=0) / tcp(), Drop("drop_ttl")),
    Case("TTL 1", ether() / ip4(ttl=1) / tcp(), Drop("drop_ttl")),
    Case("TTL 2 arrives with 1 inside and 64 outside", ether() / ip4(ttl=2) / tcp(), Forward("www")),
    Case("TTL 255", ether() / ip4(ttl=255) / tcp(), Forward("www")),
    Case("TTL 0, IPv4 in IPv6", ether() / ip4(ttl=0) / udp(), Drop("drop_ttl")),
    Case("TTL 1, IPv4 in IPv6", ether() / ip4(ttl=1) / udp(), Drop("drop_ttl")),
    Case("TTL 2, IPv4 in IPv6", ether() / ip4(ttl=2) / udp(), Forward("dns")),
    Case("TTL 1, not for a service", ether() / ip4(NOBODY, ttl=1) / tcp(), Pass("pass_not_service")),
    Case("TTL 1, without a backend: that is said first", ether() / ip4(ODD, ttl=1) / tcp(80), Drop("drop_no_backend")),
]


def with_checksum(value):
    """A packet whose header checksum is `value`, by its id: the one's complement sum of all words is 0xffff."""
    rest = 0xFFFF - IP(bytes(ip4(id=0) / tcp())).chksum
    packet = ip4(id=(0xFFFF - value - rest) % 0xFFFF) / tcp()
    assert IP(bytes(packet)).chksum == value
    return ether() / packet


# The decrement adds 0x0100 to the checksum: with and without the carry around.
for before in (0x0000, 0xFEFE, 0xFEFF, 0xFF00, 0xFFFE):
    CASES.append(Case(f"a header checksum of {before:#06x} comes out right", with_checksum(before), Forward("www")))

# ---- DF and id ----

CASES += [
    Case("DF: outside too, with id 0", ether() / ip4(flags="DF", id=0x4321) / tcp(), Forward("www")),
    Case("no DF: none outside, with an id of its own", ether() / ip4(flags=0, id=0x4321) / tcp(), Forward("www")),
    Case("no DF and id 0", ether() / ip4(flags=0, id=0) / tcp(), Forward("www")),
    Case("no DF and id 65,535", ether() / ip4(flags=0, id=65535) / tcp(), Forward("www")),
    Case("no DF in IPv6, which has none", ether() / ip4(flags=0, id=77) / udp(), Forward("dns")),
    Case("the evil bit is not copied outside", ether() / ip4(flags="evil", id=5) / tcp(), Forward("www")),
]
CASES += [Case(f"from {source}", ether() / ip4(WWW, src=source) / tcp(), Forward("www"))
          for source in ("1.0.0.0", "10.0.0.1", "126.255.255.255", "128.0.0.0", "169.254.0.1", "223.255.255.255")]
CASES += [Case(f"from {source}, which is no client", ether() / ip4(WWW, src=source) / tcp(), Drop("drop_source"))
          for source in ("0.0.0.0", "0.0.0.1", "0.255.255.255", "127.0.0.1", "127.255.255.255", "224.0.0.1", "240.0.0.1",
                         "255.255.255.255", WWW)]
CASES += [Case(f"from {source}, not for a service", ether() / ip4(NOBODY, src=source) / tcp(), Pass("pass_not_service"))
          for source in ("0.0.0.0", "127.0.0.1", "255.255.255.255", NOBODY)]

# ---- an address of the host's too: what cannot be for a service is the host's ----

CASES += [
    Case("a bad header length, to an address of the host", changed(0, b"\x44", ether() / ip4(LOCAL) / tcp()),
         Pass("pass_unknown_port")),
    Case("a bad total length, to an address of the host", length(65535, ether() / ip4(LOCAL) / tcp()),
         Pass("pass_unknown_port")),
    Case("a bad TCP header for a service on it", ether() / ip4(LOCAL) / tcp(80, dataofs=4), Drop("drop_l4_header")),
    Case("a bad TCP header for another port of it", ether() / ip4(LOCAL) / tcp(22, dataofs=4), Pass("pass_unknown_port")),
    Case("a bad UDP length to it", ether() / ip4(LOCAL) / udp(53, len=3), Pass("pass_unknown_port")),
    Case("from loopback to a service on it", ether() / ip4(LOCAL, src="127.0.0.1") / tcp(80), Drop("drop_source")),
    Case("from loopback to another port of it", ether() / ip4(LOCAL, src="127.0.0.1") / tcp(22),
         Pass("pass_unknown_port")),
    Case("from itself to a service on it", ether() / ip4(LOCAL, src=LOCAL) / tcp(80), Drop("drop_source")),
    Case("from itself to another port of it", ether() / ip4(LOCAL, src=LOCAL) / tcp(22), Pass("pass_unknown_port")),
    Case("source port 0 to a service on it", ether() / ip4(LOCAL) / tcp(80, 0), Drop("drop_port_zero")),
    Case("source port 0 to another port of it", ether() / ip4(LOCAL) / tcp(22, 0), Pass("pass_unknown_port")),
    Case("too short for ports, to it", ether() / ip4(LOCAL, proto=6) / Raw(b"123"), Pass("pass_unknown_port")),
    Case("too short for TCP, but for a service on it", ether() / ip4(LOCAL, proto=6) / Raw(bytes(tcp(80))[:19]),
         Drop("drop_truncated")),
]
