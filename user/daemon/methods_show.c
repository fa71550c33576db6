/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Methods that only read. */
#include <errno.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <shunt/flow.h>

#include "addr.h"
#include "duration.h"
#include "methods.h"
#include "version.h"

#define HEADERS_TCP4 40 /* bytes of IPv4 and TCP, without options */
#define HEADERS_TCP6 60

static json_t *number(uint64_t value)
{
	return json_integer((json_int_t)value);
}

static json_t *source_or_null(const struct model_source *source)
{
	char text[ADDR_TEXT_MAX];

	return source->given ? json_string(model_source_text(source, text)) : json_null();
}

static json_t *gue_port(const struct model_pool *pool)
{
	if (pool->encapsulation != MODEL_GUE)
		return json_null();
	return json_integer(pool->gue_port ? pool->gue_port : SHUNT_GUE_PORT);
}

static json_t *udp6_checksum(const struct model_pool *pool)
{
	return pool->encapsulation == MODEL_GUE ? json_string(model_udp6_checksum_names[pool->udp6_checksum])
						: json_null();
}

static json_t *digest_text(uint64_t digest)
{
	char text[17];

	snprintf(text, sizeof(text), "%016llx", (unsigned long long)digest);
	return json_string(text);
}

/* ---- Status ---- */

struct usage {
	size_t services, addresses, pools, backends;
};

static int compare_addresses(const void *a, const void *b)
{
	return memcmp(a, b, sizeof(union shunt_address));
}

static size_t distinct_addresses(const struct model *model)
{
	union shunt_address *list = calloc(model->n_services + 1, sizeof(*list));
	size_t count = 0;

	if (!list)
		return 0;
	for (size_t i = 0; i < model->n_services; i++)
		list[i] = model->services[i].address;
	qsort(list, model->n_services, sizeof(*list), compare_addresses);
	for (size_t i = 0; i < model->n_services; i++)
		count += !i || compare_addresses(&list[i - 1], &list[i]);
	free(list);
	return count;
}

static struct usage usage_of(const struct model *model)
{
	struct usage usage = {};

	if (!model)
		return usage;
	for (size_t i = 0; i < model->n_services; i++)
		usage.services += model_service_entries(&model->services[i]);
	for (size_t i = 0; i < model->n_pools; i++)
		usage.backends += model->pools[i].n_backends;
	usage.pools = model->n_pools;
	usage.addresses = distinct_addresses(model);
	return usage;
}

#define MORE_FLOWS "give the flow table more room (shunt-loader upgrade --flows N%s%s)"

/* Connections that may break, because there is no room to record them. */
static void transition_problem(const struct engine *engine, const struct model_pool *pool, json_t *problems)
{
	const char *instance = engine_maps(engine)->instance;
	const char *option = maps_instance_option(instance), *name = maps_instance_name(instance);
	struct engine_pool_lacks lacks;

	if (engine_pool_lacks(engine, pool->name, &lacks))
		return;
	if (lacks.without)
		json_array_append_new(problems,
				      json_sprintf("pool %s: %u slots in transition record no connections: " MORE_FLOWS,
						   pool->name, lacks.without, option, name));
	if (lacks.forced)
		json_array_append_new(
			problems, json_sprintf("pool %s: %u slots settled although connections could not be recorded "
					       "for four times the settle time: " MORE_FLOWS,
					       pool->name, lacks.forced, option, name));
}

/* A pool that has backends of positive weight and none that can be reached: its services drop everything. */
static void pool_problem(const struct engine *engine, const struct model_pool *pool, json_t *problems)
{
	struct engine_backend_info info;
	const struct model_backend *first = NULL;
	char why[sizeof(info.nexthop.why)] = "";

	for (size_t i = 0; i < pool->n_backends; i++) {
		const struct model_backend *backend = &pool->backends[i];

		if (!backend->weight || engine_backend_standing(engine, pool->name, backend->name, &info))
			continue;
		if (info.reachable)
			return;
		if (!first)
			memcpy(why, info.nexthop.why, sizeof(why));
		first = first ? first : backend;
	}
	if (first)
		json_array_append_new(problems, json_sprintf("pool %s has no backend that can be reached: %s/%s: %s",
							     pool->name, pool->name, first->name, why));
}

