# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# The daemon at its full size; as root, in namespaces of its own.
BENCHES += control

bench-control: bpf programs
	@mkdir -p $(O)/bench
	$(Q)$(PYTHON) -B tests/bench/control.py $(O)/bench/control.json
