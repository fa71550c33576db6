# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# shuntctl explain beside the program that it explains (root): a sample of the packet cases, all of them at night.
SUITES += explain

test-explain: bpf programs $(O)/tests/packets/harness
	$(Q)O=$(abspath $(O)) scripts/run-pytest tests/explain $(PYTEST_ARGS)

NIGHTLY += nightly-explain
nightly-explain: export SHUNT_EXPLAIN_CASES = 100000
nightly-explain: test-explain
