# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# The engine over real kernel maps (root): cmocka programs, sanitized like the unit tests.
SUITES += engine

ENGINE_TESTS = $(patsubst tests/engine/%.c,$(O)/tests/engine/%,$(wildcard tests/engine/test_*.c))
ENGINE_SUPPORT = $(addprefix tests/engine/,fixture.c view.c)

$(O)/tests/engine/%: tests/engine/%.c $(ENGINE_SUPPORT) $(wildcard tests/engine/*.h) $(O)/asan/libshunt.a
	@mkdir -p $(@D)
	$(call say,TEST,$@)
	$(Q)$(CC) $(ALL_CFLAGS) $(SANITIZE) -o $@ $< $(ENGINE_SUPPORT) $(O)/asan/libshunt.a $(LIBS) -lcmocka

test-engine: $(ENGINE_TESTS)
	$(Q)scripts/run-cmocka $^