static json_t *problems_of(const struct daemon *daemon)
{
	const struct model *model = engine_model(daemon->engine);
	json_t *problems = json_array();

	if (daemon->document_problem)
		json_array_append_new(problems, control_text(daemon->document_problem));
	if (daemon->undo_problem)
		json_array_append_new(problems, control_text(daemon->undo_problem));
	if (daemon->history_problem)
		json_array_append_new(problems, control_text(daemon->history_problem));
	if (daemon->state_problem)
		json_array_append_new(problems, control_text(daemon->state_problem));
	if (daemon->publish_problem)
		json_array_append_new(problems, control_text(daemon->publish_problem));
	if (daemon->tick_problem)
		json_array_append_new(problems, control_text(daemon->tick_problem));
	if (daemon->deletion_problem)
		json_array_append_new(problems, control_text(daemon->deletion_problem));
	if (!model)
		json_array_append_new(problems, json_string("nothing is applied: give shuntd a document with -c"));
	checks_problems(daemon, problems);
	announce_problems(daemon, problems);
	for (size_t i = 0; model && i < model->n_pools; i++) {
		pool_problem(daemon->engine, &model->pools[i], problems);
		transition_problem(daemon->engine, &model->pools[i], problems);
	}
	return problems;
}

/* What waits to be confirmed, or null. */
static json_t *pending_of(const struct daemon *daemon)
{
	const struct state_pending *pending = engine_pending(daemon->engine);

	return pending->revision ? json_pack("{s:I, s:I}", "deadline", (json_int_t)pending->deadline, "back_to",
					     (json_int_t)pending->revision)
				 : json_null();
}

/* One boolean each, for monitoring. */
static json_t *alarms_of(const struct daemon *daemon)
{
	const bool unwritten = daemon->history_problem || daemon->state_problem || daemon->deletion_problem;

	return json_pack("{s:b, s:b, s:b, s:b, s:b, s:b, s:b}", "document", daemon->document_problem != NULL, "maps",
			 daemon->publish_problem != NULL, "transit", daemon->tick_problem != NULL, "history", unwritten,
			 "undo", daemon->undo_problem != NULL, "unconfirmed",
			 engine_pending(daemon->engine)->revision != 0, "announce", announce_alarm(daemon));
}

static json_t *flow_table(const struct engine *engine)
{
	struct engine_flow_use use = {};

	engine_flow_use(engine, &use);
	return json_pack("{s:I, s:I, s:I, s:I}", "entries", (json_int_t)use.entries, "buckets", (json_int_t)use.buckets,
			 "used_buckets", (json_int_t)use.used_buckets, "bytes", (json_int_t)use.bytes);
}

json_t *method_status(struct call *call)
{
	const struct daemon *daemon = call->daemon;
	const struct maps *maps = engine_maps(daemon->engine);
	const struct model *model = engine_model(daemon->engine);
	struct usage usage = usage_of(model);
	json_t *problems = problems_of(daemon), *status, *drain;
	uint64_t memory = 0, per_cpu = 0;

	maps_memory(maps, &memory, &per_cpu);
	status = json_pack("{s:s, s:i, s:s, s:i, s:I, s:o, s:o}", "instance", daemon->options->instance, "abi",
			   SHUNT_ABI, "daemon_version", SHUNT_VERSION, "pid", (int)getpid(), "uptime",
			   (json_int_t)((daemon_now() - daemon->started) / 1000000), "state_dir",
			   control_text(daemon->options->state_dir), "document",
			   daemon->options->file ? control_text(daemon->options->file) : json_null());
	json_object_set_new(status, "healthy", json_boolean(!json_array_size(problems)));
	json_object_set_new(status, "problems", problems);
	json_object_set_new(status, "alarms", alarms_of(daemon));
	json_object_set_new(status, "pending", pending_of(daemon));
	json_object_set_new(status, "announce", announce_show(daemon));
	drain = announce_show_drain(daemon);
	json_object_set_new(status, "self_drained", json_boolean(json_is_object(drain)));
	json_object_set_new(status, "self_drain", drain);
	json_object_set_new(status, "revision", number(engine_revision(daemon->engine)));
	json_object_set_new(status, "capacities",
			    json_pack("{s:I, s:I, s:I, s:I, s:I}", "services", (json_int_t)maps->meta.services,
				      "addresses", (json_int_t)maps->meta.addresses, "pools",
				      (json_int_t)maps->meta.pools, "backends", (json_int_t)maps->meta.backends,
				      "flows", (json_int_t)maps->meta.flows));
	json_object_set_new(status, "used",
			    json_pack("{s:I, s:I, s:I, s:I}", "services", (json_int_t)usage.services, "addresses",
				      (json_int_t)usage.addresses, "pools", (json_int_t)usage.pools, "backends",
				      (json_int_t)usage.backends));
	json_object_set_new(status, "flow_table", flow_table(daemon->engine));
	json_object_set_new(status, "memory_bytes", number(memory));
	json_object_set_new(status, "memory_per_cpu_bytes", number(per_cpu));
	json_object_set_new(status, "pools", number(usage.pools));
	json_object_set_new(status, "services", number(model ? model->n_services : 0));
	json_object_set_new(status, "backends", number(usage.backends));
	return status;
}

