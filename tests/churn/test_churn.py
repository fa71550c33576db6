# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Random changes under thousands of connections, and a daemon that is killed all the while: nothing breaks."""

import os
import random
import subprocess
import time

import pytest
from lab import BUILD
from site_of_churn import CtlError, LabError, wait_for

CONNECTIONS, CHANGES, KILLS, SEED = map(int, os.environ.get("CHURN", "500 60 10 1").split())
# Seconds to a change: several of them lie within one settle time.
PACE = 0.6
# Longer than any silence of the client: of its own, which is longer where there are more connections, or because this
# machine has other work.
SETTLE = max(4, CONNECTIONS // 250)
STEPS = {"add": 5, "drain": 6, "undrain": 4, "weight": 6, "delete": 4}


class History:
    """The changes, and what is watched of epochs meanwhile."""

    def __init__(self, site, client, rnd):
        self.site, self.client, self.rnd = site, client, rnd
        self.changes = self.kills = 0
        self.done = dict.fromkeys([*STEPS, "restart"], 0)
        self.broken = 0
        self.digests = {}  # of each epoch
        self.last_epoch = 0
        # After so many changes; two at once, so that the second hits the start after the first.
        moments = [rnd.uniform(0, CHANGES) for _ in range(KILLS - KILLS // 2)]
        self.kill_at = sorted(moments + moments[: KILLS // 2])
        self.start = time.monotonic()

    # ---- shuntctl, from a daemon that may be dead ----

    def ctl(self, *args):
        """What shuntctl said; None where the daemon was killed or the change did not fit what is there."""
        self.alive()
        try:
            return self.site.ctl(*args)
        except CtlError as error:
            self.alive()
            if error.code != 3:
                self.note(f"{' '.join(args)}: {error}")
            return None

    def alive(self):
        if self.site.shunt.process.poll() is not None:
            self.site.shunt.start()

    def note(self, text):
        print(f"{time.monotonic() - self.start:7.2f} {text}")

    def rows(self):
        reply = None
        while reply is None:
            reply = self.ctl("backend", "list")
        return {row["name"]: row for row in reply["backends"]}

    def kill(self):
        """kill -9 at a random moment of a change."""
        node = self.rnd.choice(self.site.lab.backends)
        argv = [BUILD / "shuntctl", "--instance", self.site.shunt.instance, "backend", "set", f"web/{node}", "--weight",
                str(self.rnd.randint(1, 4))]
        during = subprocess.Popen(self.site.lab.argv("lb", argv), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                  stderr=subprocess.DEVNULL)
        time.sleep(self.rnd.uniform(0, 0.03))
        self.alive()
        self.site.shunt.kill()
        during.wait(30)
        self.kills += 1
        self.note("kill -9")
        # It is away for a while, and killed again in the middle of its start.
        time.sleep(self.rnd.choice((0, 0, 0.3, 1)))
        self.site.shunt.start(wait=self.rnd.random() < 0.7)
        self.watch_epoch()

    def watch_client(self):
        """What is there when connections break, or do not come about."""
        reply = self.client.count()
        if reply["broken"] == self.broken and reply["waiting"] < CONNECTIONS // 5:
            return
        self.broken = reply["broken"]
        self.note(f"{reply}")
        for name, row in self.rows().items():
            print("       ", name, *(f"{key} {row[key]}" for key in ("state", "weight", "slots", "base_slots", "entries")))
        print("       ", self.ctl("pool", "list"))

    def watch_epoch(self):
        reply = self.ctl("pool", "list")
        if reply is None:
            return
        pool, = reply["pools"]
        epoch, digest = pool["epoch"], pool["digest"]
        assert epoch >= self.last_epoch, f"epoch {epoch} after {self.last_epoch}"
        assert self.digests.setdefault(epoch, digest) == digest, f"epoch {epoch} was used for two tables"
        self.last_epoch = epoch

    # ---- changes ----

    def step(self):
        rows = self.rows()
        active = [name for name, row in rows.items() if row["state"] == "active"]
        draining = [name for name in rows if name not in active]
        absent = [node for node in self.site.lab.backends if node not in rows]
        what = self.rnd.choices(list(STEPS), list(STEPS.values()))[0]
        weight = str(self.rnd.randint(1, 8))
        change = None
        if what == "add" and absent:
            node = self.rnd.choice(absent)
            change = ("backend", "add", f"web/{node}", self.site.address(node), "--weight", weight)
        elif what in ("drain", "delete") and len(active) > 3:
            node = self.rnd.choice(active)
            change = ("backend", "drain" if what == "drain" else "del", f"web/{node}")
        elif what == "undrain" and draining:
            change = ("backend", "undrain", f"web/{self.rnd.choice(draining)}")
        elif what == "weight":
            change = ("backend", "set", f"web/{self.rnd.choice(active)}", "--weight", weight)
        if change and self.ctl(*change) is not None:
            self.changes += 1
            self.done[what] += 1
            self.note(" ".join(change[1:]))
        self.watch_epoch()
        # Most clients of a draining backend go away after a while, as they do when one waits for them.
        for node in draining:
            if change == ("backend", "undrain", f"web/{node}"):
                continue
            if self.rnd.random() < 0.3:
                self.client.leave(node)

    def restart_all(self):
        """Drain some, wait until they are empty, restart their servers, and take them back; until all have been."""
        left = [name for name, row in self.rows().items() if row["state"] == "active"]
        at_once = max(1, len(left) // 2)  # the others take the new connections
        while left:
            some, left = left[:at_once], left[at_once:]
            for name in some:
                self.insist("drain", name, "draining")
            for name in some:
                self.empty(name)
                self.site.stop_server(name)
                self.site.start_server(name)
                self.insist("undrain", name, "active")
        self.changes += 1
        self.done["restart"] += 1
        self.note("all have been restarted")

    def insist(self, verb, name, state):
        """Whenever the daemon is killed."""
        until = time.monotonic() + 60
        while self.rows()[name]["state"] != state:
            assert time.monotonic() < until, f"{verb} {name} is never done: {self.rows()[name]}"
            self.ctl("backend", verb, f"web/{name}")

    def kill_if_due(self):
        while self.kill_at and self.changes >= self.kill_at[0]:
            self.kill_at.pop(0)
            self.kill()

    def empty(self, name):
        """Until drain --wait says that nothing names it; the daemon may be killed meanwhile."""
        until = time.monotonic() + 60 + 5 * SETTLE
        while time.monotonic() < until:
            self.client.leave(name)
            if self.kill_at and self.rnd.random() < 0.05:
                self.kill_at.pop()
                self.kill()
            row = self.rows().get(name)
            if row is None or (row["state"] != "active" and row["base_slots"] == 0 and row["entries"] == 0
                               and self.ctl("--timeout", "20", "backend", "drain", f"web/{name}", "--wait") is not None):
                return
            time.sleep(0.5)
        raise LabError(f"{name} does not drain: {self.rows().get(name)}; {self.site.pool()}")

    def run(self):
        # One rolling restart for each hundred changes begun.
        restarts = {CHANGES // 2 if CHANGES < 100 else at for at in range(50, max(CHANGES, 51), 100)}
        while self.changes < CHANGES:
            began = time.monotonic()
            self.kill_if_due()
            if self.changes in restarts:
                restarts.discard(self.changes)
                self.restart_all()
            else:
                self.step()
            self.watch_client()
            time.sleep(max(0.0, began + self.rnd.uniform(0.1, 2 * PACE - 0.1) - time.monotonic()))
        while self.kills < KILLS:
            self.kill()
        self.alive()


@pytest.fixture(scope="module")
def result(sites):
    site = sites(backends=12, first=8, settle=f"{SETTLE}s")
    client = site.client(count=CONNECTIONS, seed=SEED)
    client.warm(CONNECTIONS * 9 // 10)
    history = History(site, client, random.Random(SEED))
    try:
        history.run()
    finally:
        end = client.stop()
        print(f"changes {history.done}, epochs {min(history.digests, default=0)} to {history.last_epoch}, "
              f"{end['messages']} messages in {time.monotonic() - history.start:.0f} s, longest silence {end['silence']} s")
        for what in end["broken"]:
            print("broken:", *what)
        (BUILD / "churn.txt").write_text(f"broken={len(end['broken'])} changes={history.changes} "
                                         f"connections={end['connections']} kills={history.kills}\n")
    return site, history, end


def test_no_connection_breaks(result):
    site, history, end = result
    assert end["silence"] < SETTLE, "this machine is too busy for so many connections: they are silent for too long"
    assert end["broken"] == [], site.server_logs()
    assert site.server_logs() == ""
    assert end["messages"] > CONNECTIONS * 20
    assert history.changes >= CHANGES and history.kills >= KILLS
    assert all(history.done.values())


def test_all_comes_to_rest(result):
    """Without changes every slot settles and is stateless again, and what drained is gone or empty."""
    site, _, _ = result
    wait_for("no slot is in transition", lambda: site.pool()["tracked"] == 0, 90 + 5 * SETTLE)
    assert all(row["base_slots"] == row["entries"] == 0 for row in site.rows().values())


def test_nothing_was_a_defect(result):
    site, _, _ = result
    bugs = {row["name"]: row["packets"] for row in site.ctl("counters")["counters"] if row["class"] == "bug"}
    assert not any(bugs.values())
