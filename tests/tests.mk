# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Suites.  Each tests/<folder>/suite.mk adds its name to SUITES and a target test-<suite>, which ends its output
# with the line "N passed, N failed" (", N skipped" where some were).

SUITES =
# Longer forms of suites, too slow for every change: NIGHTLY += target.
NIGHTLY =
BENCHES =

# Of tests/packets, here because suites that come before it in the alphabet need it too: a variable that is set later is
# empty in a list of prerequisites, without a word.
HARNESS = $(O)/tests/packets/harness
HARNESS_OBJECTS = $(patsubst %.c,$(O)/%.o,$(wildcard tests/packets/*.c))

include $(wildcard tests/*/suite.mk tests/bench/*.mk)

.PHONY: lab nightly $(SUITES:%=test-%) $(NIGHTLY) $(BENCHES:%=bench-%)
# What the lab needs beside the products (the rule is in tests/golden/suite.mk).
lab: $(O)/tests/bpf/pass.bpf.o

test: deps
	$(Q)$(MAKE) --no-print-directory all lab
	$(Q)scripts/run-suites $(SUITES)

nightly: deps
	$(Q)$(MAKE) --no-print-directory all
	$(Q)for target in $(NIGHTLY); do echo "== $$target"; $(MAKE) --no-print-directory $$target || bad=1; done; exit $${bad:-0}

bench: $(BENCHES:%=bench-%)
	$(Q)scripts/bench-report $(O)/bench
