# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Neighbours on a stock kernel: entries that are permanent stay so, whenever they become it."""

import os
import shlex
import subprocess

import pytest
from machine import BUILD

VIA = shlex.split(os.environ["SHUNT_TEST_VIA"])
WATCH = BUILD.resolve() / "tests/daemon/nexthop_watch"
ADDRESSES = [f"10.6.0.{i}" for i in range(100, 200)] + [f"fd06::{i:x}" for i in range(0x100, 0x164)]
MACS = {address: f"02:00:00:00:79:{index:02x}" for index, address in enumerate(ADDRESSES)}
WORDS = "".join(f"neigh replace {address} lladdr {mac} dev v0 nud permanent\n" for address, mac in MACS.items())

SCRIPT = """
ip netns add near; ip netns add far
trap 'ip netns del near; ip netns del far' EXIT
ip -n near link add v0 type veth peer name v0 netns far
ip -n far link set v0 up; ip -n near link set v0 up
ip -n near address add 10.6.0.1/24 dev v0; ip -n near address add fd06::1/64 dev v0 nodad
cat >/tmp/words
[ {pause} != before ] || ip -n near -batch /tmp/words
nsenter --net=/run/netns/near -- {watch} {addresses} >/tmp/told &
watcher=$!
[ {pause} = before ] || {{ sleep {pause}; ip -n near -batch /tmp/words; }}
sleep 3
kill $watcher
ip -n near -4 neigh show; ip -n near -6 neigh show; cat /tmp/told
"""


@pytest.mark.parametrize("pause", ["before", "0", "0.05", "0.1", "0.3"])
def test_permanent_entries_stay_so(pause):
    script = SCRIPT.format(pause=pause, watch=WATCH, addresses=" ".join(ADDRESSES))
    done = subprocess.run([*VIA, "sh", "-euc", script], input=WORDS, check=False, timeout=60, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr
    shown = sorted(line for line in done.stdout.splitlines() if line.split(" ", 1)[0] in MACS)
    assert shown == sorted(f"{address} dev v0 lladdr {mac} PERMANENT " for address, mac in MACS.items())
    for address, mac in MACS.items():
        told = [line for line in done.stdout.splitlines() if f'"address": "{address}"' in line]
        assert told and '"known": true' in told[-1] and mac in told[-1], told
