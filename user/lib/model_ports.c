/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model.h"

size_t model_service_entries(const struct model_service *service)
{
	size_t entries = 0;

	if (service->any_port)
		return 1;
	for (size_t i = 0; i < service->n_ports; i++)
		entries += (size_t)service->ports[i].last - service->ports[i].first + 1;
	return entries;
}

char *model_ports_text(const struct model_service *service)
{
	char *text = NULL;
	size_t size;
	FILE *out;

	if (service->any_port)
		return strdup("any");
	out = open_memstream(&text, &size);
	if (!out)
		return NULL;
	for (size_t i = 0; i < service->n_ports; i++) {
		const struct model_ports *ports = &service->ports[i];

		fprintf(out, "%s%u", i ? "," : "", ports->first);
		if (ports->last != ports->first)
			fprintf(out, "-%u", ports->last);
	}
	if (fclose(out)) {
		free(text);
		return NULL;
	}
	return text;
}

/* A number 1 .. 65535 in decimal without sign or leading zero at *text, which moves behind it. */
static int take_port(const char **text, uint16_t *out)
{
	unsigned int value = 0;
	const char *at = *text;

	if (*at < '1' || *at > '9')
		return -EINVAL;
	for (; *at >= '0' && *at <= '9'; at++) {
		value = value * 10 + (unsigned int)(*at - '0');
		if (value > 65535)
			return -EINVAL;
	}
	*out = (uint16_t)value;
	*text = at;
	return 0;
}

int model_range_parse(const char *text, struct model_ports *out)
{
	struct model_ports ports;

	if (take_port(&text, &ports.first))
		return -EINVAL;
	ports.last = ports.first;
	if (*text == '-') {
		text++;
		if (take_port(&text, &ports.last))
			return -EINVAL;
	}
	if (*text || ports.last < ports.first)
		return -EINVAL;
	*out = ports;
	return 0;
}

static int by_first(const void *a, const void *b)
{
	const struct model_ports *x = a, *y = b;

	return x->first - y->first;
}

static int parse_list(char *list, struct model_ports *ports, size_t *count)
{
	char *item;

	while ((item = strsep(&list, ",")) != NULL) {
		if (model_range_parse(item, &ports[(*count)++]))
			return -EINVAL;
	}
	qsort(ports, *count, sizeof(*ports), by_first);
	for (size_t i = 1; i < *count; i++) {
		if (ports[i].first <= ports[i - 1].last)
			return -EINVAL;
	}
	return 0;
}

int model_ports_parse(const char *text, struct model_service *service)
{
	bool any = strcmp(text, "any") == 0;
	struct model_ports *ports = NULL;
	size_t items = 1, count = 0;
	char *list;
	int ret;

	if (!any) {
		for (const char *at = text; *at; at++)
			items += *at == ',';
		list = strdup(text);
		ports = calloc(items, sizeof(*ports));
		ret = list && ports ? parse_list(list, ports, &count) : -ENOMEM;
		free(list);
		if (ret) {
			free(ports);
			return ret;
		}
	}
	free(service->ports);
	service->ports = ports;
	service->n_ports = count;
	service->any_port = any;
	return 0;
}
