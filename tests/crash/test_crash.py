# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Whatever kills the daemon: what was acknowledged is there, or what was in flight, and no table is ever empty."""

import os
import random
import threading
import time

from rawcontrol import ask
from stream import SLOTS, Stream

KILLS, SEED = int(os.environ["KILLS"]), int(os.environ["SEED"])


def table(shunt):
    """(epoch, owners' names in full) of pool web."""
    found = ask(shunt, "PoolTable", name="web", owners=True)
    owners = [found["rows"][row]["backend"] if row >= 0 else None
              for row, run in found["owners"] for _ in range(run)]
    return found["epoch"], owners


def restart(shunt):
    shunt.process = None
    shunt.start()


def check(shunt, stream, epoch):
    taken = stream.settle(shunt, ask(shunt, "Export")["document"])
    now, owners = table(shunt)
    assert len(owners) == SLOTS and None not in owners, "a table with empty slots"
    assert now >= epoch, "epochs only grow"
    with_weight = {name for name, (_, weight) in stream.acknowledged["pools"]["web"].items() if weight}
    assert set(owners) <= with_weight
    status = ask(shunt, "Status")
    assert all("the maps" not in p for p in status["problems"]), status["problems"]
    return now, taken


def kill_once(shunt, stream, rng):
    worker = threading.Thread(target=stream.run, args=(shunt,))
    worker.start()
    time.sleep(rng.random() * 0.5)
    shunt.kill()
    worker.join(30)
    assert not worker.is_alive()


def test_kills_during_changes(shunt):
    rng, stream = random.Random(SEED), Stream(SEED, shunt.dir / "hash.key")
    epoch = in_flight = 0
    shunt.start()
    for _ in range(KILLS):
        kill_once(shunt, stream, rng)
        restart(shunt)
        epoch, taken = check(shunt, stream, epoch)
        in_flight += taken
    assert stream.done > KILLS // 2 and not stream.refused
    print(f"{KILLS} kills, {stream.done} changes acknowledged, {in_flight} in flight were taken, epoch {epoch}")


def test_kills_on_a_full_disk(full):
    """The disk fills and empties; what it has no room for is refused, and changes nothing."""
    rng, stream = random.Random(SEED + 1), Stream(SEED + 1, full.dir / "hash.key")
    filler, epoch = full.state / "filler", 0
    full.start()
    for round_ in range(max(4, KILLS // 3)):
        filler.unlink(missing_ok=True)
        if round_ % 4:
            room = os.statvfs(full.state)
            filler.write_bytes(bytes(max(0, room.f_bavail * room.f_frsize - rng.randrange(3) * 4096)))
        before = stream.acknowledged
        stream.run(full, rng.randint(1, 10))
        found = ask(full, "Export")["document"]
        stream.settle(full, found)
        if round_ % 4 and stream.acknowledged == before:
            assert stream.refused
        full.kill()
        filler.unlink(missing_ok=True)
        restart(full)
        epoch, _ = check(full, stream, epoch)
    assert stream.refused and stream.done
    print(f"{stream.done} acknowledged, {stream.refused} refused for want of room")


def damaged(data, rng):
    """Cut short, or up to three bits flipped."""
    if rng.random() < 0.4:
        return data[:rng.randrange(len(data))]
    changed = bytearray(data)
    for _ in range(rng.randint(1, 3)):
        changed[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    return bytes(changed)


def test_damaged_state_is_refused_and_nothing_is_touched(shunt):
    rng, stream = random.Random(SEED + 2), Stream(SEED + 2, shunt.dir / "hash.key")
    state = shunt.state / "state.json"
    shunt.start()
    stream.run(shunt, 10)
    before = table(shunt)
    for _ in range(max(4, KILLS // 3)):
        shunt.kill()
        shunt.process = None
        good = state.read_bytes()
        bad = damaged(good, rng)
        state.write_bytes(bad)
        shunt.start(wait=False)
        code = shunt.process.wait(20)
        assert bad == good or (code == 1 and "To recover" in shunt.log_tail()), shunt.log_tail()
        assert state.read_bytes() == bad, "it is left as evidence"
        state.write_bytes(good)
        restart(shunt)
        check(shunt, stream, 0)
        assert table(shunt) == before, "not one slot moved"