/* ---- lists ---- */

static json_t *service_row(const struct daemon *daemon, const struct model_service *service)
{
	struct shunt_stats stats = {};
	char text[ADDR_TEXT_MAX], *ports = model_ports_text(service);
	uint32_t index = 0;
	const struct engine *engine = daemon->engine;
	json_t *row;

	engine_service_stats(engine, service->name, &stats);
	engine_service_index(engine, service->name, &index);
	row = json_pack("{s:s, s:I, s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:I, s:I}", "name", service->name, "index",
			(json_int_t)index, "address", addr_format(&service->address, text), "protocol",
			service->protocol == IPPROTO_TCP ? "tcp" : "udp", "ports", ports ? ports : "?", "pool",
			service->pool, "hash", model_hash_names[service->hash], "unknown_port",
			model_unknown_port_names[service->unknown_port], "echo", model_echo_names[service->echo],
			"packets", (json_int_t)stats.packets, "bytes", (json_int_t)stats.bytes);
	announce_show_service(daemon, service, row);
	free(ports);
	return row;
}

json_t *method_service_list(struct call *call)
{
	const struct model *model = engine_model(call->daemon->engine);
	const char *name = call_text(call, "name");
	json_t *rows = json_array();

	for (size_t i = 0; model && i < model->n_services; i++)
		if (!name || !strcmp(name, model->services[i].name))
			json_array_append_new(rows, service_row(call->daemon, &model->services[i]));
	if (name && !json_array_size(rows)) {
		json_decref(rows);
		return call_fail(call, CONTROL_NOT_FOUND, "there is no service %.63s", name);
	}
	return json_pack("{s:o}", "services", rows);
}

/* How connections go through changes, and what of that is under way. */
static void set_transition(json_t *row, const struct model_pool *pool, const struct engine_pool_info *info)
{
	static const char *const names[] = {[SHUNT_FLOW_HALF] = "entries_half",
					    [SHUNT_FLOW_ADOPTED] = "entries_adopted",
					    [SHUNT_FLOW_LIVE] = "entries_live",
					    [SHUNT_FLOW_CLOSING] = "entries_closing"};
	char text[DURATION_TEXT_MAX];

	json_object_set_new(row, "connections", json_string(model_connections_names[pool->connections]));
	json_object_set_new(row, "settle", json_string(duration_format(pool->settle, text)));
	json_object_set_new(row, "learn", json_string(duration_format(pool->learn, text)));
	json_object_set_new(row, "drain_timeout", json_string(duration_format(pool->drain_timeout, text)));
	json_object_set_new(row, "slow_start",
			    pool->slow_start ? json_string(duration_format(pool->slow_start, text)) : json_null());
	json_object_set_new(row, "tracked", number(info->tracked));
	json_object_set_new(row, "unsettled", number(info->unsettled));
	json_object_set_new(row, "without_room", number(info->without));
	json_object_set_new(row, "settles_in",
			    info->unsettled && info->settles_in != UINT64_MAX
				    ? json_string(duration_format((info->settles_in + 999) / 1000 * 1000, text))
				    : json_null());
	json_object_set_new(row, "settling_waits", json_boolean(info->blocked));
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		json_object_set_new(row, names[i], number(info->entries[i]));
	json_object_set_new(row, "range_buckets", number(info->range_buckets));
	json_object_set_new(row, "range_bytes", number(info->range_buckets * sizeof(struct shunt_flow_bucket)));
	json_object_set_new(row, "base_rate", json_real(info->base_rate));
	json_object_set_new(row, "inserted", number(info->stats.inserted));
	json_object_set_new(row, "refused", number(info->stats.refused));
	json_object_set_new(row, "replaced", number(info->stats.replaced));
	json_object_set_new(row, "base_packets", number(info->stats.base));
}

