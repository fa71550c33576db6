# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""GUE and MAC addresses alone, and outer sources of a prefix."""

from scapy.layers.inet import ICMP, IP, TCP, UDP, IPOption_NOP
from scapy.layers.inet6 import (ICMPv6PacketTooBig, ICMPv6TimeExceeded, IPv6, IPv6ExtHdrDestOpt, IPv6ExtHdrFragment,
                                IPv6ExtHdrHopByHop)
from scapy.layers.l2 import Dot1AD, Dot1Q
from scapy.packet import Raw

from cases import (CLIENT, CLIENT6, NARROW, TUNNEL, TUNNEL6, TUNNEL_PORTS, Case, Drop, Flow, Forward, ether, ip4, ip6, tcp,
                   udp)

CASES = []

INNER = {4: lambda **f: ip4(TUNNEL, **f), 6: lambda **f: ip6(TUNNEL6, **f)}
TRANSPORTS = {"tcp": tcp, "udp": udp}
HEADERS = {4: 20, 6: 40}
GUE = {"IPv4": "gue4", "IPv6": "gue6"}


def sent(pool, family, protocol="tcp"):
    return Forward(f"{protocol}{family}-{pool}")


def add(sentence, frame, expect, **options):
    CASES.append(Case(sentence, frame, expect, **options))


# ---- the four pairs, both transports: every length is odd or even, the sum full of carries or of zeros ----

SIZES = (0, 1, 2, 3, 18, 255, 1000, 1001)
for family, network in INNER.items():
    for outer, pool in GUE.items():
        pair, port = f"GUE: IPv{family} in {outer}", TUNNEL_PORTS[pool]
        for protocol, transport in TRANSPORTS.items():
            for size in SIZES:
                for name, byte in (("ones", b"\xff"), ("zeros", b"\0")):
                    add(f"{pair}: {protocol.upper()} with {size} bytes of {name}",
                        ether() / network() / transport(port, payload=byte * size), sent(pool, family, protocol))
        tos = "tos" if family == 4 else "tc"
        for value in (0x00, 0x03, 0x8D, 0xB8, 0xFF):
            add(f"{pair}: DSCP {value >> 2} and ECN {value & 3} are copied outside",
                ether() / network(**{tos: value}) / tcp(port), sent(pool, family))
        for name, tags in {"one tag": Dot1Q(vlan=100, prio=3), "two tags": Dot1AD(vlan=2) / Dot1Q(vlan=3)}.items():
            add(f"{pair}: {name}", ether() / tags / network() / udp(port), sent(pool, family, "udp"))
        add(f"{pair}: padding stays behind", bytes(ether() / network() / tcp(port)) + bytes(range(40)), sent(pool, family))
        for number in range(6):
            add(f"{pair}: the source port is the flow's, {number}",
                ether() / network() / tcp(port, 3000 + 77 * number), sent(pool, family))
        add(f"{pair}: a jumbo frame", ether() / network() / tcp(port, payload=bytes(range(256)) * 32 + b"\x01"),
            sent(pool, family), frags=True)
        add(f"{pair}: TTL 1", ether() / network(**{"ttl" if family == 4 else "hlim": 1}) / tcp(port), Drop("drop_ttl"))

for outer, pool in GUE.items():
    port = TUNNEL_PORTS[pool]
    add(f"GUE in {outer}: IPv4 options", ether() / ip4(TUNNEL, options=[IPOption_NOP()] * 8) / tcp(port), sent(pool, 4))
    add(f"GUE in {outer}: without DF, with an id", ether() / ip4(TUNNEL, flags=0, id=0xBEEF) / udp(port),
        sent(pool, 4, "udp"))
    add(f"GUE in {outer}: a flow label inside", ether() / ip6(TUNNEL6, fl=0xFFFFF) / tcp(port), sent(pool, 6))
    add(f"GUE in {outer}: 60 bytes of TCP options", ether() / ip4(TUNNEL) / TCP(
        sport=40000, dport=port, flags="S", options=[("NOP", None)] * 40), sent(pool, 4))

# ---- the outer checksum: known from the inner one, or not ----

