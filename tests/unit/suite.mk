# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Unit tests: each test_*.c is a cmocka program over the library, built with ASan and UBSan.
SUITES += unit

UNIT_TESTS = $(patsubst tests/unit/%.c,$(O)/tests/unit/%,$(wildcard tests/unit/test_*.c))
SANITIZE = -fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer
UNIT_LIB = $(LIB_SOURCES:%.c=$(O)/asan/%.o)

$(O)/asan/%.o: %.c
	@mkdir -p $(@D)
	$(call say,CC,$@)
	$(Q)$(CC) $(ALL_CFLAGS) $(SANITIZE) -MMD -MP -c $< -o $@

$(O)/asan/libshunt.a: $(UNIT_LIB)
	$(Q)rm -f $@ && ar rcs $@ $^

$(O)/tests/unit/%: tests/unit/%.c $(O)/asan/libshunt.a
	@mkdir -p $(@D)
	$(call say,TEST,$@)
	$(Q)$(CC) $(ALL_CFLAGS) $(SANITIZE) -MMD -MP -o $@ $< $(O)/asan/libshunt.a $(LIBS) -lcmocka -lm

test-unit: $(UNIT_TESTS)
	$(Q)scripts/run-cmocka $(UNIT_TESTS)
