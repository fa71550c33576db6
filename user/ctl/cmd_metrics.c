/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* shuntctl metrics: OpenMetrics 1.0 text. */
#include <stdio.h>
#include <string.h>

#include "ctl.h"
#include "health.h"

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))

/* A metric family with a sample for each row that has `key`. */
struct metric {
	const char *name; /* of the family: without _total or _info */
	const char *type;
	const char *unit; /* NULL, or what the name ends with */
	const char *help;
	const char *key; /* of the row; NULL: 1, for type info and states */
};

/* A label and the row's member that it shows. */
struct label {
	const char *name;
	const char *key;
};

#define LABELS_MAX 8
struct family_group {
	const struct metric *metrics;
	size_t n_metrics;
	struct label labels[LABELS_MAX]; /* up to the first without a name */
};

static void print_escaped(const char *text)
{
	for (; *text; text++) {
		if (*text == '\n')
			fputs("\\n", stdout);
		else if (*text == '"' || *text == '\\')
			printf("\\%c", *text);
		else
			putchar(*text);
	}
}

static void print_head(const struct metric *metric)
{
	printf("# TYPE %s %s\n", metric->name, metric->type);
	if (metric->unit)
		printf("# UNIT %s %s\n", metric->name, metric->unit);
	printf("# HELP %s ", metric->name);
	print_escaped(metric->help);
	putchar('\n');
}

static void print_number(const json_t *value)
{
	if (json_is_integer(value))
		printf(" %" JSON_INTEGER_FORMAT "\n", json_integer_value(value));
	else if (json_is_real(value))
		printf(" %.15g\n", json_real_value(value));
	else
		printf(" %d\n", json_is_true(value));
}

static const char *suffix(const struct metric *metric)
{
	if (!strcmp(metric->type, "counter"))
		return "_total";
	return strcmp(metric->type, "info") ? "" : "_info";
}

static void print_sample(const struct metric *metric, const struct label *labels, const json_t *row)
{
	const json_t *value = metric->key ? json_object_get(row, metric->key) : json_true();
	const char *separator = "{";

	if (!json_is_number(value) && !json_is_boolean(value))
		return;
	printf("%s%s", metric->name, suffix(metric));
	for (size_t i = 0; i < LABELS_MAX && labels[i].name; i++) {
		const char *text = json_string_value(json_object_get(row, labels[i].key));

		printf("%s%s=\"", separator, labels[i].name);
		print_escaped(text ? text : "");
		putchar('"');
		separator = ",";
	}
	if (*separator == ',')
		putchar('}');
	print_number(value);
}

/* All samples of a family stand together, below its head. */
static void print_group(const struct family_group *group, const json_t *rows)
{
	for (size_t i = 0; i < group->n_metrics; i++) {
		const json_t *row;
		size_t j;

		print_head(&group->metrics[i]);
		json_array_foreach (rows, j, row)
			print_sample(&group->metrics[i], group->labels, row);
	}
}

static void print_groups(const struct family_group *groups, size_t n, const json_t *rows)
{
	for (size_t i = 0; i < n; i++)
		print_group(&groups[i], rows);
}

/* ---- what is exported ---- */

static const struct metric daemon_info[] = {
	{"shunt_build", "info", NULL, "Version of shuntd, and the instance that it serves.", NULL},
};

static const struct metric daemon_metrics[] = {
	{"shunt_healthy", "gauge", NULL, "1 if there is nothing wrong: what shuntctl status --check says.", "healthy"},
	{"shunt_interfaces", "gauge", NULL, "Interfaces that the load balancer is on; only root can tell.",
	 "n_interfaces"},
	{"shunt_self_drained", "gauge", NULL, "1 while an operator has this balancer out of service.", "self_drained"},
	{"shunt_uptime_seconds", "gauge", "seconds", "Since shuntd started.", "uptime"},
	{"shunt_revision", "gauge", NULL, "Number of the applied document.", "revision"},
	{"shunt_memory_bytes", "gauge", "bytes", "Kernel memory of the maps, counters apart.", "memory_bytes"},
	{"shunt_memory_per_cpu_bytes", "gauge", "bytes", "Kernel memory of the maps' per-CPU counters.",
	 "memory_per_cpu_bytes"},
};

static const struct metric capacity_metrics[] = {
	{"shunt_capacity", "gauge", NULL, "How many of a resource there can be.", "capacity"},
	{"shunt_used", "gauge", NULL, "How many of a resource there are.", "used"},
};

