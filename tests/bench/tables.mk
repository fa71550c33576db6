# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
BENCHES += tables

bench-tables: $(O)/tests/bench/tables
	@mkdir -p $(O)/bench
	$(Q)$< $(O)/bench/tables.json
