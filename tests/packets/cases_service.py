# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Which service a packet is for, and which backend its flow has."""

from scapy.contrib.igmp import IGMP
from scapy.layers.inet import ICMP
from scapy.layers.inet6 import ICMPv6EchoRequest, IPv6ExtHdrDestOpt
from scapy.layers.l2 import GRE
from scapy.layers.sctp import SCTP, SCTPChunkInit
from scapy.packet import Raw

from cases import (BY_SOURCE, BY_SOURCE6, BY_SOURCE_PORT, BY_SOURCE_PORT6, CLIENT, LOCAL, LOCAL6, NOBODY, NOBODY6, ODD,
                   ODD6, WWW, WWW6, Case, Drop, Flow, Forward, Pass, ether, ip4, ip6, tcp, udp)

CASES = [
    # ---- ports ----
    Case("the first port of a service", ether() / ip4() / tcp(80), Forward("www")),
    Case("another port of the same service", ether() / ip4() / tcp(443), Forward("www")),
    Case("the first of 400 ports", ether() / ip4() / tcp(8000), Forward("www")),
    Case("the last of 400 ports", ether() / ip4() / tcp(8399), Forward("www")),
    Case("one before the first of 400 ports", ether() / ip4() / tcp(7999), Drop("drop_unknown_port")),
    Case("one after the last of 400 ports", ether() / ip4() / tcp(8400), Drop("drop_unknown_port")),
    Case("another service of the same address", ether() / ip4() / tcp(9000), Forward("www-aside")),
    Case("an exact port goes before any-port", ether() / ip4() / udp(53), Forward("dns")),
    Case("any-port takes the others", ether() / ip4() / udp(54), Forward("udp")),
    Case("any-port takes port 1", ether() / ip4() / udp(1), Forward("udp")),
    Case("any-port takes port 65,535", ether() / ip4() / udp(65535), Forward("udp")),
    Case("any-port of UDP is not any-port of TCP", ether() / ip4() / tcp(54), Drop("drop_unknown_port")),
    Case("any-port of TCP is not any-port of UDP", ether() / ip4(BY_SOURCE) / udp(54), Drop("drop_unknown_port")),
    Case("a port of TCP is not one of UDP", ether() / ip6() / udp(80), Forward("udp6")),
    Case("an unknown port is dropped", ether() / ip4() / tcp(81), Drop("drop_unknown_port")),
    Case("an unknown port over IPv6 is dropped", ether() / ip6() / tcp(81), Drop("drop_unknown_port")),
    Case("port 80 byte-swapped is another port", ether() / ip4() / tcp(80 << 8), Drop("drop_unknown_port")),
    Case("destination port 0", ether() / ip4() / tcp(0), Drop("drop_port_zero")),
    Case("destination port 0 of an any-port service", ether() / ip4() / udp(0), Drop("drop_port_zero")),
    Case("destination port 0 of an any-port service over IPv6", ether() / ip6() / udp(0), Drop("drop_port_zero")),
    Case("source port 0", ether() / ip4() / tcp(sport=0), Drop("drop_port_zero")),
    Case("source port 0 of an any-port service", ether() / ip4() / udp(4444, sport=0), Drop("drop_port_zero")),
    Case("source port 0 over IPv6", ether() / ip6() / tcp(sport=0), Drop("drop_port_zero")),
    Case("both ports 0", ether() / ip6() / udp(0, 0), Drop("drop_port_zero")),
    Case("source port 65,535", ether() / ip4() / tcp(sport=65535), Forward("www")),
    Case("a source port like the service's", ether() / ip4() / tcp(81, sport=80), Drop("drop_unknown_port")),
    Case("an answer of a service is not for it", ether() / ip4(CLIENT, src=WWW) / tcp(40000, 80),
         Pass("pass_not_service")),
    # ---- addresses ----
    Case("an address without a service", ether() / ip4(NOBODY) / tcp(), Pass("pass_not_service")),
    Case("an address without a service, UDP", ether() / ip4(NOBODY) / udp(), Pass("pass_not_service")),
    Case("an address without a service, ICMP", ether() / ip4(NOBODY) / ICMP(), Pass("pass_not_service")),
    Case("an address without a service, IPv6", ether() / ip6(NOBODY6) / tcp(), Pass("pass_not_service")),
    Case("the neighbouring addresses of a service", ether() / ip4("192.0.2.9") / tcp(), Pass("pass_not_service")),
    Case("a service address byte-swapped", ether() / ip4("10.2.0.192") / tcp(), Pass("pass_not_service")),
    Case("broadcast", ether() / ip4("255.255.255.255") / udp(), Pass("pass_not_service")),
    Case("multicast", ether() / ip4("224.0.0.18") / Raw(b"VRRP"), Pass("pass_not_service")),
    Case("a backend's own address", ether() / ip4("10.1.0.11") / tcp(), Pass("pass_not_service")),
    Case("the unspecified address", ether() / ip4("0.0.0.0") / tcp(), Pass("pass_not_service")),
    Case("the unspecified address of IPv6", ether() / ip6("::") / tcp(), Pass("pass_not_service")),
    # ---- addresses of the host ----
    Case("a service on an address of the host", ether() / ip4(LOCAL) / tcp(80), Forward("local")),
    Case("a service on an address of the host, IPv6", ether() / ip6(LOCAL6) / tcp(80), Forward("local6")),
    Case("another port of it is the host's", ether() / ip4(LOCAL) / tcp(22), Pass("pass_unknown_port")),
    Case("another port of it is the host's, IPv6", ether() / ip6(LOCAL6) / tcp(22), Pass("pass_unknown_port")),
    Case("UDP to it is the host's", ether() / ip4(LOCAL) / udp(123), Pass("pass_unknown_port")),
    Case("ping to it is the host's", ether() / ip4(LOCAL) / ICMP(), Pass("pass_unknown_port")),
    Case("ping to it is the host's, IPv6", ether() / ip6(LOCAL6) / ICMPv6EchoRequest(), Pass("pass_unknown_port")),
    Case("GRE to it is the host's", ether() / ip4(LOCAL) / GRE() / Raw(b"data"), Pass("pass_unknown_port")),
    Case("port 0 of it is the host's", ether() / ip4(LOCAL) / tcp(0), Pass("pass_unknown_port")),
    Case("a routing protocol to it is the host's", ether() / ip4(LOCAL, proto=89) / Raw(bytes(44)),
         Pass("pass_unknown_port")),
    # ---- backends that are not there ----
    Case("a pool whose backends all have weight 0", ether() / ip4(ODD) / tcp(80), Drop("drop_no_backend")),
    Case("a pool whose backends were never reachable", ether() / ip4(ODD) / tcp(81), Drop("drop_no_backend")),
    Case("a pool whose backends all have weight 0, IPv6", ether() / ip6(ODD6) / tcp(80), Drop("drop_no_backend")),
    Case("a pool whose backends were never reachable, IPv6", ether() / ip6(ODD6) / tcp(81), Drop("drop_no_backend")),
    Case("a backend of weight 2 that was never reachable leaves all to the other", ether() / ip4(ODD) / tcp(85),
         Forward("odd85")),
    Case("a table of 1,048,573 slots", ether() / ip4(ODD) / tcp(84), Forward("odd84")),
    Case("a table of 1,048,573 slots, IPv6", ether() / ip6(ODD6) / tcp(84), Forward("odd6-84")),
]

