/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <stdlib.h>
#include <string.h>

#include "attach.h"
#include "ctl.h"
#include "health.h"

static json_t *interface_row(const struct attach_link *link)
{
	struct attach_state state;
	bool here = link->netns == attach_netns();
	char name[64];

	if (!here || attach_query(link->ifindex, &state))
		state.mode = ATTACH_NONE;
	return json_pack("{s:s, s:s?, s:b}", "interface", attach_link_name(link, name), "mode",
			 state.mode == ATTACH_NONE ? NULL : attach_mode_name(state.mode), "stale",
			 attach_is_stale(link));
}

static json_t *interfaces_of(const char *instance)
{
	struct attach_link *links = NULL;
	json_t *rows;
	size_t count = 0;

	if (attach_links(instance, &links, &count))
		return json_null();
	rows = json_array();
	for (size_t i = 0; i < count; i++)
		if (links[i].alive && links[i].role == PROGRAM_LB)
			json_array_append_new(rows, interface_row(&links[i]));
	free(links);
	return rows;
}

static const char *text(const json_t *row, const char *key)
{
	const char *value = json_string_value(json_object_get(row, key));

	return value ? value : "";
}

static void backend_problem(const json_t *backend, json_t *problems)
{
	const char *pool = text(backend, "pool"), *name = text(backend, "name"), *why = text(backend, "why");

	if (!json_integer_value(json_object_get(backend, "weight")))
		return;
	if (json_is_false(json_object_get(backend, "reachable")))
		json_array_append_new(problems, json_sprintf("backend %s/%s cannot be reached and has no slots: %s",
							     pool, name, *why ? why : "its next hop is not known"));
	else if (*why)
		json_array_append_new(problems, json_sprintf("backend %s/%s is sent to its last known next hop: %s",
							     pool, name, why));
}

static void counter_problem(const json_t *counter, json_t *problems)
{
	json_int_t packets = json_integer_value(json_object_get(counter, "packets"));

	if (packets && !strcmp(text(counter, "class"), "bug"))
		json_array_append_new(problems,
				      json_sprintf("counter %s is %" JSON_INTEGER_FORMAT
						   ", which is a defect of shunt: report it, with `shuntctl counters`",
						   text(counter, "name"), packets));
}

static json_t *problems_of(const json_t *status, const json_t *backends, const json_t *counters,
			   const json_t *interfaces)
{
	json_t *problems = json_array(), *row;
	size_t i;

	json_array_extend(problems, json_object_get(status, "problems"));
	if (!json_array_size(problems) && !json_is_true(json_object_get(status, "healthy")))
		json_array_append_new(problems,
				      json_string("shuntd says that it is not healthy, and not why: see its log"));
	/* One that is drained shall be on none. */
	if (json_is_array(interfaces) && !json_array_size(interfaces) &&
	    !json_is_object(json_object_get(status, "self_drain")))
		json_array_append_new(problems, json_sprintf("the load balancer is on no interface: "
							     "shunt-loader attach IFACE...%s%s",
							     maps_instance_option(ctl_options.instance),
							     maps_instance_name(ctl_options.instance)));
	json_array_foreach (interfaces, i, row)
		if (json_is_true(json_object_get(row, "stale")))
			json_array_append_new(
				problems,
				json_sprintf("interface %s runs on other maps than those that are pinned, so that no "
					     "change reaches its packets: shunt-loader upgrade%s%s",
					     text(row, "interface"), maps_instance_option(ctl_options.instance),
					     maps_instance_name(ctl_options.instance)));
	json_array_foreach (backends, i, row)
		backend_problem(row, problems);
	json_array_foreach (counters, i, row)
		counter_problem(row, problems);
	return problems;
}

void health_judge(json_t *status, const json_t *backends, const json_t *counters)
{
	json_t *interfaces = interfaces_of(ctl_options.instance);
	json_t *problems = problems_of(status, backends, counters, interfaces);

	json_object_set_new(status, "interfaces", interfaces);
	json_object_set_new(status, "healthy", json_boolean(!json_array_size(problems)));
	json_object_set_new(status, "problems", problems);
}
