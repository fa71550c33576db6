# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""An instance whose table, ranges, backend states and flow table a test writes itself, word by word."""

import ipaddress
import struct
import sys
import time
from collections import namedtuple
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(TESTS / "packets"))
from fleet import Backend, Fleet, Pool, Service, flowhash  # noqa: E402
from kernel import XDP_DROP, Kernel, difference  # noqa: E402

NONE = -1
BACKEND_NONE = 0x7FFF
WAYS = 8
# Offsets in the one value of a pool's table; bases stand behind as many owners as the size class has, by fours.
TABLE_RANGES, TABLE_OWNER = 48, 64
SIZES = {"s": 4099, "m": 65537, "l": 1048573}


def table_base(size):
    return TABLE_OWNER + 2 * (SIZES[size] + 3 & ~3)



# ---- an entry, by the layout in RULES.md and docs/connections.md ----

HALF, ADOPTED, LIVE, CLOSING = range(4)
Word = namedtuple("Word", "fp isn seen state gen backend")
USED, LOCKED = Word(0, 0, 0, 0, 0, 0xFFFF), Word(0, 0, 0, 0, 0, 0xFFFE)


def pack(word):
    return (word.fp << 38 | word.isn << 30 | word.seen << 22 | word.state << 20 | word.gen << 16 | word.backend
            if word else 0)


def unpack(value):
    if not value:
        return None
    return Word(value >> 38, value >> 30 & 255, value >> 22 & 255, value >> 20 & 3, value >> 16 & 15, value & 65535)


def fingerprint(value, udp):
    fp = value >> 22 & (1 << 26) - 1
    fp = fp | 1 if udp else fp & ~1
    return fp or 2


Range = namedtuple("Range", "start log2")


def buckets_of(value, where):
    """Both choices of a flow; they may be the same."""
    mask = (1 << where.log2) - 1
    return where.start + (value & mask), where.start + (value >> 11 & mask)


# ---- the clock ----

Limits = namedtuple("Limits", "tcp_shift udp_shift settle closing window")


def shifts():
    """(TCP, UDP): units so long that neither passes while a test runs, and whose numbers differ where they can."""
    now = time.clock_gettime_ns(6)  # CLOCK_MONOTONIC_COARSE
    still = [s for s in range(40, 63) if (now + 1800 * 10**9) >> s == now >> s]
    tcp = still[0]
    udp = next((s for s in still if now >> s & 255 != now >> tcp & 255), still[1])
    return tcp, udp


def now(shift):
    return time.clock_gettime_ns(6) >> shift & 255


# ---- frames ----

ETHER = bytes.fromhex("020000000001" "020000000c01")
FIN, SYN, RST, PUSH, ACK = 1, 2, 4, 8, 16


class Flow:
    """Client's address and port to a service; `value` is the hash of its 5-tuple, `slot_value` in the service's mode."""

    def __init__(self, key, source, sport, destination, dport, udp=False, mode="5-tuple"):
        self.udp, self.protocol = udp, 17 if udp else 6
        tuple_ = source, sport, destination, dport, self.protocol
        self.value = flowhash.flow_hash(key, 0, *tuple_)
        self.slot_value = flowhash.flow_hash(key, flowhash.MODES.index(mode), *tuple_)
        self.fp = fingerprint(self.value, udp)
        self.isn = 0
        transport = (struct.pack(">HHHH", sport, dport, 12, 0) + bytes(4) if udp
                     else struct.pack(">HHIIBBHHH", sport, dport, 0, 0, 5 << 4, 0, 64000, 0, 0))
        source, destination = ipaddress.ip_address(source), ipaddress.ip_address(destination)
        if source.version == 4:
            header = struct.pack(">BBHHHBBH", 0x45, 0, 20 + len(transport), 0, 0x4000, 64, self.protocol, 0)
            self.head = ETHER + b"\x08\x00" + header + source.packed + destination.packed
        else:
            header = struct.pack(">IHBB", 6 << 28, len(transport), self.protocol, 64)
            self.head = ETHER + b"\x86\xdd" + header + source.packed + destination.packed
        self.transport = transport
        # What a router on the way back says of an answer that the client did not get: its first eight bytes are enough.
        answer = struct.pack(">HHHH", dport, sport, 12, 0)
        if source.version == 4:
            quoted = struct.pack(">BBHHHBBH", 0x45, 0, 60, 0, 0x4000, 60, self.protocol, 0)
            message = (bytes([3, 1]) + bytes(6) + quoted + destination.packed + source.packed + answer)
            header = struct.pack(">BBHHHBBH", 0x45, 0, 20 + len(message), 0, 0, 64, 1, 0)
            self.error = ETHER + b"\x08\x00" + header + bytes([198, 51, 100, 1]) + destination.packed + message
        else:
            quoted = struct.pack(">IHBB", 6 << 28, 40, self.protocol, 60)
            message = bytes([1, 0]) + bytes(6) + quoted + destination.packed + source.packed + answer
            header = struct.pack(">IHBB", 6 << 28, len(message), 58, 64)
            router = ipaddress.ip_address("2001:db8:c::1").packed
            self.error = ETHER + b"\x86\xdd" + header + router + destination.packed + message

    def frame(self, flags=0, seq8=0, low=0x123456):
        if self.udp:
            return self.head + self.transport
        return (self.head + self.transport[:4] + bytes([seq8]) + low.to_bytes(3, "big") + self.transport[8:13] +
                bytes([flags]) + self.transport[14:])


