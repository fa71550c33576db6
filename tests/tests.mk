# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Suites.  Each tests/<folder>/suite.mk adds its name to SUITES and a target test-<suite>, which ends its output
# with the line "N passed, N failed" (", N skipped" where some were).

SUITES =
include $(wildcard tests/*/suite.mk)

# Small programs that the lab needs, beside the products.
LAB_OBJECTS = $(patsubst %.bpf.c,$(O)/%.bpf.o,$(wildcard tests/bpf/*.bpf.c))
$(LAB_OBJECTS): $(O)/tests/bpf/%.bpf.o: tests/bpf/%.bpf.c
	@mkdir -p $(@D)
	$(call say,BPF,$@)
	$(Q)$(CLANG) $(BPF_CFLAGS) -MMD -MP -MF $(@:.o=.d) -MT $@ -c $< -o $@

.PHONY: lab $(SUITES:%=test-%)
lab: $(LAB_OBJECTS)
test: deps
	$(Q)$(MAKE) --no-print-directory all lab
	$(Q)scripts/run-suites $(SUITES)
