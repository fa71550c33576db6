/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "status.h"

static const char *text_of(const json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));

	return text ? text : "-";
}

static long long number_of(const json_t *object, const char *key)
{
	return json_integer_value(json_object_get(object, key));
}

static void print_interface(const json_t *link, const char *instance)
{
	const json_t *gue_port = json_object_get(link, "gue_port");
	char name[64], gue[32] = "";

	if (json_is_integer(gue_port))
		snprintf(gue, sizeof(gue), "  GUE port %lld", (long long)json_integer_value(gue_port));
	if (json_is_null(json_object_get(link, "interface")))
		snprintf(name, sizeof(name), "(netns %lld) %lld", number_of(link, "network_namespace"),
			 number_of(link, "ifindex"));
	else
		snprintf(name, sizeof(name), "%s", text_of(link, "interface"));
	printf("  %-16s role %-5s  mode %-7s  program %lld  tag %s%s%s\n", name, text_of(link, "role"),
	       text_of(link, "mode"), number_of(link, "program_id"), text_of(link, "program_tag"),
	       json_is_true(json_object_get(link, "frags")) ? "  multi-buffer" : "", gue);
	if (json_is_true(json_object_get(link, "stale")))
		printf("  %-16s runs on other maps than those that are pinned: `shunt-loader upgrade --instance %s`\n",
		       "", instance);
}

static void print_counters(const json_t *object)
{
	const char *name;
	json_t *value;

	json_object_foreach (json_object_get(object, "counters"), name, value) {
		printf("  counter    %-24s %lld\n", name, (long long)json_integer_value(value));
	}
}

static void print_lb(const json_t *lb)
{
	const json_t *used = json_object_get(lb, "used");
	const char *name;
	json_t *value;

	if (json_is_true(json_object_get(lb, "published")))
		printf("  services   published, revision %lld\n", number_of(lb, "revision"));
	else
		printf("  services   none published: everything passes to the host\n");
	json_object_foreach (json_object_get(lb, "capacities"), name, value) {
		if (json_object_get(used, name))
			printf("  capacity   %-10s %lld of %lld in use\n", name, number_of(used, name),
			       (long long)json_integer_value(value));
		else
			printf("  capacity   %-10s %lld\n", name, (long long)json_integer_value(value));
	}
	printf("  memory     %.1f MiB, and %.1f MiB of per-CPU counters\n",
	       (double)number_of(lb, "memory_bytes") / (1 << 20),
	       (double)number_of(lb, "memory_per_cpu_bytes") / (1 << 20));
	print_counters(lb);
}

static void print_list(const json_t *decap, const char *key, const char *title)
{
	const json_t *list = json_object_get(decap, key), *entry;
	size_t i;

	printf("  %s", title);
	if (!json_array_size(list))
		printf(" none: every tunnel packet is dropped");
	json_array_foreach (list, i, entry) {
		printf(" %s", json_string_value(entry));
	}
	putchar('\n');
}

static void print_instance(const json_t *instance)
{
	const json_t *links = json_object_get(instance, "interfaces"), *link, *decap, *lb;
	size_t i;

	if (json_object_get(instance, "problem")) {
		printf("instance %s: %s\n", text_of(instance, "instance"), text_of(instance, "problem"));
		return;
	}
	printf("instance %s (ABI %lld)\n", text_of(instance, "instance"), number_of(instance, "abi"));
	if (json_is_true(json_object_get(instance, "upgrade_interrupted")))
		printf("  an upgrade was interrupted, and interfaces may still run on the maps before it: "
		       "`shunt-loader "
		       "upgrade --instance %s` finishes it\n",
		       text_of(instance, "instance"));
	json_array_foreach (links, i, link) {
		print_interface(link, text_of(instance, "instance"));
	}
	if (!json_array_size(links))
		printf("  attached to no interface\n");
	lb = json_object_get(instance, "lb");
	if (json_is_object(lb))
		print_lb(lb);
	decap = json_object_get(instance, "decap");
	if (json_is_object(decap)) {
		print_list(decap, "allow_sources", "decap from ");
		print_list(decap, "allow_destinations", "decap to   ");
		print_counters(decap);
	}
}

void status_print(const json_t *root)
{
	const json_t *instances = json_object_get(root, "instances"), *instance;
	size_t i;

	if (!json_array_size(instances))
		printf("no instance\n");
	json_array_foreach (instances, i, instance) {
		print_instance(instance);
	}
}
