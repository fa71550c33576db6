#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The flow hash of docs/adr/0001-flow-hash.md a second time, written from its prose and not from the C code.

As a module it answers "which hash, which slot has this flow" for the other suites and the demo; as a program it
writes the golden vectors, or checks them:

    flowhash.py vectors            10,000 flows and their hashes on standard output, the same bytes every time
    flowhash.py check [FILE]       the vectors against flowhash.sha256 and flowhash-100.tsv
    flowhash.py flow KEY MODE SOURCE SPORT DESTINATION DPORT PROTOCOL [SLOTS]
"""

import hashlib
import ipaddress
import pathlib
import struct
import sys

MASK32 = (1 << 32) - 1
MASK64 = (1 << 64) - 1

MODES = ("5-tuple", "source", "source-port")
MODE_5TUPLE, MODE_SOURCE, MODE_SOURCE_PORT = range(3)

KEY_WORDS = 12
MULTIPLIER = 0xD6E8FEB86659FD93


def rotate(x, bits):
    return (x << bits | x >> (64 - bits)) & MASK64


def sipround(v0, v1, v2, v3):
    """One SipRound, in the order of figure 2.1 of the paper."""
    v0 = (v0 + v1) & MASK64
    v1 = rotate(v1, 13) ^ v0
    v0 = rotate(v0, 32)
    v2 = (v2 + v3) & MASK64
    v3 = rotate(v3, 16) ^ v2
    v0 = (v0 + v3) & MASK64
    v3 = rotate(v3, 21) ^ v0
    v2 = (v2 + v1) & MASK64
    v1 = rotate(v1, 17) ^ v2
    v2 = rotate(v2, 32)
    return v0, v1, v2, v3


def siphash24(key, data):
    """SipHash-2-4 (Aumasson and Bernstein, 2012) of `data` under 16 bytes of key, as a number."""
    k0, k1 = struct.unpack("<QQ", key)
    v = (
        k0 ^ int.from_bytes(b"somepseu", "big"),
        k1 ^ int.from_bytes(b"dorandom", "big"),
        k0 ^ int.from_bytes(b"lygenera", "big"),
        k1 ^ int.from_bytes(b"tedbytes", "big"),
    )
    padded = data + bytes(-(len(data) + 1) % 8) + bytes([len(data) & 0xFF])
    for (word,) in struct.iter_unpack("<Q", padded):
        v = v[0], v[1], v[2], v[3] ^ word
        for _ in range(2):
            v = sipround(*v)
        v = v[0] ^ word, v[1], v[2], v[3]
    v = v[0], v[1], v[2] ^ 0xFF, v[3]
    for _ in range(4):
        v = sipround(*v)
    return v[0] ^ v[1] ^ v[2] ^ v[3]


class Key:
    """128 bits, expanded: a 32-bit word for each word of a flow, and 64 bits for the finalizer."""

    def __init__(self, key):
        key = bytes.fromhex(key) if isinstance(key, str) else bytes(key)
        if len(key) != 16:
            raise ValueError("a key has 16 bytes (32 hexadecimal digits)")
        values = [siphash24(key, struct.pack("<Q", i)) for i in range(KEY_WORDS + 1)]
        self.bytes = key
        self.words = [value & MASK32 for value in values[:KEY_WORDS]]
        self.final = values[KEY_WORDS]


def finish(total, final):
    x = (total + final) & MASK64
    for _ in range(2):
        x = (x ^ x >> 32) * MULTIPLIER & MASK64
    return x ^ x >> 32


def nh(pairs):
    """NH: the sum modulo 2^64 of products of (word + key word) modulo 2^32, two words to a product."""
    total = 0
    for (a, ka), (b, kb) in pairs:
        total += ((a + ka) & MASK32) * ((b + kb) & MASK32)
    return total & MASK64


def flow_hash(key, mode, source, sport, destination, dport, protocol):
    """64 bits.  Addresses: anything that ipaddress.ip_address() takes, both of one family.  Ports in host order."""
    source, destination = ipaddress.ip_address(source), ipaddress.ip_address(destination)
    if source.version != destination.version:
        raise ValueError("the addresses are of two families")
    if mode != MODE_5TUPLE:
        destination, dport, protocol = type(destination)(0), 0, 0
    if mode == MODE_SOURCE:
        sport = 0
    (ports,) = struct.unpack("<I", struct.pack(">HH", sport, dport))
    return keyed_hash(key, source, destination, ports, protocol + (mode << 8))


def keyed_hash(key, source, destination, ports, tail):
    """Of two addresses of one family, a word in place of the ports, and the last word without its family."""
    source, destination = ipaddress.ip_address(source), ipaddress.ip_address(destination)
    tail += source.version << 16
    k = key.words
    if source.version == 4:
        (s,), (d,) = struct.unpack("<I", source.packed), struct.unpack("<I", destination.packed)
        pairs = [((s, k[0]), (ports, k[1])), ((d, k[2]), (tail, k[3]))]
    else:
        s, d = struct.unpack("<4I", source.packed), struct.unpack("<4I", destination.packed)
        pairs = [
            ((s[0], k[0]), (s[1], k[1])),
            ((s[2], k[2]), (s[3], k[3])),
            ((d[0], k[4]), (d[1], k[5])),
            ((d[2], k[6]), (d[3], k[7])),
            ((ports, k[8]), (tail, k[9])),
        ]
    return finish(nh(pairs), key.final)


def slot(value, slots):
    """The slot of a hash: multiply-shift over its high 32 bits."""
    return (value >> 32) * slots >> 32


# ---- golden vectors ----

VECTORS = 10000
SLOTS = (2, 251, 4099, 65537, 1048573)
FIXED_KEYS = (bytes(16), b"\xff" * 16, bytes(range(16)))
HERE = pathlib.Path(__file__).resolve().parent


class Stream:
    """Bytes that are the same everywhere and for ever: SHAKE-256 of a label."""

    def __init__(self, label):
        self.bytes = hashlib.shake_256(label).digest(64 * VECTORS)
        self.at = 0

    def take(self, count):
        self.at += count
        return self.bytes[self.at - count : self.at]

    def number(self, bits):
        return int.from_bytes(self.take(bits // 8), "big")


def vectors():
    """Rows of text: key, mode, source, sport, destination, dport, protocol, hash, slots, slot."""
    stream = Stream(b"shunt flow hash vectors 1")
    keys = [Key(key) for key in FIXED_KEYS] + [Key(stream.take(16)) for _ in range(5)]
    protocols = (6, 17)
    for i in range(VECTORS):
        key = keys[i % len(keys)]
        mode = i // len(keys) % len(MODES)
        address = ipaddress.IPv6Address if stream.number(8) & 1 else ipaddress.IPv4Address
        bits = 128 if address is ipaddress.IPv6Address else 32
        source, destination = address(stream.number(bits)), address(stream.number(bits))
        sport, dport, pick = stream.number(16), stream.number(16), stream.number(8)
        # Mostly what the packet path hashes; some of every other protocol number too.
        protocol = protocols[pick & 1] if pick < 224 else stream.number(8)
        value = flow_hash(key, mode, source, sport, destination, dport, protocol)
        slots = SLOTS[i % len(SLOTS)]
        yield "\t".join(
            map(
                str,
                (key.bytes.hex(), mode, source, sport, destination, dport, protocol)
                + (f"{value:016x}", slots, slot(value, slots)),
            )
        )


def text():
    header = "# key\tmode\tsource\tsport\tdestination\tdport\tprotocol\thash\tslots\tslot\n"
    return header + "".join(row + "\n" for row in vectors())


def check(data):
    """What is wrong with the vectors, as a sentence, or None."""
    wanted = (HERE / "flowhash.sha256").read_text().split()[0]
    if not data.startswith((HERE / "flowhash-100.tsv").read_text()):
        return "the first 100 vectors differ from flowhash-100.tsv: the hash has changed, which breaks every fleet"
    if hashlib.sha256(data.encode()).hexdigest() != wanted:
        return "the vectors differ from flowhash.sha256: the hash has changed, which breaks every fleet"
    return None


def main(arguments):
    command = arguments[0] if arguments else ""
    if command == "vectors" and len(arguments) == 1:
        sys.stdout.write(text())
        return 0
    if command == "check" and len(arguments) <= 2:
        wrong = check(pathlib.Path(arguments[1]).read_text() if len(arguments) == 2 else text())
        print(wrong or f"{VECTORS} vectors agree")
        return 1 if wrong else 0
    if command == "flow" and len(arguments) in (8, 9):
        key, mode, source, sport, destination, dport, protocol = arguments[1:8]
        value = flow_hash(Key(key), MODES.index(mode), source, int(sport), destination, int(dport), int(protocol))
        print(f"{value:016x}", *([slot(value, int(arguments[8]))] if len(arguments) == 9 else []))
        return 0
    print(__doc__, file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
