# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# shuntctl: without a daemon, with one that misbehaves, and with the real one in a namespace.
SUITES += ctl

test-ctl: $(O)/shuntctl $(O)/shuntd man
	$(Q)$(PYTHON) scripts/run-pytest tests/ctl
