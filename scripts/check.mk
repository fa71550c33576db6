# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Style and static analysis.  `make check` runs all; each tool is a target of its own, and its settings are said here.

CHECKS = format tidy cppcheck sparse shellcheck codespell rules
C_FILES = $(shell git ls-files '*.c' '*.h')
# What the user-space compiler sees; bpf/ has its own flags and is judged by clang -Werror and the verifier.
USER_SOURCES = $(shell git ls-files 'user/*.c')
SHELL_SCRIPTS = $(shell git ls-files | xargs grep -lE '^\#!.*\b(bash|sh)$$' 2>/dev/null)

.PHONY: $(CHECKS:%=check-%)
check: $(CHECKS:%=check-%)

# .clang-format is the whole truth: nothing is formatted by hand.
check-format:
	$(call say,CHECK,format)
	$(Q)clang-format --dry-run --Werror $(C_FILES)

# .clang-tidy lists the checks.  One process for each file, as many as there are CPUs.
check-tidy:
	$(call say,CHECK,clang-tidy)
	$(Q)printf '%s\n' $(USER_SOURCES) | \
		xargs -P $$(nproc) -n 4 sh -c 'out=$$(clang-tidy --quiet "$$@" -- $(ALL_CFLAGS) 2>/dev/null) || { echo "$$out"; exit 1; }' tidy

# warning, performance and portability: style is the formatter's and the reviewer's.
#   missingIncludeSystem   cppcheck need not see the system's headers
#   readdirCalled          its replacement readdir_r() is the deprecated one
#   LIBBPF_OPTS            a declaration, which cppcheck cannot see from here
#   json_..._foreach       loops, as little
check-cppcheck:
	$(call say,CHECK,cppcheck)
	$(Q)cppcheck --quiet --error-exitcode=1 --inline-suppr --std=c11 -j $$(nproc) -D_GNU_SOURCE -D__BYTE_ORDER__=1234 \
		-D__ORDER_LITTLE_ENDIAN__=1234 -Iinclude -Iuser/lib --enable=warning,performance,portability \
		--suppress=missingIncludeSystem --suppress=readdirCalled \
		'-DLIBBPF_OPTS(type,name,...)=struct type name = { __VA_ARGS__ }' \
		'-Djson_array_foreach(a,i,v)=for (i = 0; (v = json_array_get(a, i)); i++)' \
		'-Djson_object_foreach(o,k,v)=for (; (k = (const char *)o) && (v = json_object_get(o, k));)' --library=posix $(USER_SOURCES)

# Byte order: the __be types of include/shunt are checked wherever they are used in user space.
#   -Wno-... : what sparse says of glibc's and jansson's own headers
check-sparse:
	$(call say,CHECK,sparse)
	$(Q)bad=0; for file in $(USER_SOURCES); do \
		out=$$(sparse -Wbitwise -Wno-decl -Wno-non-pointer-null -D_GNU_SOURCE -std=gnu11 -Iinclude -Iuser/lib "$$file" 2>&1 | grep -v '^/usr/'); \
		[ -z "$$out" ] || { echo "$$out"; bad=1; }; done; exit $$bad

check-shellcheck:
	$(call say,CHECK,shellcheck)
	$(Q)shellcheck $(SHELL_SCRIPTS)

# .codespellrc lists what is left out and the words of the field that it takes for slips.
check-codespell:
	$(call say,CHECK,codespell)
	$(Q)git ls-files | grep -vE '^LICENSES/' | xargs codespell

# Rules of the project that no tool knows: SPDX lines, lengths of functions and files, no stray host paths.
check-rules:
	$(call say,CHECK,rules)
	$(Q)scripts/check-rules
