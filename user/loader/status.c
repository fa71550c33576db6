/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* status: what is pinned and what the kernel says of it, as JSON; print.c shows the same to people. */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <bpf/bpf.h>

#include "addr.h"
#include "decap.h"
#include "kernel.h"
#include "loader.h"
#include "maps_internal.h"
#include "status.h"
#include "upgrade.h"

static const struct {
	const char *name, *class;
} counters[] = {
#define SHUNT_COUNTER(id, name, class, sentence) {name, #class},
#include <shunt/counters.def>
#undef SHUNT_COUNTER
};

/* Those of a role that are not 0. */
static json_t *counters_json(const struct maps *maps, int fd)
{
	uint64_t values[SHUNT_NR_REASONS];
	json_t *object = json_object();

	if (maps_reasons_read(fd, maps->n_cpus, values))
		return object;
	for (size_t i = 0; i < SHUNT_NR_REASONS; i++)
		if (values[i])
			json_object_set_new(object, counters[i].name, json_integer((json_int_t)values[i]));
	return object;
}

/* null: none, or none that can be told. */
static json_t *gue_port_json(const struct attach_link *link)
{
	int port = link->role == PROGRAM_DECAP ? program_gue_port(link->program_id) : 0;

	return port > 0 ? json_integer(port) : json_null();
}

static json_t *link_json(const struct attach_link *link)
{
	struct attach_state state = {};
	char name[64];
	bool here = link->netns == attach_netns();
	json_t *object = json_object();

	attach_link_name(link, name);
	attach_describe(link->program_id, &state);
	if (!here || attach_query(link->ifindex, &state))
		state.mode = ATTACH_NONE;
	json_object_set_new(object, "interface", here ? json_string(name) : json_null());
	json_object_set_new(object, "ifindex", json_integer(link->ifindex));
	json_object_set_new(object, "network_namespace", json_integer((json_int_t)link->netns));
	json_object_set_new(object, "role", json_string(attach_role_name(link->role)));
	json_object_set_new(object, "mode", state.mode ? json_string(attach_mode_name(state.mode)) : json_null());
	json_object_set_new(object, "frags", json_boolean(link->frags));
	json_object_set_new(object, "stale", json_boolean(attach_is_stale(link)));
	json_object_set_new(object, "gue_port", gue_port_json(link));
	json_object_set_new(object, "program_id", json_integer(link->program_id));
	json_object_set_new(object, "program_tag", *state.tag ? json_string(state.tag) : json_null());
	json_object_set_new(object, "link_id", json_integer(link->link_id));
	return object;
}

static int links_json(const char *instance, json_t *array)
{
	struct attach_link *links = NULL;
	size_t count = 0;
	int error = attach_links(instance, &links, &count);

	for (size_t i = 0; i < count && !error; i++)
		if (links[i].alive)
			json_array_append_new(array, link_json(&links[i]));
	free(links);
	return error;
}

static json_int_t count_pools(const struct maps *maps)
{
	json_int_t count = 0;

	for (enum maps_inner kind = MAPS_TABLE_S; kind <= MAPS_TABLE_L; kind++)
		for (uint32_t pool = 0; pool < maps->meta.pools; pool++)
			count += maps_inner_exists(maps, kind, pool);
	return count;
}

static json_int_t count_backends(const struct maps *maps)
{
	struct shunt_backend backend;
	json_int_t count = 0;

	for (uint32_t i = 0; i < maps->meta.backends; i++)
		count += !bpf_map_lookup_elem(maps->backends, &i, &backend) && backend.state & SHUNT_BACKEND_PRESENT;
	return count;
}

static int set_used(const struct maps *maps, json_t *object)
{
	struct shunt_snapshot *snapshot = malloc(maps_inner_size(maps, MAPS_SNAPSHOT));
	int error = snapshot ? maps_inner_read(maps, MAPS_SNAPSHOT, 0, snapshot) : -ENOMEM;
	bool published = !error;

	if (!error || error == -ENOENT) {
		json_object_set_new(object, "published", json_boolean(published));
		json_object_set_new(object, "revision",
				    published ? json_integer((json_int_t)snapshot->revision) : json_null());
		json_object_set_new(object, "used",
				    json_pack("{s:I, s:I, s:I, s:I}", "services",
					      published ? (json_int_t)snapshot->services : 0, "addresses",
					      published ? (json_int_t)snapshot->addresses : 0, "pools",
					      count_pools(maps), "backends", count_backends(maps)));
		error = 0;
	}
	free(snapshot);
	return error;
}

