# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""After many changes a fresh instance that applies what was exported has the same tables."""

import json
import os

from rawcontrol import ask
from shuntlab import Shunt
from stream import Stream, model_of

VERBS, SEED = int(os.environ["VERBS"]), int(os.environ["SEED"])


def test_no_drift(shunt):
    stream = Stream(SEED + 3, shunt.dir / "hash.key")
    shunt.start()
    stream.run(shunt, VERBS)
    assert stream.done + stream.busy == VERBS and stream.done > VERBS // 2 and not stream.refused
    exported = shunt.ctl("-j", "export").stdout
    assert model_of(json.loads(exported)) == stream.acknowledged
    assert shunt.ctl("plan", "-", "--exit-code", stdin=exported).returncode == 0
    with Shunt() as fresh:
        fresh.write(json.loads(exported))
        fresh.start()
        assert fresh.ctl("plan", "-", "--exit-code", stdin=exported).stdout == "Nothing to do.\n"
        verify = shunt.ctl("verify", "-", stdin=fresh.ctl("-j", "digests").stdout)
        assert verify.returncode == 0, verify.stdout
        assert len(ask(fresh, "Digests")["pools"]) == len(stream.acknowledged["pools"])