# ---- protocols ----

for protocol in (0, 2, 5, 47, 50, 51, 58, 89, 112, 132, 136, 255):
    CASES.append(Case(f"IP protocol {protocol} to a service address", ether() / ip4(proto=protocol) / Raw(bytes(64)),
                      Drop("drop_protocol")))
for protocol in (4, 41):
    CASES += [
        Case(f"protocol {protocol}, a tunnel's, to a service address", ether() / ip4(proto=protocol) / Raw(bytes(64)),
             Drop("drop_encapsulated")),
        Case(f"protocol {protocol}, a tunnel's, over IPv6", ether() / ip6(nh=protocol) / Raw(bytes(64)),
             Drop("drop_encapsulated")),
        Case(f"protocol {protocol}, a tunnel's, to an address of the host", ether() / ip4(LOCAL, proto=protocol) /
             Raw(bytes(64)), Pass("pass_unknown_port")),
    ]
CASES += [
    Case("ICMP over IPv6", ether() / ip6(nh=1) / ICMP() / Raw(bytes(56)), Drop("drop_protocol")),
    Case("ICMPv6 of neighbour discovery's type over IPv4", ether() / ip4(proto=58) / Raw(bytes([135]) + bytes(31)),
         Drop("drop_protocol")),
    Case("SCTP to a service address", ether() / ip4() / SCTP(sport=1, dport=80) / SCTPChunkInit(), Drop("drop_protocol")),
    Case("SCTP over IPv6", ether() / ip6() / SCTP(sport=1, dport=80) / SCTPChunkInit(), Drop("drop_protocol")),
    Case("GRE to a service address", ether() / ip4() / GRE() / ip4(NOBODY) / tcp(), Drop("drop_protocol")),
    Case("IGMP to a service address", ether() / ip4(proto=2) / IGMP(), Drop("drop_protocol")),
    Case("an IPIP packet to a service address is no way in", ether() / ip4() / ip4() / tcp(),
         Drop("drop_encapsulated")),
    Case("an IPv6 packet in IPv6 to a service address is no way in", ether() / ip6() / ip6() / tcp(),
         Drop("drop_encapsulated")),
    Case("an IPv6 packet in IPv4 to a service address is no way in", ether() / ip4() / ip6() / tcp(),
         Drop("drop_encapsulated")),
    Case("an IPIP packet behind options is no way in", ether() / ip6() / IPv6ExtHdrDestOpt() / ip4() / tcp(),
         Drop("drop_encapsulated")),
]

