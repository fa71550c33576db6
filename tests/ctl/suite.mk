# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# shuntctl: without a daemon and with one that misbehaves, both under sanitizers; with the real one in a namespace.
SUITES += ctl

$(O)/asan/shuntctl: $(patsubst %.c,$(O)/asan/%.o,$(wildcard user/ctl/*.c)) $(O)/asan/libshunt.a
	$(call say,LINK,$@)
	$(Q)$(CC) $(ALL_CFLAGS) $(SANITIZE) -o $@ $^ $(LIBS)

test-ctl: bpf programs man $(O)/asan/shuntctl
	$(Q)SHUNTCTL=$(O)/asan/shuntctl $(PYTHON) scripts/run-pytest tests/ctl $(PYTEST_ARGS)
