/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * An operator takes this balancer out of service, and back.  The decision is kept; programs are detached and attached
 * by who asked for it, because the daemon owns none.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "announce.h"
#include "log.h"
#include "methods.h"

static bool is_listed(const struct announce_kept *kept, const char *name)
{
	for (size_t i = 0; i < kept->n_interfaces; i++)
		if (!strcmp(kept->interfaces[i].name, name))
			return true;
	return false;
}

/* Those that have the program now join those that had it when the drain began. */
static int list_interfaces(const char *instance, struct announce_kept *kept)
{
	struct attach_link *links = NULL;
	size_t n = 0;
	int ret = attach_links(instance, &links, &n);

	for (size_t i = 0; i < n && kept->n_interfaces < ANNOUNCE_INTERFACES; i++) {
		struct announce_interface *to = &kept->interfaces[kept->n_interfaces];
		struct attach_state state;
		char name[64];

		if (!links[i].alive || links[i].role != PROGRAM_LB || links[i].netns != attach_netns() ||
		    attach_query(links[i].ifindex, &state) || !if_indextoname(links[i].ifindex, name) ||
		    is_listed(kept, name))
			continue;
		memcpy(to->name, name, sizeof(to->name));
		to->mode = state.mode == ATTACH_GENERIC ? ATTACH_GENERIC : ATTACH_NATIVE;
		kept->n_interfaces++;
	}
	free(links);
	return ret;
}

static json_t *drain_json(const struct announce *announce)
{
	const struct announce_kept *kept = &announce->kept;
	json_t *interfaces = json_array();

	for (size_t i = 0; i < kept->n_interfaces; i++)
		json_array_append_new(interfaces, json_pack("{s:s, s:s}", "interface", kept->interfaces[i].name, "mode",
							    attach_mode_name(kept->interfaces[i].mode)));
	return json_pack("{s:I, s:s, s:s, s:o, s:I}", "since", (json_int_t)kept->drained.time, "user",
			 kept->drained.user, "why", kept->drained.why, "interfaces", interfaces, "announced",
			 (json_int_t)announce_left(announce));
}

json_t *announce_show_drain(const struct daemon *daemon)
{
	return daemon->announce->kept.drained.time ? drain_json(daemon->announce) : json_null();
}

/* What is decided is on disk before it is done. */
static int decide(struct call *call, const struct announce_kept *kept)
{
	struct announce *announce = call->daemon->announce;
	int ret = announce_kept_save(call->daemon->options->state_dir, kept, &call->report);

	if (ret) {
		call->error = call_error_of(ret);
		return ret;
	}
	announce->kept = *kept;
	announce->damaged = false;
	daemon_set_problem(&announce->kept_problem, NULL);
	announce_look(announce);
	return 0;
}

json_t *method_self_drain(struct call *call)
{
	const struct daemon *daemon = call->daemon;
	const struct model *model = engine_model(daemon->engine);
	struct announce_kept kept = daemon->announce->kept;
	int ret;

	if (!model || !model->announce.given)
		return call_fail(call, CONTROL_INVALID,
				 "the document announces nothing, so that there is nothing to withdraw: have the "
				 "routers send traffic elsewhere, then shunt-loader detach");
	ret = list_interfaces(daemon->options->instance, &kept);
	if (ret)
		return call_fail(call, CONTROL_FAILED, "cannot list the interfaces that have the program: %s",
				 strerror(-ret));
	if (!kept.drained.time)
		kept.drained = call_origin(call, NULL);
	if (decide(call, &kept))
		return NULL;
	log_warning("this balancer is drained by %s: %s", kept.drained.user, kept.drained.why);
	return drain_json(daemon->announce);
}

json_t *method_self_undrain(struct call *call)
{
	struct announce_kept kept = call->daemon->announce->kept;

	kept.drained = (struct origin){};
	kept.n_interfaces = 0;
	if (decide(call, &kept))
		return NULL;
	log_info("this balancer is not drained any more");
	return json_object();
}