static const struct metric alarm_metrics[] = {
	{"shunt_alarm", "gauge", NULL, "1 for what shuntd cannot mend by itself.", "present"},
};

static const struct metric reason_metrics[] = {
	{"shunt_packets", "counter", "packets", "Packets by the reason why they left the packet path.", "packets"},
};

static const struct metric service_metrics[] = {
	{"shunt_service_packets", "counter", "packets", "Packets forwarded for a service.", "packets"},
	{"shunt_service_bytes", "counter", "bytes", "Bytes forwarded for a service, from the clients' IP headers on.",
	 "bytes"},
	{"shunt_service_announced", "gauge", NULL, "1 if its address is announced to the network.", "announced"},
};

static const struct metric service_info[] = {
	{"shunt_service", "info", NULL, "What a service is.", NULL},
};

static const struct metric pool_metrics[] = {
	{"shunt_pool_epoch", "gauge", NULL, "Number of the table in force: one more for every change of owners.",
	 "epoch"},
	{"shunt_pool_slots", "gauge", NULL, "Size of the table.", "slots"},
	{"shunt_pool_backends", "gauge", NULL, "Backends that are configured.", "backends"},
	{"shunt_pool_published", "gauge", NULL, "1 if packets can use the pool's table.", "published"},
	{"shunt_pool_tracked_slots", "gauge", NULL, "Slots in transition.", "tracked"},
	{"shunt_pool_slots_without_room", "gauge", NULL,
	 "Slots in transition for which the flow table had no room: nothing is recorded of them.", "without_room"},
	{"shunt_pool_inserted_flows", "counter", "flows", "Connections recorded of slots in transition.", "inserted"},
	{"shunt_pool_refused_flows", "counter", "flows", "Connections not recorded for want of room.", "refused"},
	{"shunt_pool_activated_timestamp_seconds", "gauge", "seconds", "UNIX time when the epoch began.", "activated"},
};

static const struct metric pool_info[] = {
	{"shunt_pool", "info", NULL, "How a pool's table was built, and its digest.", NULL},
};

static const struct metric backend_metrics[] = {
	{"shunt_backend_packets", "counter", "packets", "Packets forwarded to a backend.", "packets"},
	{"shunt_backend_bytes", "counter", "bytes", "Bytes forwarded to a backend, from the clients' IP headers on.",
	 "bytes"},
	{"shunt_backend_weight", "gauge", NULL, "Its weight.", "weight"},
	{"shunt_backend_slots", "gauge", NULL, "Slots of the pool's table that it has.", "slots"},
	{"shunt_backend_quota", "gauge", NULL, "Slots that it should have by its weight.", "quota"},
	{"shunt_backend_reachable", "gauge", NULL, "1 if its next hop was known at least once.", "reachable"},
	{"shunt_backend_path_mtu_bytes", "gauge", "bytes", "Path MTU towards it, from the outer IP header on.", "mtu"},
	{"shunt_backend_path_mtu_lowered", "gauge", NULL, "1 if an ICMP error from the path lowered it.",
	 "mtu_lowered"},
	{"shunt_backend_path_errors", "counter", NULL, "ICMP errors from the path about packets to it.", "path_errors"},
	{"shunt_backend_checks_passed", "counter", NULL, "Health checks that it passed.", "health_passed"},
	{"shunt_backend_checks_failed", "counter", NULL, "Health checks that it failed.", "health_failed"},
	{"shunt_backend_health_changes", "counter", NULL, "How often its health changed.", "health_changes"},
};

static const struct metric backend_states[] = {
	{"shunt_backend_state", "gauge", NULL, "1 for the state that the backend is in.", NULL},
};

static const struct metric backend_info[] = {
	{"shunt_backend", "info", NULL, "Where a backend is.", NULL},
};

static const struct family_group daemon_groups[] = {
	{daemon_info, LENGTH(daemon_info), {{"version", "daemon_version"}, {"shunt_instance", "instance"}}},
	{daemon_metrics, LENGTH(daemon_metrics), {}},
};

static const struct family_group capacity_group = {
	capacity_metrics, LENGTH(capacity_metrics), {{"resource", "resource"}}};

static const struct family_group alarm_group = {alarm_metrics, LENGTH(alarm_metrics), {{"alarm", "alarm"}}};

static const struct family_group reason_group = {
	reason_metrics, LENGTH(reason_metrics), {{"class", "class"}, {"reason", "name"}}};

