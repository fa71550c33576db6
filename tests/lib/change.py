# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A change of owners under HTTP load: which connections it may break, and which it broke."""

import time

from balancer import Load


class Change:
    """`run` makes the change while connections are held open and new ones made, then `judge` fills the fields.

    moved: slots that changed owner.  requests: made meanwhile.  allowed: connections open when their slot changed owner,
    by the second implementation of the flow hash.  failed: connections or requests that failed, errors: a sentence for
    each.  foreign: those of them that were not allowed to.  longest: seconds that the slowest answer took.

    gone: names of backends whose connections may fail wherever their slot is: one with the source port of an earlier
    connection is on that one's backend as long as its entry lasts.
    """

    def __init__(self, shunt, versions=(4, 6), held=150, concurrency=4, pool="web", port=80, gone=()):
        self.shunt, self.lab = shunt, shunt.lab
        self.versions, self.held, self.concurrency = versions, held, concurrency
        self.pool, self.port, self.gone = pool, port, gone
        self.requests = self.allowed = self.failed = 0
        self.foreign, self.errors = [], []
        self.longest = 0.0

    def run(self, action, before=2.0, after=3.0):
        self.before = self.shunt.owners(self.pool)
        loads = [Load(self.lab, self.lab.service(v), "--port", str(self.port), "--hold", str(self.held),
                      "--concurrency", str(self.concurrency)) for v in self.versions]
        try:
            time.sleep(before)
            self.start = time.monotonic()
            action()
            self.end = time.monotonic()
            time.sleep(after)
            results = [load.finish() for load in loads]
        finally:
            for load in loads:
                load.close()
        self.after = self.shunt.owners(self.pool)
        self.moved = {slot for slot, owner in enumerate(self.before) if owner != self.after[slot]}
        for version, result in zip(self.versions, results):
            self.judge(version, result)
        return self

    def judge(self, version, result):
        for port, _, error, began, ended in result["requests"]:
            when = f"new, {began - self.start:.3f} to {ended - self.start:.3f} s, done at {self.end - self.start:.3f}"
            self._count(version, port, began <= self.end and ended >= self.start, None, error, 1, when)
            self.longest = max(self.longest, ended - began)
        for held in result["held"]:
            by = held["answers"][-1][0] if held["answers"] else None
            self._count(version, held["port"], True, by, held["error"], held["requests"])

    def _count(self, version, port, open_then, by, error, requests, when="held, never answered"):
        may = by in self.gone or (open_then and self._slot(version, port) in self.moved)
        self.requests += requests
        self.allowed += may
        self.failed += error is not None
        if error:
            self.errors.append(f"IPv{version} port {port} slot {self._slot(version, port)} ({by or when}): {error}")
        if error and not may:
            self.foreign.append(self.errors[-1])

    def _slot(self, version, port):
        client = self.lab.address("client", version)
        return self.shunt.slot(client, port, self.lab.service(version), self.port, len(self.before))
