# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Packets through the real objects by PROG_TEST_RUN, with maps filled by the library.
SUITES += packets

HARNESS = $(O)/tests/packets/harness
HARNESS_OBJECTS = $(patsubst %.c,$(O)/%.o,$(wildcard tests/packets/*.c))

$(HARNESS): $(HARNESS_OBJECTS) $(LIB)
	$(call say,LINK,$@)
	$(Q)$(CC) $(ALL_CFLAGS) $(LDFLAGS) -o $@ $(HARNESS_OBJECTS) $(LIB) $(LIBS)

test-packets: bpf $(HARNESS)
	$(Q)O=$(abspath $(O)) scripts/run-pytest tests/packets $(PYTEST_OPTIONS)
