# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""GUE packets to shunt_decap, which unwraps the port that it was loaded with."""

import struct

from scapy.layers.inet import UDP, IPOption_NOP
from scapy.layers.inet6 import IPv6ExtHdrDestOpt, IPv6ExtHdrFragment
from scapy.layers.l2 import Dot1AD, Dot1Q
from scapy.packet import Raw

from cases import NOBODY, NOBODY6, Case, Drop, Pass, ether, ip4, ip6, udp
from cases_decap import CE, ECT0, FIGURE_4, Unwrapped, dscp, inner4, inner6, outer4, outer6

PORT = 6080
CASES = []


def gue(inner, port=PORT, control=0, protocol=None, flags=0, **fields):
    """UDP, four bytes of GUE, the client's packet."""
    inner = bytes(inner)
    protocol = protocol if protocol is not None else 41 if inner[0] >> 4 == 6 else 4
    return UDP(**{"sport": 0xC123, "dport": port, **fields}) / Raw(struct.pack(">BBH", control, protocol, flags) + inner)


OUTER = {"IPv4": lambda **f: outer4(17, **f), "IPv6": lambda **f: outer6(17, **f)}
INNER = {"IPv4": inner4, "IPv6": inner6}
TAGS = {"no tag": None, "one tag": Dot1Q(vlan=100, prio=3), "two tags": Dot1AD(vlan=2) / Dot1Q(vlan=3)}


def add(sentence, frame, expect, **options):
    CASES.append(Case(f"GUE: {sentence}", frame, expect, **options))


for outside, outer in OUTER.items():
    for inside, inner in INNER.items():
        pair = f"{inside} in {outside}"
        outer_is_4, inner_is_4 = outside == "IPv4", inside == "IPv4"
        for name, tags in TAGS.items():
            link = ether() / tags if tags else ether()
            add(f"{pair}, {name}: unwrapped", link / outer() / gue(inner()), Unwrapped())
        add(f"{pair}: UDP inside", ether() / outer() / gue((ip4() if inner_is_4 else ip6()) / udp()), Unwrapped())
        add(f"{pair}: without a checksum", ether() / outer() / gue(inner(), chksum=0), Unwrapped())
        add(f"{pair}: a checksum is the inner packet's affair", ether() / outer() / gue(inner(), chksum=0x1234), Unwrapped())
        add(f"{pair}: any source port", ether() / outer() / gue(inner(), sport=1), Unwrapped())
        add(f"{pair}: padding stays behind", bytes(ether() / outer() / gue(inner())) + bytes(23), Unwrapped())
        add(f"{pair}: the inner TTL is left as it is",
            ether() / outer() / gue(inner(**{"ttl" if inner_is_4 else "hlim": 1})), Unwrapped())
        for ecn_inside, row in FIGURE_4.items():
            for ecn_outside, result in row.items():
                add(f"{pair}: ECN {ecn_outside} outside, {ecn_inside} inside",
                    ether() / outer(**dscp(outer_is_4, 0x50 | ecn_outside)) / gue(
                        inner(**dscp(inner_is_4, 0xB8 | ecn_inside))),
                    Drop("decap_drop_ecn") if result is None else Unwrapped(result))
        # Lists.
        add(f"{pair}: source not listed", ether() / outer(src="10.1.0.3" if outer_is_4 else "fd00:1::3") / gue(inner()),
            Drop("decap_drop_source"))
        add(f"{pair}: inner destination not listed",
            ether() / outer() / gue(inner(dst=NOBODY if inner_is_4 else NOBODY6)), Drop("decap_drop_inner"))
        for address, listed in ({"10.8.0.0": True, "10.9.255.255": True, "10.10.0.0": False} if outer_is_4 else {
                "2001:db8:ffff::abcd": True, "2001:db8:fffe::1": False}).items():
            add(f"{pair}: source {address} of a prefix", ether() / outer(src=address) / gue(inner()),
                Unwrapped() if listed else Drop("decap_drop_source"))
        # Contradictions.
        for control in (0x20, 0x01, 0x1F, 0x40, 0x45, 0x80, 0xC0):
            add(f"{pair}: control byte {control:#x}", ether() / outer() / gue(inner(), control=control),
                Drop("decap_drop_header"))
        for flags in (0x0001, 0x8000, 0x0080):
            add(f"{pair}: flags {flags:#x}", ether() / outer() / gue(inner(), flags=flags), Drop("decap_drop_header"))
        for protocol in (0, 1, 6, 17, 47, 58, 59, 41 if inner_is_4 else 4):
            add(f"{pair}: protocol {protocol}", ether() / outer() / gue(inner(), protocol=protocol),
                Drop("decap_drop_header"))
        size = 12 + len(bytes(inner()))
        for length, reason in {0: "header", 8: "header", 11: "header", 12: "truncated", size - 1: "truncated",
                               size + 1: "header", 0xFFFF: "header"}.items():
            add(f"{pair}: UDP length {length} of {size}", ether() / outer() / gue(inner(), len=length),
                Drop(f"decap_drop_{reason}"))
        add(f"{pair}: UDP shorter than the packet around it",
            ether() / outer() / gue(inner(), len=size) / Raw(b"behind"), Unwrapped())
        # The port decides.
        for port in (6079, 6081, 4789, 53, 0):
            add(f"{pair}: port {port} is not ours", ether() / outer() / gue(inner(), port=port),
                Pass("decap_pass_not_tunnel"))
        add(f"{pair}: from the port, but not to it", ether() / outer() / gue(inner(), port=53, sport=PORT),
            Pass("decap_pass_not_tunnel"))
    whole, headers = bytes(ether() / outer() / gue(inner4())), 14 + (20 if outside == "IPv4" else 40)
    for size in range(headers, len(whole)):
        add(f"in {outside}, cut after {size} of {len(whole)} bytes", whole[:size],
            Pass("decap_pass_not_tunnel") if size < headers + 8 else Drop("decap_drop_truncated"))
    add(f"in {outside}: a datagram without anything", ether() / outer() / UDP(sport=9, dport=PORT), Drop("decap_drop_truncated"))
    add(f"in {outside}: the same, padded", bytes(ether() / outer() / UDP(sport=9, dport=PORT)) + bytes(18),
        Drop("decap_drop_truncated"))
    add(f"in {outside}: a jumbo frame", ether() / outer() / gue(ip4() / udp(payload=bytes(8001))), Unwrapped(), frags=True)

