# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The library's tables, called in the shared library that suite.mk builds for these tests."""

import ctypes
import os
from array import array
from ctypes import POINTER, byref, c_bool, c_char_p, c_int, c_size_t, c_uint16, c_uint32, c_uint64, c_void_p
from typing import NamedTuple, Optional

NONE = 0xFFFF
SCALE = int(os.environ.get("SHUNT_PROP_SCALE", "1"))


class Member(NamedTuple):
    name: str
    weight: int = 1
    zone: Optional[str] = None


class TableError(Exception):
    """The library refused: errno, and the sentences of its report."""

    def __init__(self, error, sentences):
        super().__init__(f"{os.strerror(-error)}: {sentences}")
        self.errno = -error
        self.sentences = sentences


class CMember(ctypes.Structure):
    _fields_ = [("name", c_char_p), ("weight", c_uint32), ("zone", c_char_p)]


class CParams(ctypes.Structure):
    _fields_ = [("slots", c_uint32), ("balance_percent", c_uint32), ("vnodes", c_uint32)]


class CTable(ctypes.Structure):
    _fields_ = [("members", POINTER(CMember)), ("n", c_size_t), ("slots", c_uint32), ("owner", POINTER(c_uint16))]


BUILD = ctypes.CFUNCTYPE(c_int, POINTER(CMember), c_size_t, POINTER(CParams), POINTER(CTable), POINTER(c_uint16),
                         c_void_p)


class CAlgorithm(ctypes.Structure):
    _fields_ = [("name", c_char_p), ("build", BUILD), ("history", c_bool), ("exact", c_bool),
                ("simulator_only", c_bool)]


class CMove(ctypes.Structure):
    _fields_ = [("from_", c_uint16), ("to", c_uint16), ("slots", c_uint32)]


class CDiff(ctypes.Structure):
    _fields_ = [("slots", c_uint32), ("moved", c_uint32), ("minimum", c_uint32), ("excess", c_uint32),
                ("moves", POINTER(CMove)), ("n_moves", c_size_t)]


class CReplicas(ctypes.Structure):
    _fields_ = [("count", c_size_t), ("zones", c_size_t), ("under_replicated", c_bool)]


lib = ctypes.CDLL(os.environ["SHUNT_TABLE_LIBRARY"])
lib.table_algorithm.restype = POINTER(CAlgorithm)
lib.table_digest.restype = c_uint64
lib.table_preference_list.restype = CReplicas
lib.shim_report_new.restype = c_void_p
lib.shim_report_count.restype = c_size_t
lib.shim_report_text.restype = c_char_p
lib.table_preference_list.argtypes = [c_void_p, c_uint32, c_size_t, POINTER(c_uint16)]

for at, struct in enumerate([CMember, CParams, CTable, CAlgorithm, CMove, CDiff, CReplicas]):
    assert ctypes.sizeof(struct) == (c_size_t * 7).in_dll(lib, "shim_sizes")[at], struct


def c_members(members):
    return (CMember * max(len(members), 1))(
        *[CMember(m.name.encode(), m.weight, m.zone.encode() if m.zone else None) for m in members])


class Table:
    """owner[slot] is an index into members, or NONE."""

    def __init__(self, members, owner, warnings=()):
        self.members = members
        self.owner = owner
        self.slots = len(owner)
        self.warnings = list(warnings)

    def names(self):
        name = [m.name for m in self.members]
        return [name[o] if o != NONE else None for o in self.owner]

    def counts(self):
        """Slots of each member, by name."""
        count = [0] * (NONE + 1)
        for owner in self.owner:
            count[owner] += 1
        return {m.name: count[i] for i, m in enumerate(self.members)}

    def c(self):
        self.c_members = c_members(self.members)
        self.c_owner = (c_uint16 * self.slots).from_buffer(self.owner)
        return CTable(self.c_members, len(self.members), self.slots, self.c_owner)

    def digest(self):
        return lib.table_digest(byref(self.c()))


class Report:
    def __init__(self):
        self.handle = c_void_p(lib.shim_report_new())

    def finish(self, error):
        """The warnings, or TableError with the errors."""
        entries = [(lib.shim_report_level(self.handle, c_size_t(i)),
                    lib.shim_report_text(self.handle, c_size_t(i)).decode())
                   for i in range(lib.shim_report_count(self.handle))]
        lib.shim_report_free(self.handle)
        errors = [text for level, text in entries if level == 0]
        if error:
            raise TableError(error, errors)
        assert not errors
        return [text for level, text in entries if level == 1]


def build(algorithm, members, slots, previous=None, balance=0, vnodes=0):
    owner = array("H", bytes(2 * slots))
    params, report = CParams(slots, balance, vnodes), Report()
    c_owner = (c_uint16 * slots).from_buffer(owner)
    found = lib.table_algorithm(algorithm.encode())
    assert found, algorithm
    error = found.contents.build(c_members(members), len(members), byref(params),
                                 byref(previous.c()) if previous else None, c_owner, report.handle)
    del c_owner
    return Table(list(members), owner, report.finish(error))


def quotas(members, slots):
    out, report = (c_uint32 * max(len(members), 1))(), Report()
    error = lib.table_quotas(c_members(members), c_size_t(len(members)), c_uint32(slots), out, report.handle)
    report.finish(error)
    return {m.name: out[i] for i, m in enumerate(members)}


def diff(before, after):
    """(moved, minimum, excess, [(from, to, slots)]), with names."""
    out = CDiff()
    error = lib.table_diff(byref(before.c()), byref(after.c()), byref(out))
    if error:
        raise TableError(error, [])

    def name(table, i):
        return None if i == NONE else table.members[i].name

    moves = [(name(before, m.from_), name(after, m.to), m.slots) for m in out.moves[: out.n_moves]]
    result = (out.moved, out.minimum, out.excess, moves)
    lib.table_diff_free(byref(out))
    return result


def preferences(table, k, slots):
    """For each of these slots: names, number of zones, under-replicated."""
    handle, out, c_table = c_void_p(), (c_uint16 * max(k, 1))(), table.c()
    error = lib.table_preference_open(byref(c_table), byref(handle))
    assert not error
    result = []
    for slot in slots:
        r = lib.table_preference_list(handle, slot, k, out)
        result.append(([table.members[i].name for i in out[: r.count]], r.zones, r.under_replicated))
    lib.table_preference_close(handle)
    return result
