# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Which lines of bpf/ the packet tests reach: `make coverage` runs them with a harness that has the programs compiled as C
# too, and prints each file's share and the lines that nothing reached.
COVERAGE = $(O)/coverage
COVERAGE_PROGRAMS = $(COVERAGE)/lb.o $(COVERAGE)/explain.o $(COVERAGE)/decap.o
COVERAGE_CFLAGS = -std=gnu11 -O0 -g --coverage -w -D_GNU_SOURCE -Iinclude -Itests/fuzz/native -Ibpf -Itests/coverage

# Neither the sweeps over all values of a word, nor damaged packets: what cases reach is the question.
COVERAGE_SELECTION = -k "not every_carry and not leaves_every_checksum and not mutations"

# The programs have names in common: each shows only its description.
$(COVERAGE_PROGRAMS): $(COVERAGE)/%.o: tests/coverage/%.c
	@mkdir -p $(@D)
	$(call say,CC,$@)
	$(Q)$(CLANG) $(COVERAGE_CFLAGS) -Dbpf_map_lookup_elem=shadow_lookup -MMD -MP -c $< -o $@
	$(Q)objcopy --keep-global-symbol=shadow_$* $@

$(COVERAGE)/harness: $(HARNESS_OBJECTS) $(O)/tests/coverage/shadow.o $(COVERAGE_PROGRAMS) $(LIB)
	$(call say,LINK,$@)
	$(Q)$(CLANG) --coverage -o $@ $(HARNESS_OBJECTS) $(O)/tests/coverage/shadow.o $(COVERAGE_PROGRAMS) $(LIB) $(LIBS)

.PHONY: coverage
coverage: bpf $(COVERAGE)/harness
	$(Q)rm -f $(COVERAGE)/*.gcda
	$(Q)SHUNT_TEST_HARNESS=$(abspath $(COVERAGE)/harness) O=$(abspath $(O)) scripts/run-pytest tests/packets \
		$(patsubst %,tests/model/test_%.py,borders sizes conformance) $(COVERAGE_SELECTION) $(PYTEST_ARGS)
	$(Q)SHUNT_TEST_HARNESS=$(abspath $(COVERAGE)/harness) O=$(abspath $(O)) scripts/run-pytest \
		tests/explain/test_parity.py tests/explain/test_trace.py $(PYTEST_ARGS)
	$(Q)$(PYTHON) tests/coverage/report $(COVERAGE)