static json_t *pool_row(const struct engine *engine, const struct model_pool *pool, size_t services)
{
	struct engine_pool_info info = {};
	json_t *row;

	engine_pool_info(engine, pool->name, &info);
	row = json_pack("{s:s, s:I, s:s, s:I, s:s, s:o, s:o, s:o, s:o, s:I, s:I, s:I, s:I, s:o, s:I, s:b}", "name",
			pool->name, "index", (json_int_t)info.index, "algorithm", pool->algorithm, "slots",
			(json_int_t)pool->slots, "encapsulation", model_encapsulation_names[pool->encapsulation],
			"port", gue_port(pool), "udp6_checksum", udp6_checksum(pool), "source4",
			source_or_null(&pool->source4), "source6", source_or_null(&pool->source6), "backends",
			(json_int_t)pool->n_backends, "services", (json_int_t)services, "epoch", (json_int_t)info.epoch,
			"phase", (json_int_t)info.phase, "digest", digest_text(info.digest), "activated",
			(json_int_t)info.activated, "published", info.published);
	json_object_set_new(row, "with_slots", number(info.with_slots));
	json_object_set_new(row, "reachable", number(info.reachable));
	set_transition(row, pool, &info);
	return row;
}

/* How many services point at each pool: malloc'd, beside model->pools, or NULL. */
static size_t *count_services(const struct model *model)
{
	size_t *count = calloc(model->n_pools + 1, sizeof(*count));

	for (size_t i = 0; count && i < model->n_services; i++) {
		const struct model_pool *pool = model_pool(model, model->services[i].pool);

		if (pool)
			count[pool - model->pools]++;
	}
	return count;
}

json_t *method_pool_list(struct call *call)
{
	const struct model *model = engine_model(call->daemon->engine);
	const char *name = call_text(call, "name");
	size_t *services = model ? count_services(model) : NULL;
	json_t *rows = json_array();

	if (model && !services) {
		json_decref(rows);
		return call_fail(call, CONTROL_FAILED, "out of memory");
	}
	for (size_t i = 0; model && i < model->n_pools; i++)
		if (!name || !strcmp(name, model->pools[i].name))
			json_array_append_new(rows, pool_row(call->daemon->engine, &model->pools[i], services[i]));
	free(services);
	if (name && !json_array_size(rows)) {
		json_decref(rows);
		return call_fail(call, CONTROL_NOT_FOUND, "there is no pool %.63s", name);
	}
	return json_pack("{s:o}", "pools", rows);
}

static const char *backend_state(const struct model_backend *backend, const struct engine_backend_info *info)
{
	if (info->draining && info->reachable)
		return info->leaving ? "leaving" : info->maintenance ? "maintenance" : "draining";
	if (!backend->weight)
		return "no-weight";
	if (!info->reachable)
		return "unreachable";
	if (info->down)
		return "down";
	return info->ramp_percent < 100 ? "slow-start" : "active";
}

static json_t *segment_size(const struct engine_backend_info *info, const struct model_pool *pool,
			    const struct model_backend *backend, uint32_t headers)
{
	uint32_t overhead = model_overhead(pool, addr_is_v4(&backend->address));

	if (info->mtu < overhead + headers)
		return json_integer(0);
	return number(info->mtu - overhead - headers);
}

/* The one asked for last: a socket and an ioctl() for each of ten thousand rows cost more than the rows. */
struct interface {
	unsigned int index;
	char name[IF_NAMESIZE];
};

static const char *interface_name(struct interface *last, unsigned int index)
{
	if (last->index == index)
		return last->name;
	*last = (struct interface){.index = index};
	if (index)
		if_indextoname(index, last->name);
	return last->name;
}

