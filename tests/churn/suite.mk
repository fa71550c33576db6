# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Connections through every change, in the lab (root).  CONNECTIONS= CHANGES= KILLS= SEED= of the random history, whose
# figures are the last line of the output.
SUITES += churn
NIGHTLY += nightly-churn

CONNECTIONS ?= 500
CHANGES ?= 60
KILLS ?= 10
SEED ?= 1

CHURN_PROGRAMS = $(O)/tests/churn/client $(O)/tests/churn/server

$(CHURN_PROGRAMS): $(O)/tests/churn/%: tests/churn/%.c tests/churn/message.h
	@mkdir -p $(@D)
	$(call say,LINK,$@)
	$(Q)$(CC) $(ALL_CFLAGS) -o $@ $<

test-churn: all lab $(CHURN_PROGRAMS) $(O)/tests/packets/harness
	$(Q)rm -f $(O)/churn.txt; O=$(abspath $(O)) CHURN="$(CONNECTIONS) $(CHANGES) $(KILLS) $(SEED)" \
		scripts/run-pytest tests/churn $(PYTEST_OPTIONS); status=$$?; cat $(O)/churn.txt 2>/dev/null; exit $$status

nightly-churn: CONNECTIONS = 5000
nightly-churn: CHANGES = 300
nightly-churn: KILLS = 100
nightly-churn: export CHURN_DOWNLOAD = 60
nightly-churn: test-churn
