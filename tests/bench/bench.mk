# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Benchmarks: no suite, run by `make bench`, never judged by a time.  Another file tests/bench/*.mk adds its own
# with BENCHES += name and a target bench-<name>.
BENCHES += flowhash

$(O)/tests/bench/%: tests/bench/%.c $(LIB)
	@mkdir -p $(@D)
	$(call say,BENCH,$@)
	$(Q)$(CC) $(ALL_CFLAGS) -MMD -MP -o $@ $(filter %.c,$^) $(LIB) $(LIBS)

$(O)/tests/bench/path: $(addprefix tests/bench/,balancer.c cases.c figures.c live.c wrap.c)
$(O)/tests/bench/swap: tests/bench/figures.c

bench-flowhash: $(O)/tests/bench/flowhash $(O)/tests/bench/flowhash.bpf.o
	$(Q)$^

BENCHES += path swap
bench-swap: $(O)/tests/bench/swap $(O)/tests/bench/swap.bpf.o
	@mkdir -p $(O)/bench
	$(Q)$^ $(O)/bench/swap.json

bench-path: $(O)/tests/bench/path $(O)/tests/bench/path.bpf.o $(O)/shunt.bpf.o
	@mkdir -p $(O)/bench
	$(Q)$< $(O) $(O)/tests/bench/path.bpf.o $(O)/bench/path.json $(ROUNDS) $(FRAMES)

# A look, not a measurement: few rounds of few packets.
.PHONY: bench-quick
bench-quick:
	$(Q)$(MAKE) --no-print-directory bench-path bench-swap ROUNDS=3 FRAMES=40000
	$(Q)scripts/bench-report $(O)/bench

# In CI, that all of it runs and every frame comes out right; what it costs is not judged there.
SUITES += bench
test-bench: $(O)/tests/bench/path $(O)/tests/bench/path.bpf.o $(O)/tests/bench/swap $(O)/tests/bench/swap.bpf.o bpf
	$(Q)O=$(abspath $(O)) scripts/run-pytest tests/bench $(PYTEST_OPTIONS)