static json_t *backend_row(const struct daemon *daemon, const struct model_pool *pool,
			   const struct model_backend *backend, struct interface *interface)
{
	char address[ADDR_TEXT_MAX], mac[18] = "";
	struct engine_backend_info info = {};
	const struct engine_nexthop *way = &info.nexthop;
	json_t *row;

	engine_backend_info(daemon->engine, pool->name, backend->name, &info);
	if (info.reachable || way->known)
		snprintf(mac, sizeof(mac), "%02x:%02x:%02x:%02x:%02x:%02x", way->mac[0], way->mac[1], way->mac[2],
			 way->mac[3], way->mac[4], way->mac[5]);
	row = json_pack("{s:s, s:s, s:s, s:I, s:I, s:I, s:s, s:b, s:I, s:I}", "pool", pool->name, "name", backend->name,
			"address", addr_format(&backend->address, address), "weight", (json_int_t)backend->weight, "id",
			(json_int_t)info.id, "generation", (json_int_t)info.generation, "state",
			backend_state(backend, &info), "reachable", info.reachable, "slots", (json_int_t)info.slots,
			"quota", (json_int_t)info.quota);
	json_object_set_new(row, "share", json_real(100.0 * info.slots / pool->slots));
	json_object_set_new(row, "weight_percent", number(info.ramp_percent));
	json_object_set_new(row, "draining_since", info.draining ? number(info.draining) : json_null());
	json_object_set_new(row, "base_slots", number(info.bases));
	json_object_set_new(row, "entries", number(info.entries));
	json_object_set_new(row, "nexthop", json_string(mac));
	json_object_set_new(row, "interface", json_string(interface_name(interface, way->ifindex)));
	json_object_set_new(row, "mtu", number(info.mtu));
	json_object_set_new(row, "mtu_lowered", json_boolean(info.mtu_lowered));
	json_object_set_new(row, "path_errors", number(info.path_errors));
	json_object_set_new(row, "mss", segment_size(&info, pool, backend, HEADERS_TCP4));
	json_object_set_new(row, "mss6", segment_size(&info, pool, backend, HEADERS_TCP6));
	json_object_set_new(row, "why", control_text(way->known ? "" : way->why));
	json_object_set_new(row, "packets", number(info.stats.packets));
	json_object_set_new(row, "bytes", number(info.stats.bytes));
	checks_show_backend(daemon, pool->name, backend->name, row);
	return row;
}

/* One with a weight, whose way is not known as it should be: `why` says more. */
static bool lacks_way(const struct engine *engine, const char *pool, const struct model_backend *backend)
{
	struct engine_backend_info info;

	return backend->weight && !engine_backend_standing(engine, pool, backend->name, &info) &&
	       !(info.reachable && info.nexthop.known);
}

static bool is_asked_for(const struct call *call, const char *pool, const struct model_backend *backend)
{
	const char *name = call_text(call, "name");

	return (!name || !strcmp(name, backend->name)) &&
	       (!call_flag(call, "without_way") || lacks_way(call->daemon->engine, pool, backend));
}

json_t *method_backend_list(struct call *call)
{
	const struct model *model = engine_model(call->daemon->engine);
	const char *pool = call_text(call, "pool"), *name = call_text(call, "name");
	struct interface interface = {};
	json_t *rows = json_array();
	bool pool_found = !pool;

	for (size_t i = 0; model && i < model->n_pools; i++) {
		const struct model_pool *at = &model->pools[i];

		if (pool && strcmp(pool, at->name) != 0)
			continue;
		pool_found = true;
		for (size_t j = 0; j < at->n_backends; j++)
			if (is_asked_for(call, at->name, &at->backends[j]))
				json_array_append_new(rows,
						      backend_row(call->daemon, at, &at->backends[j], &interface));
	}
	if (pool_found && (!name || json_array_size(rows) || call_flag(call, "without_way")))
		return json_pack("{s:o}", "backends", rows);
	json_decref(rows);
	if (!pool_found)
		return call_fail(call, CONTROL_NOT_FOUND, "there is no pool %.63s", pool);
	return call_fail(call, CONTROL_NOT_FOUND, "there is no backend %.63s%s%.63s", pool ? pool : "", pool ? "/" : "",
			 name);
}

/* ---- Counters ---- */

json_t *method_counters(struct call *call)
{
	static const char *const classes[] = {[SHUNT_CLASS_PASS] = "pass",
					      [SHUNT_CLASS_FORWARD] = "forward",
					      [SHUNT_CLASS_ANSWER] = "answer",
					      [SHUNT_CLASS_DROP] = "drop",
					      [SHUNT_CLASS_BUG] = "bug"};
	static const struct {
		const char *name;
		enum shunt_class class;
		const char *sentence;
	} counters[] = {
#define SHUNT_COUNTER(id, name, class, sentence) [SHUNT_##id] = {name, SHUNT_CLASS_##class, sentence},
#include <shunt/counters.def>
#undef SHUNT_COUNTER
	};
	const struct maps *maps = engine_maps(call->daemon->engine);
	uint64_t packets[SHUNT_NR_REASONS];
	json_t *rows;
	int ret = maps_reasons_read(maps->reasons, maps->n_cpus, packets);

	if (ret)
		return call_fail(call, CONTROL_FAILED, "cannot read the counters: %s", strerror(-ret));
	rows = json_array();
	for (size_t i = 0; i < SHUNT_NR_REASONS; i++)
		json_array_append_new(rows, json_pack("{s:s, s:s, s:I, s:s}", "name", counters[i].name, "class",
						      classes[counters[i].class], "packets", (json_int_t)packets[i],
						      "description", counters[i].sentence));
	return json_pack("{s:o}", "counters", rows);
}
