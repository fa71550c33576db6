# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# shuntd: its life, its control socket, documents, and the ways to backends that it follows.
SUITES += daemon

$(O)/tests/daemon/nexthop_watch: tests/daemon/nexthop_watch.c $(LIB)
	@mkdir -p $(@D)
	$(call say,TEST,$@)
	$(Q)$(CC) $(ALL_CFLAGS) -MMD -MP -o $@ $< $(LIB) $(LIBS)

test-daemon: programs $(O)/tests/daemon/nexthop_watch
	$(Q)scripts/run-pytest --twice tests/daemon

# The same under valgrind, in which a definite leak or a use of what is not there is an error; what it says is in
# $(O)/valgrind.  VALGRIND_TESTS (as pytest -k takes it) chooses tests.
VALGRIND_TESTS ?=
NIGHTLY += nightly-valgrind
nightly-valgrind: programs $(O)/tests/daemon/nexthop_watch
	$(Q)rm -rf $(O)/valgrind && mkdir -p $(O)/valgrind
	$(Q)SHUNTD_UNDER="valgrind -q --leak-check=full --errors-for-leak-kinds=definite --show-leak-kinds=definite \
		--suppressions=$(CURDIR)/tests/daemon/valgrind.supp --num-callers=20 --log-file=$(abspath $(O))/valgrind/%p" \
		$(PYTHON) scripts/run-pytest tests/daemon -k "$(VALGRIND_TESTS)"; tests=$$?; \
		found=$$(grep -l '^==' $(O)/valgrind/* | wc -l); runs=$$(find $(O)/valgrind -type f | wc -l); \
		grep -h '^==' $(O)/valgrind/*; echo "valgrind:"; printf '%d passed, %d failed\n' $$((runs - found)) $$found; \
		[ "$$tests" = 0 ] && [ "$$runs" -gt 0 ] && [ "$$found" = 0 ]
