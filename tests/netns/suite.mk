# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Everything together, in namespaces: real servers and clients, the programs as an operator runs them.  Needs root.
SUITES += netns

test-netns: all lab
	$(Q)$(PYTHON) scripts/run-pytest --twice tests/netns $(PYTEST_ARGS)