UNTOLD = {
    "UDP without a checksum": (lambda port: ip4(TUNNEL) / udp(port, chksum=0), 4, "udp"),
    "UDP without a checksum over IPv6": (lambda port: ip6(TUNNEL6) / udp(port, chksum=0), 6, "udp"),
    "the first fragment of UDP": (lambda port: ip4(TUNNEL, flags="MF") / UDP(
        sport=40000, dport=port, len=2000, chksum=0x1234) / Raw(bytes(64)), 4, "udp"),
    "the first fragment of TCP": (lambda port: ip4(TUNNEL, flags="MF") / tcp(port, payload=bytes(36)), 4, "tcp"),
    "the first fragment of UDP over IPv6": (lambda port: ip6(TUNNEL6) / IPv6ExtHdrFragment(m=1, id=7) / UDP(
        sport=40000, dport=port, len=2000, chksum=0x1234) / Raw(bytes(64)), 6, "udp"),
    "destination options": (lambda port: ip6(TUNNEL6) / IPv6ExtHdrDestOpt() / tcp(port), 6, "tcp"),
    "hop-by-hop options": (lambda port: ip6(TUNNEL6) / IPv6ExtHdrHopByHop() / udp(port), 6, "udp"),
    "bytes behind the end of UDP": (lambda port: ip4(TUNNEL) / UDP(sport=40000, dport=port, len=12, chksum=0x4321) / Raw(
        b"four" + b"behind"), 4, "udp"),
    "bytes behind the end of UDP over IPv6": (lambda port: ip6(TUNNEL6) / UDP(
        sport=40000, dport=port, len=12, chksum=0x4321) / Raw(b"four" + b"behind"), 6, "udp"),
}
for name, (packet, family, protocol) in UNTOLD.items():
    add(f"GUE over IPv6: {name}, whose outer checksum cannot be told", ether() / packet(TUNNEL_PORTS["gue6"]),
        Drop("drop_checksum"))
    add(f"GUE over IPv6 with checksums of zero: {name}", ether() / packet(TUNNEL_PORTS["gue6-zero"]),
        sent("gue6-zero", family, protocol))
    add(f"GUE over IPv4: {name}", ether() / packet(TUNNEL_PORTS["gue4"]), sent("gue4", family, protocol))
for family, network in INNER.items():
    for protocol, transport in TRANSPORTS.items():
        add(f"GUE over IPv6 with checksums of zero: {protocol.upper()} over IPv{family}, another port",
            ether() / network() / transport(TUNNEL_PORTS["gue6-zero"]), sent("gue6-zero", family, protocol))

# ---- errors that quote what a backend sent ----

for outer, pool in (*GUE.items(), ("IPv6 without checksums", "gue6-zero")):
    port = TUNNEL_PORTS[pool]
    for protocol, transport, number in (("tcp", TCP, 6), ("udp", UDP, 17)):
        quoted4 = IP(src=TUNNEL, dst=CLIENT, id=9, ttl=3) / transport(sport=port, dport=40000) / Raw(bytes(21))
        quoted6 = IPv6(src=TUNNEL6, dst=CLIENT6, hlim=3) / transport(sport=port, dport=40000) / Raw(bytes(33))
        add(f"GUE in {outer}: frag-needed for {protocol.upper()}",
            ether() / ip4(TUNNEL, src="203.0.113.9") / ICMP(type=3, code=4, nexthopmtu=1400) / quoted4,
            Forward(f"{protocol}4-{pool}", Flow(CLIENT, 40000, TUNNEL, port, number)))
        add(f"GUE in {outer}: time exceeded for {protocol.upper()}, with 8 bytes quoted",
            ether() / ip4(TUNNEL, src="203.0.113.9") / ICMP(type=11) / Raw(bytes(quoted4)[:28]),
            Forward(f"{protocol}4-{pool}", Flow(CLIENT, 40000, TUNNEL, port, number)))
        add(f"GUE in {outer}: packet too big for {protocol.upper()}",
            ether() / ip6(TUNNEL6, src="2001:db8:f::9") / ICMPv6PacketTooBig(mtu=1400) / quoted6,
            Forward(f"{protocol}6-{pool}", Flow(CLIENT6, 40000, TUNNEL6, port, number)))
        add(f"GUE in {outer}: time exceeded over IPv6 for {protocol.upper()}",
            ether() / ip6(TUNNEL6, src="2001:db8:f::9") / ICMPv6TimeExceeded() / quoted6,
            Forward(f"{protocol}6-{pool}", Flow(CLIENT6, 40000, TUNNEL6, port, number)))

# ---- path MTU: the longest header that GUE may ever have counts ----


def tcp_of(family, size, port):
    return tcp(port, payload=bytes(size - HEADERS[family] - 20))


