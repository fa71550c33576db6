/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include "document_fields.h"

/* A service while it is read: what of it was right. */
struct service_reading {
	struct model_service service;
	bool address, protocol, ports;
};

static struct model_service *service_of(void *reading)
{
	return &((struct service_reading *)reading)->service;
}

static bool read_name(struct reader *reader, const struct yaml_node *value, void *object)
{
	struct model_service *service = service_of(object);

	service->place = node_place(value);
	return read_text(reader, value, "name", &service->name);
}

static bool read_service_address(struct reader *reader, const struct yaml_node *value, void *object)
{
	struct service_reading *reading = object;

	reading->service.address_place = node_place(value);
	reading->address = read_address(reader, value, "address", &reading->service.address);
	return reading->address;
}

static bool read_protocol(struct reader *reader, const struct yaml_node *value, void *object)
{
	static const char *const names[] = {"tcp", "udp"};
	struct service_reading *reading = object;
	unsigned int index;

	reading->protocol = read_choice(reader, value, "protocol", names, 2, &index);
	if (reading->protocol)
		reading->service.protocol = index ? IPPROTO_UDP : IPPROTO_TCP;
	return reading->protocol;
}

/* A range and where it stands, to tell which of two that overlap comes second. */
struct placed_ports {
	struct model_ports ports;
	const struct yaml_node *node;
};

struct port_list {
	struct placed_ports *items;
	size_t count;
	bool bad;
};

static void read_range(struct reader *reader, const struct yaml_node *item, void *object)
{
	struct port_list *list = object;
	struct placed_ports *slot, placed = {.node = item};

	if (item->kind != YAML_SCALAR || model_range_parse(item->text, &placed.ports)) {
		const char *text = item->kind == YAML_SCALAR ? item->text : "...";

		complain_at(reader->report, item,
			    "\"%.40s\" is no port: use a number from 1 to 65535, a range such as 8000-8099, or "
			    "\"ports: any\" instead of the list",
			    text);
		list->bad = true;
		return;
	}
	slot = reader_append(reader, (void **)&list->items, list->count, sizeof(*slot));
	if (!slot)
		return;
	*slot = placed;
	list->count++;
}

static int by_first(const void *a, const void *b)
{
	const struct placed_ports *x = a, *y = b;

	return x->ports.first != y->ports.first ? x->ports.first - y->ports.first : x->ports.last - y->ports.last;
}

static bool is_later(const struct yaml_node *a, const struct yaml_node *b)
{
	return a->line != b->line ? a->line > b->line : a->column > b->column;
}

static void report_repeated(struct reader *reader, const struct placed_ports *a, const struct placed_ports *b)
{
	const struct yaml_node *second = is_later(a->node, b->node) ? a->node : b->node;
	const struct yaml_node *first = second == a->node ? b->node : a->node;

	complain_at(reader->report, second, "port %u of \"%s\" is listed already, in \"%s\": list each port once",
		    b->ports.first, second->text, first->text);
}

/* Moves the sorted ranges that do not overlap into the service. */
static bool settle_ports(struct reader *reader, struct port_list *list, struct model_service *service)
{
	const struct placed_ports *widest = NULL;

	service->ports = calloc(list->count + 1, sizeof(*service->ports));
	if (!service->ports)
		return reader_no_memory(reader);
	if (list->count)
		qsort(list->items, list->count, sizeof(*list->items), by_first);
	for (size_t i = 0; i < list->count; i++) {
		const struct placed_ports *placed = &list->items[i];

		if (widest && placed->ports.first <= widest->ports.last) {
			report_repeated(reader, widest, placed);
			list->bad = true;
			if (placed->ports.last > widest->ports.last)
				widest = placed;
			continue;
		}
		service->ports[service->n_ports++] = placed->ports;
		widest = placed;
	}
	return true;
}

static bool read_ports(struct reader *reader, const struct yaml_node *value, void *object)
{
	struct service_reading *reading = object;
	struct model_service *service = &reading->service;
	struct port_list list = {};

	service->ports_place = node_place(value);
	if (value->kind == YAML_SCALAR && strcmp(value->text, "any") == 0) {
		service->any_port = reading->ports = true;
		return true;
	}
	if (value->kind == YAML_SCALAR && *value->text)
		complain_at(reader->report, value,
			    "ports is \"%.40s\": write a list such as [80, 8000-8099], or \"any\"", value->text);
	else if (read_list(reader, value, "ports", read_range, &list))
		reading->ports = settle_ports(reader, &list, service) && !list.bad;
	free(list.items);
	return reading->ports;
}

static bool read_pool_of(struct reader *reader, const struct yaml_node *value, void *object)
{
	struct model_service *service = service_of(object);

	service->pool_place = node_place(value);
	return read_text(reader, value, "pool", &service->pool);
}

static bool read_hash(struct reader *reader, const struct yaml_node *value, void *object)
{
	struct model_service *service = service_of(object);
	unsigned int mode;

	if (!read_choice(reader, value, "hash", model_hash_names, SHUNT_NR_HASH_MODES, &mode))
		return false;
	service->hash = mode;
	return true;
}

static bool read_unknown_port(struct reader *reader, const struct yaml_node *value, void *object)
{
	struct model_service *service = service_of(object);
	unsigned int choice;

	service->unknown_port_place = node_place(value);
	if (!read_choice(reader, value, "unknown-port", model_unknown_port_names, MODEL_NR_UNKNOWN_PORTS, &choice))
		return false;
	service->unknown_port = choice;
	return true;
}

static bool read_echo(struct reader *reader, const struct yaml_node *value, void *object)
{
	struct model_service *service = service_of(object);
	unsigned int choice;

	service->echo_place = node_place(value);
	if (!read_choice(reader, value, "echo", model_echo_names, MODEL_NR_ECHOS, &choice))
		return false;
	service->echo = choice;
	return true;
}

static const struct field service_fields[] = {
	{"name", read_name, "give it a name of its own"},
	{"address", read_service_address, "give the address that clients use"},
	{"protocol", read_protocol, "say tcp or udp"},
	{"ports", read_ports, "list ports, or say \"any\""},
	{"pool", read_pool_of, "name the pool whose backends serve it"},
	{"hash", read_hash, NULL},
	{"unknown-port", read_unknown_port, NULL},
	{"echo", read_echo, NULL},
};

static void read_service(struct reader *reader, const struct yaml_node *item, void *object)
{
	struct model *model = reader->model;
	struct service_reading reading = {.service = {.protocol = IPPROTO_TCP}};
	struct model_service *service = &reading.service, *slot = NULL;

	(void)object;
	read_fields(reader, item, "service", service_fields, sizeof(service_fields) / sizeof(*service_fields),
		    &reading);
	if (service->name && service->pool && reading.address)
		slot = reader_append(reader, (void **)&model->services, model->n_services, sizeof(*service));
	if (!slot) {
		model_service_clear(service);
		return;
	}
	if (!reading.protocol || !reading.ports) {
		service->bad_ports = true;
		service->n_ports = 0;
		service->any_port = false;
	}
	if (!service->unknown_port_place.line)
		service->unknown_port_place = service->place;
	if (!service->echo_place.line)
		service->echo_place = service->place;
	*slot = *service;
	model->n_services++;
}

bool read_services(struct reader *reader, const struct yaml_node *value, void *object)
{
	return read_list(reader, value, "services", read_service, object);
}
