# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Health checks down the data path, in a lab.  Needs root.
SUITES += health

test-health: all lab
	$(Q)$(PYTHON) scripts/run-pytest --twice tests/health $(PYTEST_ARGS)
