# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Of the model that the connection rules were explored with: the oracle of test_conformance.py, left as it was.
"""Reference rules: an entry with the whole ISN and an alternative backend.

entry = (bk, gen, isn, closing, unconfirmed, alt, altgen)
isn in the model is a token: the live connection's own ISN is MINE, anything else differs from it.  A non-SYN
packet carries its connection's token; equal tokens mean "in the window after the entry's ISN".
"""
from daemon import NONE, usable, takes
NAME = 'reference'
MINE, OLD = 1, 9


def valid(be, e):
    return e is not None and bool(be[e[0]][0]) and be[e[0]][3] == e[1]


def altok(be, e):
    return e[5] != NONE and be[e[5]][0] and be[e[5]][3] == e[6]


def disagrees(be, e, o):
    if e is None:
        return False
    return (valid(be, e) and e[0] != o) or bool(e[4] and altok(be, e) and e[5] != o)


def names(be, e, x):
    if e is None:
        return False
    return (valid(be, e) and e[0] == x) or bool(e[4] and altok(be, e) and e[5] == x)


def bk_of(e): return e and e[0]
def isn_of(e): return e[2]
def unconfirmed(e): return e[4]
def closing(e): return e[3]


def canon(be, e, live, udp, halfclosed):
    """Merge entries that no rule can tell apart."""
    bk, gen, isn, cl, un, alt, ag = e
    if udp: isn = 0
    elif not live or isn != MINE: isn = OLD
    if not be[bk][0]: gen = 1
    if alt != NONE and (not be[alt][0] or ag) or not un: alt, ag = NONE, 0
    if gen == 1: bk = 0
    return (bk, gen, isn, cl if halfclosed else 0, un, alt, ag)


def mk(be, x, isn, cl=0, un=0, alt=NONE, ag=0): return (x, be[x][3], isn, cl, un, alt, ag)


def route(be, slot, e, kind, isn, idle=False):
    """kind: S(yn) D(ata) F(in) R(st) U(dp) -> (target or NONE, entry afterwards)"""
    o, b, t, l = slot
    if not t: return (o if usable(be, o) else NONE), e
    v = valid(be, e); rec = o != b
    if kind == 'S':
        if v and usable(be, e[0]):
            if e[2] == isn: return e[0], e                                  # retransmission or duplicate
            if takes(be, e[0]): return e[0], (e[0], e[1], isn, 0) + e[4:]
        if not takes(be, o): return NONE, e
        if e is None: return o, (mk(be, o, isn, 0, 1) if rec else None)
        if v and not e[4]: alt, ag = e[0], e[1]                             # remember the one that it replaces
        elif e[4] and altok(be, e): alt, ag = e[5], e[6]
        else: alt, ag = NONE, 0
        return o, (mk(be, o, isn) if o == alt else mk(be, o, isn, 0, 1, alt, ag))
    if kind == 'U': return udp(be, slot, e, bk_of(e), idle, v, lambda x: mk(be, x, 0), lambda y: y)
    cl = kind in 'FR'
    if e is not None and e[4]:                                              # made by a SYN, not yet confirmed
        if e[2] == isn:
            if v: e = (e[0], e[1], isn, e[3], 0, NONE, 0)
        elif altok(be, e): return (e[5] if usable(be, e[5]) else NONE), e
        elif usable(be, b): return b, e[:5] + (b, be[b][3])
        else: return (o if usable(be, o) else NONE), e
    if v:
        if usable(be, e[0]): return e[0], (e[0], e[1], e[2], 1 if cl else e[3], 0, NONE, 0)
        return (o if usable(be, o) else NONE), e
    if usable(be, b): return b, (mk(be, b, OLD, int(cl)) if rec or e is not None else None)
    if usable(be, o): return o, e
    if b != NONE and be[b][0] and rec: return NONE, mk(be, b, OLD)
    return NONE, e


def udp(be, slot, e, x, idle, v, make, touch):
    """UDP is the same in both rule sets."""
    o, b, t, l = slot
    if v and not idle:
        if usable(be, x): return x, touch(e)
        if not usable(be, o): return NONE, e
        return o, make(o)
    x = b if l and usable(be, b) else o
    if not usable(be, x): return NONE, e
    return x, (make(x) if o != b or e is not None else None)