class Transit:
    """One pool of `backends`, in a table of `slots`; its state is what the test writes."""

    SERVICES = [Service("www", "192.0.2.10", "tcp", [80], "web"), Service("www6", "2001:db8::10", "tcp", [80], "web"),
                Service("dns", "192.0.2.10", "udp", [80], "web"), Service("dns6", "2001:db8::10", "udp", [80], "web"),
                Service("source", "192.0.2.11", "tcp", [80], "web", hash="source"),
                Service("port6", "2001:db8::12", "udp", [80], "web", hash="source-port")]

    def __init__(self, backends=6, slots=251, flows=20000, frags=False):
        pool = Pool("web", [Backend(f"b{i}", f"10.1.0.{11 + i}") for i in range(backends)], slots)
        self.fleet = Fleet([pool], self.SERVICES)
        self.n_slots, self.slots = slots, {}
        self.kernel = Kernel({"services": 64, "addresses": 16, "pools": 4, "backends": 64, "flows": flows})
        self.size = next(size for size, most in SIZES.items() if slots <= most)
        self.frags, self.turn, self.words = frags, 0, None

    def __enter__(self):
        self.kernel.__enter__()
        try:
            self.kernel.load("lb", self.frags)
            self.kernel.apply(self.fleet)
            rows = self.kernel.ask("counters")["backends"]
            self.ids = [rows[f"web/{b.name}"]["id"] for b in self.fleet.backends()]
            self.entries = [self.kernel.peek("backends", struct.pack("<I", i)) for i in self.ids]
            self.name_of = {ipaddress.ip_address(b.address).packed: i for i, b in enumerate(self.fleet.backends())}
            # (present, up, draining, generation)
            self.backends = [(1, 1, 0, entry[1] & 15) for entry in self.entries]
            self.restart()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        self.kernel.__exit__()

    def restart(self):
        """The program loaded again over the maps that are there."""
        self.kernel.load("lb", self.frags)

    def flow(self, rnd, kind=None):
        """A random flow to one of the services."""
        service = kind or rnd.choice(self.SERVICES)
        six = ":" in service.address
        source = f"2001:db8:c::{rnd.randrange(1 << 16):x}" if six else f"198.51.{rnd.randrange(256)}.{rnd.randrange(256)}"
        return Flow(self.fleet.key, source, rnd.randrange(1024, 65536), service.address, 80, service.protocol == "udp",
                    service.hash)

    def slot(self, flow):
        return flowhash.slot(flow.slot_value, self.n_slots)

    # ---- writing ----

    def id(self, backend):
        return BACKEND_NONE if backend == NONE else self.ids[backend]

    def publish(self, slots, ranges, limits, own=0):
        """slots: [(owner, base, tracked, learn)] of all slots; ranges: {slot: Range or None}; own: the first own word."""
        owner = [self.id(o) | tracked << 15 for o, _, tracked, _ in slots]
        base = [self.id(b) | learn << 15 for _, b, _, learn in slots]
        words = [range_word(ranges.get(slot)) for slot in range(len(slots))]
        if words != self.words:
            self.words, self.turn = words, self.turn ^ 1
            self.kernel.ask("patch", map=f"ranges_{self.size}", index=self.turn, bytes=[[0, packed_words("I", words)]])
        header = struct.pack("<IIBBBBBxxx", self.turn, own, *limits)
        self.kernel.ask("patch", map=f"tables_{self.size}", index=0, bytes=[
            [TABLE_RANGES, header.hex()], [TABLE_OWNER, packed_words("H", owner)],
            [table_base(self.size), packed_words("H", base)]])

    def set_backend(self, backend, state):
        """state: (present, up, draining, generation)"""
        present, up, draining, generation = state
        entry = self.entries[backend]
        word = struct.unpack_from("<Q", entry)[0] & ~0xFFFF | present | up << 1 | draining << 2 | generation << 8
        self.kernel.poke("backends", struct.pack("<I", self.ids[backend]), struct.pack("<Q", word) + entry[8:])

    def write_buckets(self, buckets):
        """buckets: {index: words}"""
        self.kernel.ask_all([{"op": "poke", "map": "flows", "key": struct.pack("<I", index).hex(),
                              "value": struct.pack("<8Q", *map(pack, words)).hex()} for index, words in buckets.items()])

    # ---- asking ----

    def bucket(self, index):
        return read_bucket(self.kernel.ask("peek", map="flows", key=struct.pack("<I", index).hex()))

    def pool_stats(self):
        return self.kernel.ask("pool_stats", pool=0)

    def steer(self, packets, where):
        """[(frame, buckets to read)] -> [(backend or NONE, {bucket: words})], one request to the next without waiting."""
        requests = []
        for frame, buckets in packets:
            requests.append({"op": "run", "role": "lb", "ifindex": where, "frames": [frame.hex()]})
            requests += [{"op": "peek", "map": "flows", "key": struct.pack("<I", b).hex()} for b in buckets]
        replies = iter(self.kernel.ask_all(requests))
        return [(self.to(next(replies)["results"][0]), {b: read_bucket(next(replies)) for b in buckets})
                for _, buckets in packets]

    def to(self, result):
        """The backend that a frame left for."""
        if result["action"] == XDP_DROP:
            return NONE
        packet = bytes.fromhex(result["frame"])[14:]
        return self.name_of[packet[16:20] if packet[0] >> 4 == 4 else packet[24:40]]


def range_word(where):
    return where.start << 4 | where.log2 + 1 if where else 0


def packed_words(letter, words):
    return struct.pack(f"<{len(words)}{letter}", *words).hex()


def read_bucket(reply):
    return [unpack(value) for value in struct.unpack("<8Q", bytes.fromhex(reply["value"]))]


def reasons(before, after):
    return {name: count for (kind, name), count in difference(before, after).items() if kind == "reason"}
