# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# No suite of its own: the golden vectors in full, and the BPF objects that only tests load.
export SHUNT_TEST_BUILD = $(abspath $(O))/tests

GOLDEN = $(O)/tests/golden/flowhash.tsv
TEST_BPF_OBJECTS = $(patsubst %.bpf.c,$(O)/%.bpf.o,$(wildcard tests/bpf/*.bpf.c tests/bench/*.bpf.c))

$(GOLDEN): tests/golden/flowhash.py tests/golden/flowhash-100.tsv tests/golden/flowhash.sha256
	@mkdir -p $(@D)
	$(Q)$(PYTHON) $< vectors >$@.tmp && $(PYTHON) $< check $@.tmp && mv $@.tmp $@

$(O)/tests/%.bpf.o: tests/%.bpf.c
	@mkdir -p $(@D)
	$(call say,BPF,$@)
	$(Q)$(CLANG) $(BPF_CFLAGS) -MMD -MP -MF $(@:.o=.d) -MT $@ -c $< -o $@

test-unit: $(GOLDEN) $(TEST_BPF_OBJECTS)