static const struct family_group service_groups[] = {
	{service_metrics, LENGTH(service_metrics), {{"service", "name"}}},
	{service_info,
	 LENGTH(service_info),
	 {{"service", "name"}, {"address", "address"}, {"protocol", "protocol"}, {"ports", "ports"}, {"pool", "pool"}}},
};

static const struct family_group pool_groups[] = {
	{pool_metrics, LENGTH(pool_metrics), {{"pool", "name"}}},
	{pool_info, LENGTH(pool_info), {{"pool", "name"}, {"algorithm", "algorithm"}, {"digest", "digest"}}},
};

static const struct family_group backend_groups[] = {
	{backend_metrics, LENGTH(backend_metrics), {{"pool", "pool"}, {"backend", "name"}}},
	{backend_states, LENGTH(backend_states), {{"pool", "pool"}, {"backend", "name"}, {"state", "state"}}},
	{backend_info, LENGTH(backend_info), {{"pool", "pool"}, {"backend", "name"}, {"address", "address"}}},
};

/* {"services": 7, ...} twice, as rows {"resource": "services", "capacity": 65536, "used": 7}. */
static json_t *capacity_rows(const json_t *status)
{
	json_t *capacities = json_object_get(status, "capacities"), *value, *rows = json_array();
	const json_t *used = json_object_get(status, "used");
	const char *name;

	json_object_foreach (capacities, name, value)
		json_array_append_new(rows, json_pack("{s:s, s:O, s:O*}", "resource", name, "capacity", value, "used",
						      json_object_get(used, name)));
	return rows;
}

/* {"maps": false, ...} as rows {"alarm": "maps", "present": false}. */
static json_t *alarm_rows(const json_t *status)
{
	json_t *rows = json_array(), *value;
	const char *name;

	json_object_foreach (json_object_get(status, "alarms"), name, value)
		json_array_append_new(rows, json_pack("{s:s, s:O}", "alarm", name, "present", value));
	return rows;
}

static void print_status(json_t *status)
{
	const json_t *interfaces = json_object_get(status, "interfaces");
	json_t *rows = json_pack("[O]", status), *capacities = capacity_rows(status), *alarms = alarm_rows(status);

	if (json_is_array(interfaces))
		json_object_set_new(status, "n_interfaces", json_integer((json_int_t)json_array_size(interfaces)));
	print_groups(daemon_groups, LENGTH(daemon_groups), rows);
	print_group(&capacity_group, capacities);
	print_group(&alarm_group, alarms);
	json_decref(alarms);
	json_decref(rows);
	json_decref(capacities);
}

/* All is asked first and printed then: a daemon that goes away in between leaves no half output. */
static int export(void)
{
	enum { COUNTERS, SERVICES, POOLS, BACKENDS };
	static const struct {
		const char *method, *rows;
		const struct family_group *groups;
		size_t n;
	} lists[] = {
		[COUNTERS] = {"Counters", "counters", &reason_group, 1},
		[SERVICES] = {"ServiceList", "services", service_groups, LENGTH(service_groups)},
		[POOLS] = {"PoolList", "pools", pool_groups, LENGTH(pool_groups)},
		[BACKENDS] = {"BackendList", "backends", backend_groups, LENGTH(backend_groups)},
	};
	json_t *replies[LENGTH(lists)] = {}, *status = NULL;
	const json_t *rows[LENGTH(lists)];
	int code = ctl_call("Status", NULL, &status);

	for (size_t i = 0; !code && i < LENGTH(lists); i++)
		code = ctl_rows(lists[i].method, NULL, lists[i].rows, &replies[i], &rows[i]);
	if (!code) {
		health_judge(status, rows[BACKENDS], rows[COUNTERS]);
		print_status(status);
		for (size_t i = 0; i < LENGTH(lists); i++)
			print_groups(lists[i].groups, lists[i].n, rows[i]);
		puts("# EOF");
	}
	for (size_t i = 0; i < LENGTH(lists); i++)
		json_decref(replies[i]);
	json_decref(status);
	return code;
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	return ctl_word(state->input, key, arg, state);
}

int cmd_metrics(int argc, char **argv)
{
	static const char *const names[] = {NULL};
	static const struct argp_child children[] = {CTL_GLOBAL, {}};
	static const struct argp argp = {
		.parser = parse,
		.doc = "Prints all that is counted and measured as OpenMetrics text, for a scraper. With -j only "
		       "errors are "
		       "JSON.",
		.children = children,
	};
	struct ctl_words words = {.names = names};
	int code = ctl_parse(&argp, argc, argv, NULL, &words);

	return code ? code : export();
}
