#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""headers.py FILE: judge backend entries against headers packed here from RFC 791 and RFC 8200.

Each line: encapsulation, UDP port, "computed" or "zero", source (an address, or a prefix), destination, and the 64 bytes
of the map's entry in hex.  Exit 1 if any differs.
"""

import ipaddress
import struct
import sys


ENCAP = {("ipip", 4): 1, ("ipip", 6): 2, ("gue", 4): 3, ("gue", 6): 4, ("l2", 4): 5, ("l2", 6): 5}
LONGEST_GUE = 8 + 4 + 20


def words(data):
    """One's complement sum of words as loaded, folded."""
    total = sum(struct.unpack(f"={len(data) // 2}H", data))
    while total > 0xFFFF:
        total = total % 0x10000 + total // 0x10000
    return total


def expected(kind, port, checksum, source, destination):
    """All but the state: 56 bytes."""
    network, destination = ipaddress.ip_network(source), ipaddress.ip_address(destination)
    entropy = min(network.max_prefixlen - network.prefixlen, 32)
    encap, source = ENCAP[kind, destination.version], network.network_address.packed
    if kind == "l2":
        mapped = destination.packed if destination.version == 6 else bytes(10) + b"\xff\xff" + destination.packed
        return struct.pack("=BBHI40s8s", encap, 0, 0, 0, mapped, b"")
    if network.version == 4:
        # Version and header length, TTL, addresses; what depends on the packet is 0.
        header = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 0, 0, 0, 64, 0, 0, source, destination.packed)
        total = words(header)
    else:
        header = struct.pack("!IHBB16s16s", 6 << 28, 0, 0, 64, source, destination.packed)
        total = words(source + destination.packed)
    tail = bytes(8)
    if kind == "gue":
        zero = network.version == 6 and checksum == "zero"
        tail = struct.pack("!H", int(port)) + struct.pack("=HI", zero, 0)
    overhead = len(header) + (LONGEST_GUE if kind == "gue" else 0)
    return struct.pack("=BBHI40s8s", encap, entropy, overhead, total, header, tail)


def main():
    lines = [line.split() for line in open(sys.argv[1], encoding="ascii")]
    wrong = 0
    for *fields, text in lines:
        entry, body = bytes.fromhex(text), expected(*fields)
        if entry[8:] != body:
            print(f"{' '.join(fields)}:\n  {entry[8:].hex()}\n  {body.hex()} expected")
            wrong += 1
    if wrong or not lines:
        sys.exit(1)


main()
