# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Ethernet, VLAN tags, what is no IP, padding."""

from scapy.layers.l2 import ARP, Dot1AD, Dot1Q

from cases import CLIENT, NOBODY, WWW, Case, Drop, Forward, Pass, ether, ip4, ip6, tcp, udp

CASES = [
    Case("a TCP segment for a service goes to its backend", ether() / ip4() / tcp(), Forward("www")),
    Case("a TCP segment over IPv6 goes to its backend", ether() / ip6() / tcp(), Forward("www6")),
    Case("a UDP datagram goes to its backend", ether() / ip4() / udp(), Forward("dns")),
    Case("a UDP datagram over IPv6 goes to its backend", ether() / ip6() / udp(), Forward("udp6")),
    Case("the destination MAC address is not looked at", ether(dst="ff:ff:ff:ff:ff:ff") / ip4() / tcp(), Forward("www")),
]

# ---- tags: kept as they are ----

TAGS = {
    "one 802.1Q tag": Dot1Q(vlan=100),
    "one 802.1Q tag with priority and DEI": Dot1Q(vlan=4094, prio=5, id=1),
    "one priority tag (VLAN 0)": Dot1Q(vlan=0, prio=3),
    "one 802.1ad tag": Dot1AD(vlan=200),
    "802.1ad outside, 802.1Q inside": Dot1AD(vlan=200) / Dot1Q(vlan=100),
    "two 802.1Q tags": Dot1Q(vlan=7) / Dot1Q(vlan=8, prio=2),
    "two 802.1ad tags": Dot1AD(vlan=7) / Dot1AD(vlan=8),
}
for name, tags in TAGS.items():
    CASES += [
        Case(f"{name}: IPv4 in IPv4 keeps it", ether() / tags / ip4() / tcp(), Forward("www")),
        Case(f"{name}: IPv4 in IPv6 keeps it", ether() / tags / ip4() / udp(), Forward("dns")),
        Case(f"{name}: IPv6 in IPv4 keeps it", ether() / tags / ip6() / tcp(), Forward("www6")),
        Case(f"{name}: IPv6 in IPv6 keeps it", ether() / tags / ip6() / udp(), Forward("udp6")),
        Case(f"{name}: kept on the way out of another interface", ether() / tags / ip4() / tcp(9000),
             Forward("www-aside")),
        Case(f"{name}: not for a service", ether() / tags / ip4(NOBODY) / tcp(), Pass("pass_not_service")),
        Case(f"{name}: unknown port", ether() / tags / ip4() / tcp(81), Drop("drop_unknown_port")),
    ]

THREE = Dot1AD(vlan=1) / Dot1Q(vlan=2) / Dot1Q(vlan=3)
CASES += [
    Case("three tags are left to the host", ether() / THREE / ip4() / tcp(), Pass("pass_not_ip")),
    Case("three tags over IPv6 are left to the host", ether() / THREE / ip6() / tcp(), Pass("pass_not_ip")),
    Case("a tag and no more", bytes(ether() / Dot1Q(vlan=1, type=0x0800)), Pass("pass_not_ip")),
    Case("a tag cut short", bytes(ether(type=0x8100)) + b"\x00\x01\x08", Pass("pass_not_ip")),
    Case("a second tag cut short", bytes(ether() / Dot1AD(vlan=1, type=0x8100)) + b"\x00", Pass("pass_not_ip")),
    Case("an ethertype of 802.1Q's older double tags (0x9100) is no tag",
         bytes(ether(type=0x9100)) + b"\x00\x01\x08\x00" + bytes(ip4() / tcp()), Pass("pass_not_ip")),
]

# ---- no IP ----

CASES += [
    Case("ARP for a service address", ether(dst="ff:ff:ff:ff:ff:ff") / ARP(psrc=CLIENT, pdst=WWW), Pass("pass_not_ip")),
    Case("LLDP", bytes(ether(dst="01:80:c2:00:00:0e", type=0x88CC)) + bytes(46), Pass("pass_not_ip")),
    Case("an 802.3 length instead of an ethertype", bytes(ether(type=38)) + b"\x42\x42\x03" + bytes(43),
         Pass("pass_not_ip")),
    Case("an Ethernet header and no more", bytes(ether(type=0x0800)), Pass("pass_not_ip")),
    Case("an Ethernet header of IPv6 and no more", bytes(ether(type=0x86DD)), Pass("pass_not_ip")),
    Case("MPLS", bytes(ether(type=0x8847)) + bytes.fromhex("00010140") + bytes(ip4() / tcp()), Pass("pass_not_ip")),
]

# ---- padding: the outer length is that of the packet, and what pads the frame stays behind it ----


def padded(packet, size=60, fill=b"\x00"):
    frame = bytes(packet)
    return frame + fill * (size - len(frame))


CASES += [
    Case("a bare ACK padded to 60 bytes", padded(ether() / ip4() / tcp(payload=b"", flags="A")), Forward("www")),
    Case("a bare ACK padded to 60 bytes, IPv4 in IPv6", padded(ether() / ip4() / udp(payload=b"")), Forward("dns")),
    Case("an empty UDP datagram padded with what is no zero",
         padded(ether() / ip4() / udp(4000, payload=b""), fill=b"\xa5"), Forward("udp")),
    Case("a tagged bare ACK padded to 64 bytes", padded(ether() / Dot1Q(vlan=9) / ip4() / tcp(payload=b""), 64),
         Forward("www")),
    Case("IPv6 with an Ethernet trailer", padded(ether() / ip6() / udp(payload=b"x"), 80, b"\x5a"), Forward("udp6")),
    Case("an odd number of bytes", ether() / ip4() / tcp(payload=b"odd"), Forward("www")),
    Case("one byte of payload", ether() / ip4() / tcp(payload=b"1"), Forward("www")),
    Case("no padding at all, below 60 bytes", ether() / ip4() / udp(4000, payload=b""), Forward("udp")),
    Case("a full Ethernet frame of 1,514 bytes", ether() / ip4() / tcp(payload=bytes(1460)), Forward("www")),
    Case("a full Ethernet frame of 1,514 bytes over IPv6", ether() / ip6() / tcp(payload=bytes(1440)), Forward("www6")),
]