LONGEST = {"gue-narrow4": 20 + 12 + 20, "gue-narrow6": 40 + 12 + 20}
for pool, overhead in LONGEST.items():
    for family, network in INNER.items():
        fits, port = NARROW - overhead, TUNNEL_PORTS[pool]
        add(f"{pool}, IPv{family} inside: exactly fits", ether() / network() / tcp_of(family, fits, port), sent(pool, family))
        add(f"{pool}, IPv{family} inside: tags count",
            ether() / Dot1Q(vlan=5) / network() / tcp_of(family, fits - 4, port), sent(pool, family))
    add(f"{pool}: one byte too big, without DF", ether() / ip4(TUNNEL, flags=0) / tcp_of(4, fits + 1, port),
        Drop("drop_too_big"))

# ---- headroom: 216 bytes, less the metadata ----

for outer, room in ((4, 32), (6, 52)):
    add(f"{room - 4} bytes of headroom are too few for GUE over IPv{outer}", bytes(220 - room) + bytes(
        ether() / ip4(TUNNEL) / tcp(TUNNEL_PORTS[f"gue{outer}"])), Drop("drop_headroom"), options={"meta": 220 - room})
    add(f"{room} bytes of headroom are enough for GUE over IPv{outer}", bytes(216 - room) + bytes(
        ether() / ip4(TUNNEL) / tcp(TUNNEL_PORTS[f"gue{outer}"])), sent(f"gue{outer}", 4), options={"meta": 216 - room})

# ---- MAC addresses alone ----

port = TUNNEL_PORTS["l2"]
for family, network in INNER.items():
    ttl = "ttl" if family == 4 else "hlim"
    for number in range(6):
        add(f"l2: IPv{family}, flow {number}", ether() / network() / tcp(port, 7000 + number), sent("l2", family))
    for size in (0, 1, 501):
        add(f"l2: IPv{family}, UDP with {size} bytes", ether() / network() / udp(port, payload=bytes(size)),
            sent("l2", family, "udp"))
    for name, tags in {"one tag": Dot1Q(vlan=100, prio=3), "two tags": Dot1AD(vlan=2) / Dot1Q(vlan=3)}.items():
        add(f"l2: IPv{family}, {name}", ether() / tags / network() / tcp(port), sent("l2", family))
        add(f"l2: IPv{family}, {name}, as big as the MTU", ether() / tags / network() / tcp_of(family, NARROW, port),
            sent("l2", family))
    add(f"l2: IPv{family}: as big as the MTU", ether() / network() / tcp_of(family, NARROW, port), sent("l2", family))
    add(f"l2: IPv{family}: padding stays", bytes(ether() / network() / tcp(port)) + b"padding", sent("l2", family))
    add(f"l2: IPv{family}: TTL 2", ether() / network(**{ttl: 2}) / tcp(port), sent("l2", family))
    add(f"l2: IPv{family}: TTL 1", ether() / network(**{ttl: 1}) / tcp(port), Drop("drop_ttl"))
    add(f"l2: IPv{family}: a wrong L4 checksum stays", ether() / network() / tcp(port, chksum=0x1234), sent("l2", family))
CASES += [
    Case("l2: without DF, too big", ether() / ip4(TUNNEL, flags=0) / tcp_of(4, NARROW + 1, port), Drop("drop_too_big")),
    Case("l2: options stay", ether() / ip4(TUNNEL, options=[IPOption_NOP()] * 4) / tcp(port), sent("l2", 4)),
    Case("l2: extension headers stay", ether() / ip6(TUNNEL6) / IPv6ExtHdrDestOpt() / tcp(port), sent("l2", 6)),
    Case("l2: a first fragment stays one", ether() / ip4(TUNNEL, flags="MF") / tcp(port, payload=bytes(36)), sent("l2", 4)),
    Case("l2: no headroom is needed", bytes(216) + bytes(ether() / ip4(TUNNEL) / tcp(port)), sent("l2", 4), {"meta": 216}),
]

# ---- outer sources of a prefix ----

for pool in ("spread4", "spread6", "gue-spread"):
    port = TUNNEL_PORTS[pool]
    for family, network in INNER.items():
        for number in range(8):
            add(f"{pool}: IPv{family}, flow {number}", ether() / network() / tcp(port, 9000 + 31 * number),
                sent(pool, family))
        add(f"{pool}: IPv{family}, UDP", ether() / network() / udp(port), sent(pool, family, "udp"))
    add(f"{pool}: without DF", ether() / ip4(TUNNEL, flags=0, id=77) / tcp(port), sent(pool, 4))
