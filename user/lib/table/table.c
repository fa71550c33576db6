/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <string.h>

#include "internal.h"

const struct table_algorithm table_algorithms[] = {
	{.name = "maglev", .build = table_build_maglev, .exact = true},
	{.name = "minimal", .build = table_build_minimal, .history = true, .exact = true},
	{.name = "rendezvous", .build = table_build_rendezvous},
	{.name = "ring", .build = table_build_ring},
	{.name = "jump", .build = table_build_jump, .simulator_only = true},
	{.name = "modulo", .build = table_build_modulo, .simulator_only = true},
};

const size_t table_n_algorithms = sizeof(table_algorithms) / sizeof(table_algorithms[0]);

const struct table_algorithm *table_algorithm(const char *name)
{
	for (size_t i = 0; i < table_n_algorithms; i++) {
		if (!strcmp(table_algorithms[i].name, name))
			return &table_algorithms[i];
	}
	return NULL;
}
