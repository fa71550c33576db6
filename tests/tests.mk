# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Suites.  Each tests/<folder>/suite.mk adds its name to SUITES and a target test-<suite>, which ends its output
# with the line "N passed, N failed" (", N skipped" where some were).

SUITES =
include $(wildcard tests/*/suite.mk)

.PHONY: lab $(SUITES:%=test-%)
# What the lab needs beside the products (the rule is in tests/golden/suite.mk).
lab: $(O)/tests/bpf/pass.bpf.o

test: deps
	$(Q)$(MAKE) --no-print-directory all lab
	$(Q)scripts/run-suites $(SUITES)
