# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Frames to fields, by offsets from the RFCs alone."""

import ipaddress
import struct


def decode(frame):
    """Fields of an Ethernet frame with any tags and an IP header; "rest" is what follows the header."""
    out = {"dst_mac": frame[:6].hex(":"), "src_mac": frame[6:12].hex(":"), "tags": []}
    at = 12
    (kind,) = struct.unpack_from(">H", frame, at)
    while kind in (0x8100, 0x88A8):
        out["tags"].append((kind, struct.unpack_from(">H", frame, at + 2)[0]))
        at += 4
        (kind,) = struct.unpack_from(">H", frame, at)
    return {**out, "ethertype": kind, **decode_ip(frame[at + 2 :])}


def decode_ip(data):
    if data[0] >> 4 == 6:
        word, length, following, limit = struct.unpack_from(">IHBB", data)
        return {
            "version": word >> 28, "tos": word >> 20 & 0xFF, "label": word & 0xFFFFF, "payload": length,
            "protocol": following, "ttl": limit, "source": ipaddress.ip_address(data[8:24]),
            "destination": ipaddress.ip_address(data[24:40]), "df": True, "length": 40 + length, "rest": data[40:],
        }
    first, tos, length, number, fragment, ttl, protocol, _ = struct.unpack_from(">BBHHHBBH", data)
    size = (first & 15) * 4
    total = sum(struct.unpack(f">{size // 2}H", data[:size]))
    return {
        "version": first >> 4, "header": size, "tos": tos, "length": length, "id": number, "df": bool(fragment & 0x4000),
        "mf": bool(fragment & 0x2000), "reserved": bool(fragment & 0x8000), "offset": fragment & 0x1FFF, "ttl": ttl,
        "protocol": protocol, "sum": (total & 0xFFFF) + (total >> 16), "source": ipaddress.ip_address(data[12:16]),
        "destination": ipaddress.ip_address(data[16:20]), "rest": data[size:],
    }
