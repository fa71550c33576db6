/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <errno.h>
#include <stdlib.h>

#include "state.h"

int state_init(struct state *state, struct model *model)
{
	*state = (struct state){.model = model};
	state->pools = calloc(model->n_pools + 1, sizeof(*state->pools));
	state->counters = calloc(model->n_services + 1, sizeof(*state->counters));
	if (!state->pools || !state->counters)
		return -ENOMEM;
	for (size_t i = 0; i < model->n_pools; i++) {
		state->pools[i].backends = calloc(model->pools[i].n_backends + 1, sizeof(struct state_backend));
		if (!state->pools[i].backends)
			return -ENOMEM;
	}
	return 0;
}

void state_free(struct state *state)
{
	for (size_t i = 0; state->pools && i < state->model->n_pools; i++)
		free(state->pools[i].backends);
	free(state->pools);
	free(state->counters);
	*state = (struct state){};
}
