# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# What the programs cost that does not depend on time: instructions, JIT size, stack, the verifier's work.
SUITES += verifier

$(O)/tests/verifier/measure: tests/verifier/measure.c
	@mkdir -p $(@D)
	$(call say,LINK,$@)
	$(Q)$(CC) $(ALL_CFLAGS) -MMD -MP -o $@ $< -lbpf

test-verifier: bpf $(O)/tests/verifier/measure
	$(Q)O=$(abspath $(O)) scripts/run-pytest tests/verifier $(PYTEST_OPTIONS)
