# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# kill -9 during random changes, on a good disk, a full one, and on damaged state; and no drift.
# KILLS= how often, SEED= of the stream; more of both at night.
SUITES += crash
NIGHTLY += nightly-crash

export KILLS ?= 12
export SEED ?= 1
export VERBS ?= 300

test-crash: programs
	$(Q)scripts/run-pytest tests/crash

nightly-crash:
	$(Q)$(MAKE) --no-print-directory test-crash KILLS=300 VERBS=10000 SEED=$$(date +%Y%m%d)
