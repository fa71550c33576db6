# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# shuntd: its life, its control socket, documents, and the ways to backends that it follows.
SUITES += daemon

$(O)/tests/daemon/nexthop_watch: tests/daemon/nexthop_watch.c $(LIB)
	@mkdir -p $(@D)
	$(call say,TEST,$@)
	$(Q)$(CC) $(ALL_CFLAGS) -MMD -MP -o $@ $< $(LIB) $(LIBS)

test-daemon: programs $(O)/tests/daemon/nexthop_watch
	$(Q)scripts/run-pytest tests/daemon
