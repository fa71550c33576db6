/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The backends' program as C. */
#include "../../bpf/shunt_decap.bpf.c"
#include "shadow.h"

#define MAP(name)                                                                                                      \
	{                                                                                                              \
		&name, #name                                                                                           \
	}

static const struct shadow_map maps[] = {MAP(decap_reasons), MAP(decap_sources), MAP(decap_inner), {}};

const struct shadow_program shadow_decap = {maps, (void *)&config, sizeof(config), shunt_decap};