# ---- many flows over all tables, in all modes ----

SERVICES = {
    "www": (lambda: ip4(), tcp, 80), "udp": (lambda: ip4(), udp, 4444), "dns": (lambda: ip4(), udp, 53),
    "mixed": (lambda: ip4(), tcp, 7000), "mixed-udp": (lambda: ip4(), udp, 7000), "www6": (lambda: ip6(), tcp, 443),
    "udp6": (lambda: ip6(), udp, 4444), "mixed6": (lambda: ip6(), tcp, 7000),
    "source": (lambda: ip4(BY_SOURCE), tcp, 80), "source6": (lambda: ip6(BY_SOURCE6), tcp, 80),
    "source-port": (lambda: ip4(BY_SOURCE_PORT), tcp, 80), "source-port6": (lambda: ip6(BY_SOURCE_PORT6), tcp, 80),
}
for service, (network, transport, port) in SERVICES.items():
    for number in range(6):
        header = network()
        header.src = f"198.51.100.{10 + 7 * number}" if header.version == 4 else f"2001:db8:c::{10 + 7 * number:x}"
        sport = 1024 + 9001 * number
        CASES.append(Case(f"{service}: flow {number}", ether() / header / transport(port, sport), Forward(
            service, Flow(header.src, sport, header.dst, port, 6 if transport is tcp else 17))))
CASES += [
    Case("by source: another port of the client has the same backend", ether() / ip4(BY_SOURCE) / tcp(80, 1111),
         Forward("source", Flow(CLIENT, 9, BY_SOURCE, 9, 6))),
    Case("by source: another port of the service has the same backend", ether() / ip4(BY_SOURCE) / tcp(4711, 1112),
         Forward("source", Flow(CLIENT, 9, BY_SOURCE, 9, 6))),
    Case("by source and port: another port of the service has the same backend",
         ether() / ip4(BY_SOURCE_PORT) / tcp(4711, 1112), Forward("source-port", Flow(CLIENT, 1112, WWW, 9, 6))),
    Case("all flags of TCP go the same way", ether() / ip4() / tcp(flags="FSRPAUEC"), Forward("www")),
    Case("a SYN goes the same way", ether() / ip4() / tcp(flags="S"), Forward("www")),
    Case("a RST goes the same way", ether() / ip4() / tcp(flags="R"), Forward("www")),
    Case("a service address as its own client", ether() / ip6(src=WWW6) / tcp(sport=80), Drop("drop_source")),
    Case("a service address as its own client, IPv4", ether() / ip4(src=WWW) / tcp(sport=80), Drop("drop_source")),
    Case("another service's address as a client", ether() / ip4(src=ODD) / tcp(), Forward("www")),
]
