# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# shunt-loader as an operator runs it, on veth pairs in network namespaces of its own.
SUITES += loader

test-loader: bpf programs $(TEST_BPF_OBJECTS)
	$(Q)$(PYTHON) scripts/run-pytest --twice tests/loader $(PYTEST_ARGS)
