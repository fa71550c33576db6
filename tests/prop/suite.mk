# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Property tests: the library's tables against an implementation of their own in Python (oracle.py), and its slots in
# transition against the rules of tests/model.
# SHUNT_PROP_SCALE multiplies the number of random examples; `make nightly` takes 20.
SUITES += prop
NIGHTLY += nightly-prop

PROP_LIB = $(O)/tests/prop/libshunt-table.so
PROP_SOURCES = tests/prop/shim.c $(wildcard user/lib/table/*.c) $(addprefix user/lib/,transit.c transit_ranges.c transit_scan.c) \
	user/lib/report.c user/lib/utf8.c

$(PROP_LIB): tests/prop/suite.mk $(PROP_SOURCES) $(wildcard user/lib/table/*.h) user/lib/report.h user/lib/transit.h
	@mkdir -p $(@D)
	$(call say,TEST,$@)
	$(Q)$(CC) $(ALL_CFLAGS) -fPIC -shared -Wl,-z,defs -o $@ $(PROP_SOURCES) -lxxhash

test-prop nightly-prop: export SHUNT_TABLE_LIBRARY = $(abspath $(PROP_LIB))
# The program with sanitizers, of tests/ctl/suite.mk.
test-prop nightly-prop: export SHUNTCTL = $(abspath $(O)/asan/shuntctl)
test-prop: $(PROP_LIB) $(O)/asan/shuntctl
	$(Q)scripts/run-pytest tests/prop

nightly-prop: export SHUNT_PROP_SCALE = 20
nightly-prop: $(PROP_LIB) $(O)/asan/shuntctl
	$(Q)scripts/run-pytest tests/prop
