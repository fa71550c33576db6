# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Debian 12's stock kernel in a virtual machine: every packet case there, and HTTP through virtio-net to the kernel's
# own tunnel devices.
SUITES += vm

$(O)/tests/vm/agent: tests/vm/agent.c
	@mkdir -p $(@D)
	$(call say,LINK,$@)
	$(Q)$(CC) $(ALL_CFLAGS) -MMD -MP -o $@ $<

# An absolute path of each, because they have the same one in the machine.
VM_FILES = $(abspath $(O)/tests/vm/agent $(PROGRAMS:%=$(O)/%) $(BPF_OBJECTS) $(HARNESS) $(O)/tests/daemon/nexthop_watch)

test-vm: all $(HARNESS) $(O)/tests/vm/agent $(O)/tests/daemon/nexthop_watch
	$(Q)O=$(abspath $(O)) $(PYTHON) -B tests/vm/run $(VM_FILES)

# Of `make bench`, what differs on that kernel.
.PHONY: bench-swap-vm
bench-swap-vm: $(O)/tests/vm/agent $(O)/tests/bench/swap $(O)/tests/bench/swap.bpf.o
	$(Q)O=$(abspath $(O)) $(PYTHON) -B tests/vm/swap $(abspath $^)
