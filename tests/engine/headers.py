#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""headers.py FILE: judge backend entries against headers packed here from RFC 791 and RFC 8200.

Each line: source, destination, and the 64 bytes of the map's entry in hex.  Exit 1 if any differs.
"""

import ipaddress
import struct
import sys


def expected(source, destination):
    source, destination = ipaddress.ip_address(source), ipaddress.ip_address(destination)
    if source.version == 4:
        # Version and header length, TTL, addresses; what depends on the packet is 0.
        header = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 0, 0, 0, 64, 0, 0, source.packed, destination.packed)
        total = sum(struct.unpack("=10H", header))
        while total > 0xFFFF:
            total = total % 0x10000 + total // 0x10000
        return 1, 20, total, header
    header = struct.pack("!IHBB16s16s", 6 << 28, 0, 0, 64, source.packed, destination.packed)
    return 2, 40, 0, header


def main():
    lines = [line.split() for line in open(sys.argv[1], encoding="ascii")]
    wrong = 0
    for source, destination, text in lines:
        encap, overhead, total, header = expected(source, destination)
        entry = bytes.fromhex(text)
        body = struct.pack("=BBHI40s8s", encap, 0, overhead, total, header, b"")
        if entry[8:] != body:
            print(f"{source} {destination}:\n  {entry[8:].hex()}\n  {body.hex()} expected")
            wrong += 1
    if wrong or not lines:
        sys.exit(1)


main()