for words in (1, 10):
    add(f"{words * 4} bytes of outer options", ether() / outer4(17, options=[IPOption_NOP()] * words * 4) / gue(inner4()),
        Unwrapped())
add("a wrong inner checksum is not made right by an ECN mark",
    ether() / outer4(17, tos=CE) / gue(ip4(tos=ECT0, chksum=0x1234) / udp()), Unwrapped(CE))
add("the first fragment", ether() / outer4(17, flags="MF") / gue(inner4()), Drop("decap_drop_fragment"))
add("a later fragment has no port, whatever stands there", ether() / outer4(17, flags=0, frag=100) / gue(inner4()),
    Pass("decap_pass_not_tunnel"))
add("a later fragment with more to come", ether() / outer4(17, flags="MF", frag=100) / gue(inner4()),
    Pass("decap_pass_not_tunnel"))
add("an IPv6 fragment", ether() / outer6(44) / IPv6ExtHdrFragment(nh=17, m=1) / gue(inner4()),
    Pass("decap_pass_not_tunnel"))
add("behind destination options", ether() / outer6(60) / IPv6ExtHdrDestOpt(nh=17) / gue(inner4()),
    Pass("decap_pass_not_tunnel"))
add("in GUE is unwrapped once", ether() / outer4(17) / gue(ip4() / gue(inner4())), Unwrapped())
add("headers in a first segment of 86 bytes", ether() / outer4(17) / gue(ip4() / udp(payload=bytes(1000))), Unwrapped(),
    options={"linear": 86}, frags=True)
