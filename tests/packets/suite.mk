# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Packets through the real objects by PROG_TEST_RUN, with maps filled by the library.
SUITES += packets

$(HARNESS): $(HARNESS_OBJECTS) $(LIB)
	$(call say,LINK,$@)
	$(Q)$(CC) $(ALL_CFLAGS) $(LDFLAGS) -o $@ $(HARNESS_OBJECTS) $(LIB) $(LIBS)

MUTATIONS ?= 20000
RUN_PACKETS = O=$(abspath $(O)) MUTATIONS=$(MUTATIONS) scripts/run-pytest tests/packets $(PYTEST_ARGS)

test-packets: bpf $(HARNESS)
	$(Q)$(RUN_PACKETS)

NIGHTLY += nightly-packets
nightly-packets: MUTATIONS = 1000000
nightly-packets: bpf $(HARNESS)
	$(Q)$(RUN_PACKETS) -k mutations
