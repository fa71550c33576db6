/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Looks at the table of pool 0 as a packet does, and says which one is in force. */
#include "maps.bpf.h"

SEC("xdp")
int phase_in_force(struct xdp_md *ctx)
{
	const struct shunt_table *table;
	__u32 zero = 0;
	void *inner = bpf_map_lookup_elem(&tables_m, &zero);

	(void)ctx;
	if (!inner)
		return 0;
	table = bpf_map_lookup_elem(inner, &zero);
	return table ? (int)table->phase : 0;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
