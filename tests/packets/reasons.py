# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The reason counters and their classes, from counters.def."""

import importlib.machinery
import importlib.util

from kernel import TOP

_loader = importlib.machinery.SourceFileLoader("gen_counters", str(TOP / "scripts/gen-counters"))
gen_counters = importlib.util.module_from_spec(importlib.util.spec_from_loader("gen_counters", _loader))
_loader.exec_module(gen_counters)

# {name: class}
CLASSES = {name: kind for _, name, kind, _ in gen_counters.counters(gen_counters.SOURCE.read_text())}
