# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Fuzz targets: each fuzz_*.c is a libFuzzer program over the library, with AddressSanitizer and UBSan, and runs for
# FUZZ_SECONDS in a corpus of its own that begins with what fuzz_*.seeds names (patterns of files, one a line) and with
# the words of fuzz_*.dict; both may be missing.  Flags of one target: FUZZ_CFLAGS_fuzz_x, FUZZ_LDFLAGS_fuzz_x.  Seeds
# that a program makes are in $(O)/tests/fuzz/fuzz_*.seeds/, a prerequisite of test-fuzz.
SUITES += fuzz

FUZZ_SECONDS ?= 30
FUZZ_TARGETS = $(patsubst tests/fuzz/%.c,$(O)/tests/fuzz/%,$(wildcard tests/fuzz/fuzz_*.c))
FUZZ_SANITIZE = address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer
FUZZ_LIB = $(LIB_SOURCES:%.c=$(O)/fuzz/%.o)

# -w: gcc and clang-tidy judge the library; clang's own taste in warnings is no news here.
$(O)/fuzz/%.o: %.c
	@mkdir -p $(@D)
	$(call say,CC,$@)
	$(Q)$(CLANG) $(ALL_CFLAGS) -w -fsanitize=fuzzer-no-link,$(FUZZ_SANITIZE) -MMD -MP -c $< -o $@

$(O)/fuzz/libshunt.a: $(FUZZ_LIB)
	$(Q)rm -f $@ && ar rcs $@ $^

$(O)/tests/fuzz/%: tests/fuzz/%.c $(O)/fuzz/libshunt.a
	@mkdir -p $(@D)
	$(call say,FUZZ,$@)
	$(Q)$(CLANG) $(ALL_CFLAGS) -fsanitize=fuzzer,$(FUZZ_SANITIZE) $(FUZZ_CFLAGS_$*) -MMD -MP -o $@ $< \
		$(O)/fuzz/libshunt.a $(LIBS) $(FUZZ_LDFLAGS_$*)

# It must not open the key files that its inputs name.
FUZZ_LDFLAGS_fuzz_document = -Wl,--wrap=open

# The BPF programs compiled as C: native/ has a bpf/bpf_helpers.h for that.  Programs are functions without prototypes, and
# IP headers in frames are aligned to two bytes, which BPF may read.
FUZZ_NATIVE = -Itests/fuzz/native -Ibpf -Wno-missing-prototypes -fno-sanitize=alignment
FUZZ_CFLAGS_fuzz_packet = $(FUZZ_NATIVE)
FUZZ_CFLAGS_fuzz_decap = $(FUZZ_NATIVE)

FUZZ_SEEDS = $(O)/tests/fuzz/fuzz_packet.seeds $(O)/tests/fuzz/fuzz_decap.seeds
$(FUZZ_SEEDS): $(O)/tests/fuzz/fuzz_%.seeds: tests/fuzz/packet-seeds $(wildcard tests/packets/*.py)
	@mkdir -p $@
	$(Q)$(PYTHON) -B $< $* $@ && touch $@

test-fuzz: $(FUZZ_SEEDS) $(FUZZ_TARGETS)
	$(Q)scripts/run-fuzz $(FUZZ_SECONDS) $(FUZZ_TARGETS)

NIGHTLY += nightly-fuzz
nightly-fuzz: FUZZ_SECONDS = 900
nightly-fuzz: $(FUZZ_SEEDS) $(FUZZ_TARGETS)
	$(Q)scripts/run-fuzz $(FUZZ_SECONDS) $(FUZZ_TARGETS)
