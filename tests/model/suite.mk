# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# The packet path against the model of the connection rules (root).  SHUNT_MODEL_EVENTS= and SHUNT_MODEL_SEED= of the
# random walk, SHUNT_MODEL_RACES= of CPUs, packets of each flood SHUNT_MODEL_FLOOD=, swaps of tables
# SHUNT_MODEL_SWAPS=; `make nightly` takes more of each.
SUITES += model
NIGHTLY += nightly-model

test-model: bpf $(O)/tests/packets/harness
	$(Q)O=$(abspath $(O)) scripts/run-pytest tests/model $(PYTEST_OPTIONS)

nightly-model: export SHUNT_MODEL_EVENTS = 1000000
nightly-model: export SHUNT_MODEL_RACES = 300000
nightly-model: export SHUNT_MODEL_FLOOD = 5000000
nightly-model: export SHUNT_MODEL_SWAPS = 1000
nightly-model: test-model
