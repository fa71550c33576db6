# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Benchmarks: no suite, run by `make bench`, never judged by a time.  Another file tests/bench/*.mk adds its own
# with BENCHES += name and a target bench-<name>.
BENCHES += flowhash

$(O)/tests/bench/%: tests/bench/%.c $(LIB)
	@mkdir -p $(@D)
	$(call say,BENCH,$@)
	$(Q)$(CC) $(ALL_CFLAGS) -MMD -MP -o $@ $< $(LIB) $(LIBS)

bench-flowhash: $(O)/tests/bench/flowhash $(O)/tests/bench/flowhash.bpf.o
	$(Q)$^

BENCHES += path
bench-path: $(O)/tests/bench/path $(O)/tests/bench/path.bpf.o $(O)/shunt.bpf.o
	@mkdir -p $(O)/bench
	$(Q)$< $(O) $(O)/tests/bench/path.bpf.o $(O)/bench/path.json $(ROUNDS) $(FRAMES)
