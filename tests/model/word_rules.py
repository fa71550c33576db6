# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Of the model that the connection rules were explored with: the oracle of test_conformance.py, left as it was.
"""One-word rules: an entry that fits one aligned 64-bit word and is replaced by compare-and-exchange.

entry = (state, gen, isn, bk);  state: HALF made by a SYN, ADOPTED made by one non-SYN packet (or datagram), LIVE,
CLOSING.  Options (S: all off; FINAL: what is proposed; the rest are there to show what goes wrong without):
  adopted   ADOPTED is a state of its own.  Off: adoption makes the same "unconfirmed" entry as a SYN
  isn       None: no ISN bits kept.  'half': kept while HALF.  'all': kept in every state
  window    a non-SYN packet outside the window of a HALF entry: None, confirms it; 'entry', follows it without
            confirming; 'base', goes to base and leaves it; 'adopt', goes to base and overwrites it
  collide   every two ISNs look alike, as with no bits at all: shows what a chance match of the bits can do
Where isn is None, isn in the entry is only a note for the checker; no rule reads it.
"""
from daemon import NONE, usable, takes
from ref_rules import udp, MINE, OLD
NAME = 'one word'
HALF, ADOPTED, LIVE, CLOSING = 0, 1, 2, 3
S = dict(adopted=0, isn=None, window=None, collide=0)
FINAL = dict(adopted=1, isn='all', window='base', collide=0)
OPT = dict(FINAL)


def valid(be, e): return e is not None and bool(be[e[3]][0]) and be[e[3]][3] == e[1]
def disagrees(be, e, o): return valid(be, e) and e[3] != o
def names(be, e, x): return valid(be, e) and e[3] == x
def bk_of(e): return e and e[3]
def isn_of(e): return e[2]
def unconfirmed(e): return e[0] < LIVE
def closing(e): return e[0] == CLOSING


def canon(be, e, live, isudp, halfclosed):
    st, gen, isn, bk = e
    if isudp: isn = 0
    elif not live or isn != MINE: isn = OLD
    if not be[bk][0]: gen = 1
    if gen == 1: bk = 0
    if st == CLOSING and not halfclosed: st = LIVE
    return (st, gen, isn, bk)


def mk(be, x, st, isn): return (st, be[x][3], isn, x)


def route(be, slot, e, kind, isn, idle=False):
    o, b, t, l = slot
    if not t: return (o if usable(be, o) else NONE), e
    v = valid(be, e); rec = o != b
    ADO = ADOPTED if OPT['adopted'] else HALF
    if kind == 'S':
        if v and usable(be, e[3]):
            st, gen, ei, x = e
            if OPT['collide']: same = True
            elif OPT['isn']: same = ei == isn and (OPT['isn'] == 'all' or st == HALF)
            else: same = st == HALF                       # unconfirmed: taken for a retransmission
            if same: return x, (st, gen, isn, x)
            if takes(be, x):
                return x, (LIVE if st == CLOSING else st, gen, isn, x)
        if not takes(be, o): return NONE, e
        return o, (mk(be, o, HALF, isn) if rec or e is not None else None)
    if kind == 'U':
        return udp(be, slot, e, bk_of(e), idle, v, lambda x: mk(be, x, ADO, 0), lambda y: (LIVE,) + y[1:])
    cl = kind in 'FR'
    other = v and e[0] == HALF and e[2] != isn and not OPT['collide']       # not the connection of the entry's SYN
    if other and (OPT['window'] in ('entry', 'adopt') or OPT['window'] == 'base' and e[3] != b):
        if OPT['window'] == 'adopt' and usable(be, b): return b, mk(be, b, ADO, OLD)
        x = e[3] if OPT['window'] == 'entry' else b if usable(be, b) else o
        return (x if usable(be, x) else NONE), e
    if v:
        if usable(be, e[3]): return e[3], (CLOSING if cl or e[0] == CLOSING else LIVE,) + e[1:]
        return (o if usable(be, o) else NONE), e
    if usable(be, b): return b, (mk(be, b, ADO, OLD) if rec or e is not None else None)
    if usable(be, o): return o, e
    if b != NONE and be[b][0] and rec: return NONE, mk(be, b, ADO, OLD)
    return NONE, e


def refused(be, slot, kind, tgt):
    """The table had no room for the entry that route() wanted to insert: where the packet goes then."""
    o, b, t, l = slot
    if kind != 'S': return tgt                            # it went to base; the next packet tries again
    if takes(be, b): return b                             # base needs no entry
    return NONE if usable(be, b) else o                   # unrecorded at owner would break at its next packet
