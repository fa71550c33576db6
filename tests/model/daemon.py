# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Of the model that the connection rules were explored with: the oracle of test_conformance.py, left as it was.
"""Backends, slots and the daemon's slot transitions: common to both rule sets.

backend  be[x] = (present, up, draining, generation)
slot     (owner, base, tracked, learn)      owner/base: backend index or NONE
"""
NONE = -1


def usable(be, x):
    """May carry packets of connections that it already holds."""
    return x != NONE and be[x][0] and be[x][1]


def takes(be, x):
    """May be given a new connection."""
    return usable(be, x) and not be[x][2]


def change(be, slot, new):
    """A new table names `new` as owner of the slot.  -> (slot, start the clock t0?)"""
    o, b, t, l = slot
    if new == o:
        return slot, False
    if not t or b == o:                       # leaves a settled state
        if o == NONE or not be[o][0]:         # nothing can be alive at the old owner
            return (new, new, t, 0), False
        return (new, o, 1, 1), True           # transition: UDP window opens, t0 := now
    if new == b:
        return (new, b, 1, 0), False          # A->B->A: stays tracked until a scan clears it
    return (new, b, 1, l), False              # a second change moves only the owner


def removed(slot, x):
    """Backend x is gone: a base that named it becomes the owner.  Published before id x may be reused."""
    o, b, t, l = slot
    return (o, o, t, 0) if b == x else slot


def window_ends(slot):
    o, b, t, l = slot
    return (o, b, t, 0)


def settle(slot):
    """At t0 + settle, whatever has changed since; never while there is no owner."""
    o, b, t, l = slot
    return (o, o, t, 0)


def untrack(slot):
    """After a whole scan, begun after the swap's grace period, that found no disagreeing entry, slot unchanged."""
    o, b, t, l = slot
    return (o, o, 0, 0)
