# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# make all      everything, into build/ (or O=DIR)         make test     all suites (root)
# make demo     real HTTP, balanced, in namespaces (root)  make check    style and static analysis
# make fmt      clang-format in place                      make install  DESTDIR= PREFIX=
# V=1 shows the commands.

O ?= build
PREFIX ?= /usr/local
CLANG ?= clang
CC = gcc
PYTHON ?= /usr/bin/python3
Q = $(if $(V),,@)
say = $(if $(V),,@printf '  %-7s %s\n' $(1) $(2))

PACKAGES = libbpf libelf zlib libsystemd libfyaml jansson smartcols libmnl libxxhash
WARNINGS = -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wundef -Wvla
CFLAGS ?= -O2 -g
ALL_CFLAGS = -std=gnu11 $(CFLAGS) $(WARNINGS) -D_GNU_SOURCE -Iinclude -Iuser/lib $(EXTRA_CFLAGS)
LIBS = $(shell pkg-config --libs $(PACKAGES) 2>/dev/null) -lm
# Of health checks by https: for shuntd alone, so that shuntctl starts without it.
TLS_LIBS = $(shell pkg-config --libs gnutls 2>/dev/null)
# v3 lets clang use 32-bit jumps; every kernel since 5.1 takes it.  Debian's clang needs the multiarch folder told.
# Programs are global functions that nobody declares.
BPF_CFLAGS = -target bpf -mcpu=v3 -O2 -g $(filter-out -Wmissing-prototypes,$(WARNINGS)) -Werror -Iinclude -Ibpf -isystem /usr/include/$(shell uname -m)-linux-gnu

PROGRAMS = shunt-loader shuntd shuntctl
BPF_OBJECTS = $(patsubst bpf/%.bpf.c,$(O)/%.bpf.o,$(wildcard bpf/*.bpf.c))
LIB_SOURCES = $(wildcard user/lib/*.c user/lib/*/*.c)
LIB_OBJECTS = $(LIB_SOURCES:%.c=$(O)/%.o)
LIB = $(O)/libshunt.a
objects_of = $(patsubst %.c,$(O)/%.o,$(wildcard user/$(1)/*.c))

RST2MAN ?= rst2man
MAN = $(patsubst docs/%.rst,$(O)/man/%,$(wildcard docs/*.[58].rst))

.PHONY: all bpf programs man demo test bench check fmt install clean deps
all: bpf programs

bpf: $(BPF_OBJECTS)
programs: $(PROGRAMS:%=$(O)/%)

$(O)/%.bpf.o: bpf/%.bpf.c
	@mkdir -p $(@D)
	$(call say,BPF,$@)
	$(Q)$(CLANG) $(BPF_CFLAGS) -MMD -MP -MF $(@:.o=.d) -MT $@ -c $< -o $@.tmp
	$(Q)llvm-strip -g $@.tmp && mv $@.tmp $@

$(O)/%.o: %.c
	@mkdir -p $(@D)
	$(call say,CC,$@)
	$(Q)$(CC) $(ALL_CFLAGS) -MMD -MP -c $< -o $@

$(LIB): $(LIB_OBJECTS)
	$(call say,AR,$@)
	$(Q)rm -f $@ && ar rcs $@ $^

$(O)/shunt-loader: $(call objects_of,loader) $(LIB)
$(O)/shuntd: $(call objects_of,daemon) $(LIB)
$(O)/shuntctl: $(call objects_of,ctl) $(LIB)
$(O)/shuntd: LIBS += $(TLS_LIBS)
$(PROGRAMS:%=$(O)/%):
	$(call say,LINK,$@)
	$(Q)$(CC) $(ALL_CFLAGS) $(LDFLAGS) -o $@ $(filter %.o,$^) $(LIB) $(LIBS)

man: $(MAN)
$(O)/man/%: docs/%.rst
	@mkdir -p $(@D)
	$(call say,MAN,$@)
	$(Q)$(RST2MAN) --report=warning --halt=warning $< $@.tmp && mv $@.tmp $@

include tests/tests.mk
include scripts/check.mk

deps:
	$(Q)scripts/deps.sh

demo: deps
	$(Q)$(MAKE) --no-print-directory all lab
	$(Q)scripts/demo

fmt:
	$(Q)clang-format -i $$(git ls-files '*.c' '*.h')

install: all man
	install -d $(DESTDIR)$(PREFIX)/sbin $(DESTDIR)$(PREFIX)/lib/shunt
	install -m 755 $(PROGRAMS:%=$(O)/%) $(DESTDIR)$(PREFIX)/sbin/
	install -m 644 $(BPF_OBJECTS) $(DESTDIR)$(PREFIX)/lib/shunt/
	install -d $(DESTDIR)$(PREFIX)/share/man/man5 $(DESTDIR)$(PREFIX)/share/man/man8
	for page in $(MAN); do install -m 644 $$page $(DESTDIR)$(PREFIX)/share/man/man$${page##*.}/ || exit 1; done

clean:
	rm -rf $(O)

-include $(shell find $(O) -name '*.d' 2>/dev/null)
