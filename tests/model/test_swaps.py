# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Tables are swapped under a stream of packets: each sees one whole table, and none the old one after the swap returned."""

import json
import os
import random
import struct

from transit import ACK, SYN, TABLE_OWNER, Transit, table_base

SWAPS = int(os.environ.get("SHUNT_MODEL_SWAPS", "300"))
BACKENDS, SLOTS = 6, 251
NEW = 10  # connections opened for each swap
DROPPED = 15


def table(transit):
    """({owner, base} of each slot, owner of each slot), as numbers of backends."""
    value = bytes.fromhex(transit.kernel.ask("value", map="tables_s", pool="web")["value"])
    names = {number: i for i, number in enumerate(transit.ids)}
    owner, base = (struct.unpack_from(f"<{SLOTS}H", value, at) for at in (TABLE_OWNER, table_base("s")))
    return ([{names[o & 0x7FFF], names[b & 0x7FFF] if o & 0x8000 else names[o & 0x7FFF]} for o, b in zip(owner, base)],
            [names[o & 0x7FFF] for o in owner])


def reweigh(transit, rnd):
    document = json.loads(transit.fleet.document())
    for backend in document["pools"][0]["backends"]:
        backend["weight"] = rnd.randint(1, 9)
    transit.kernel.ask("apply", document=json.dumps(document), locals=[])


def bits(word):
    return {i for i in range(16) if word >> i & 1}


def test_every_packet_goes_to_owner_or_base_of_a_table_in_force():
    rnd = random.Random(11)
    with Transit(BACKENDS, SLOTS, flows=200000) as transit:
        one_each, opening = {}, []
        while len(one_each) < SLOTS or len(opening) < NEW * SWAPS:
            flow = transit.flow(rnd, transit.SERVICES[0])
            if one_each.setdefault(transit.slot(flow), flow) is not flow:
                opening.append(flow)
        opening = opening[: NEW * SWAPS]
        slots = sorted(one_each)
        tables = [table(transit)]
        transit.kernel.ask("stream", swaps=SWAPS, frames=[one_each[s].frame(ACK, 9).hex() for s in slots],
                           opening=[flow.frame(SYN, 9).hex() for flow in opening])
        for _ in range(SWAPS):
            transit.kernel.ask("phase")
            reweigh(transit, rnd)
            transit.kernel.ask("phase")
            tables.append(table(transit))
        seen = transit.kernel.ask("stream_end")
        stats = transit.pool_stats()

    changed = sum(a[1] != b[1] for a, b in zip(tables, tables[1:]))
    assert changed > SWAPS * 0.9
    assert sum(len(allowed) == 2 for allowed in tables[-1][0]) > SLOTS // 20  # slots in transition
    judged = 0
    for name, back in (("exact", 0), ("either", 1)):
        words = struct.unpack(f"<{(SWAPS + 1) * SLOTS}H", bytes.fromhex(seen[name]))
        for at, word in enumerate(words):
            number, slot = divmod(at, SLOTS)
            allowed = tables[number][0][slot] | (tables[number - 1][0][slot] if back and number else set())
            assert bits(word) <= allowed, f"table {number}, slot {slot}: {bits(word)}, not among {allowed}"
            judged += word != 0
    assert judged > SWAPS and seen["wide"] < seen["packets"] / 100
    # A new connection: after the swap returned, the new owner and nobody else.
    at_rest = 0
    for flow, (first, last, backend) in zip(opening, seen["openings"]):
        slot = transit.slot(flow)
        assert backend in {tables[k][1][slot] for k in range(first, last + 1)}, (slot, first, last, backend)
        at_rest += first == last
    assert len(seen["openings"]) > NEW * SWAPS * 0.9 and at_rest > SWAPS
    assert stats["refused"] == 0
    print(f"{seen['packets']} packets and {len(seen['openings'])} new connections over {SWAPS} swaps")