static int lb_json(const struct maps *maps, json_t **out)
{
	const struct shunt_meta *meta = &maps->meta;
	uint64_t bytes, per_cpu;
	json_t *object = json_object();
	int error = set_used(maps, object);

	if (!error)
		error = maps_memory(maps, &bytes, &per_cpu);
	if (error) {
		json_decref(object);
		return error;
	}
	json_object_set_new(object, "serial", json_integer((json_int_t)meta->serial));
	json_object_set_new(object, "capacities",
			    json_pack("{s:I, s:I, s:I, s:I, s:I}", "services", (json_int_t)meta->services, "addresses",
				      (json_int_t)meta->addresses, "pools", (json_int_t)meta->pools, "backends",
				      (json_int_t)meta->backends, "flows", (json_int_t)meta->flows));
	json_object_set_new(object, "memory_bytes", json_integer((json_int_t)bytes));
	json_object_set_new(object, "memory_per_cpu_bytes", json_integer((json_int_t)per_cpu));
	json_object_set_new(object, "counters", counters_json(maps, maps->reasons));
	*out = object;
	return 0;
}

static json_t *list_json(int fd)
{
	struct shunt_prefix *prefixes = NULL;
	json_t *array = json_array();
	char text[ADDR_TEXT_MAX];
	size_t count = 0;

	if (!decap_list(fd, &prefixes, &count))
		for (size_t i = 0; i < count; i++)
			json_array_append_new(array, json_string(prefix_format(&prefixes[i], text)));
	free(prefixes);
	return array;
}

static json_t *decap_json(const struct maps *maps)
{
	json_t *object = json_object();

	json_object_set_new(object, "allow_sources", list_json(maps->decap_sources));
	json_object_set_new(object, "allow_destinations", list_json(maps->decap_inner));
	json_object_set_new(object, "counters", counters_json(maps, maps->decap_reasons));
	return object;
}

/* One instance; its parts that are not there are null.  -ENOENT: nothing of it is. */
static int instance_json(const char *instance, json_t **out, struct report *report)
{
	json_t *object = json_object(), *links = json_array(), *lb = NULL, *decap = NULL;
	struct maps maps;
	int found_lb, found_decap, error;

	json_object_set_new(object, "instance", json_string(instance));
	json_object_set_new(object, "abi", json_integer(SHUNT_ABI));
	json_object_set_new(object, "upgrade_interrupted", json_boolean(upgrade_interrupted(instance)));
	error = links_json(instance, links);
	found_lb = maps_open_existing(instance, &maps, report);
	if (!found_lb) {
		error = error ? error : lb_json(&maps, &lb);
		maps_close(&maps);
	}
	found_decap = maps_open_existing_decap(instance, &maps, report);
	if (!found_decap) {
		decap = decap_json(&maps);
		maps_close(&maps);
	}
	if (found_lb && found_lb != -ENOENT)
		error = found_lb;
	else if (found_decap && found_decap != -ENOENT)
		error = found_decap;
	else if (error)
		kernel_error(report, error, "instance '%s': cannot read its maps", instance);
	else if (found_lb && found_decap && !json_array_size(links))
		error = -ENOENT;
	json_object_set_new(object, "lb", lb ? lb : json_null());
	json_object_set_new(object, "decap", decap ? decap : json_null());
	json_object_set_new(object, "interfaces", links);
	if (error)
		json_decref(object);
	else
		*out = object;
	return error;
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
	return strcmp((*a)->d_name, (*b)->d_name);
}

static int is_instance(const struct dirent *entry)
{
	return !maps_check_instance(entry->d_name, NULL);
}

static int add_instance(json_t *instances, const char *name, struct report *report)
{
	json_t *object;
	int error = instance_json(name, &object, report);

	if (!error)
		json_array_append_new(instances, object);
	return error;
}

/* One that cannot be read, left by another version perhaps, does not hide the others. */
static void add_problem(json_t *instances, const char *name, const struct report *problem)
{
	json_array_append_new(instances, json_pack("{s:s, s:s}", "instance", name, "problem",
						   problem->count ? problem->entries[0].text : "cannot be read"));
}

static int add_all(json_t *instances, struct report *report)
{
	struct dirent **entries;
	int count = scandir(SHUNT_PIN_ROOT, &entries, is_instance, by_name);

	if (count < 0)
		return errno == ENOENT ? 0 : kernel_error(report, -errno, "cannot read " SHUNT_PIN_ROOT);
	for (int i = 0; i < count; i++) {
		struct report problem = {};
		int error = add_instance(instances, entries[i]->d_name, &problem);

		if (error && error != -ENOENT)
			add_problem(instances, entries[i]->d_name, &problem);
		report_free(&problem);
		free(entries[i]);
	}
	free(entries);
	return 0;
}

int loader_status(const struct loader_options *options, struct report *report)
{
	json_t *instances = json_array(), *root = json_object();
	int error;

	json_object_set_new(root, "instances", instances);
	if (options->instance) {
		error = maps_check_instance(options->instance, report);
		if (!error)
			error = add_instance(instances, options->instance, report);
		if (error == -ENOENT)
			report_error(report, error,
				     "there is no instance '%s' (`shunt-loader status` lists those there are)",
				     options->instance);
	} else {
		error = add_all(instances, report);
	}
	if (!error && options->json) {
		json_dumpf(root, stdout, JSON_INDENT(2));
		putchar('\n');
	} else if (!error) {
		status_print(root);
	}
	json_decref(root);
	return error;
}
