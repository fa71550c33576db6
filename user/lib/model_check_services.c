/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "addr.h"
#include "model_check.h"
#include "suggest.h"

#define HINTS_MAX 100 /* entries after which no more pools are searched for a similar name */

static void check_pool_of(const struct model *model, const struct model_service *service, struct report *report)
{
	char hint[SUGGEST_TEXT_MAX];
	struct suggestion near = {};

	if (model_pool(model, service->pool))
		return;
	for (size_t i = 0; i < model->n_pools && report->count < HINTS_MAX; i++)
		suggest(&near, service->pool, model->pools[i].name);
	complain(
		report, service->pool_place,
		"service \"%s\" points at pool \"%.63s\", which does not exist%s: define the pool, or name one that is "
		"defined",
		service->name, service->pool, suggest_text(&near, hint));
}

static int by_local(const void *a, const void *b)
{
	const struct model_local *x = a, *y = b;
	int order = addr_compare(&x->address, &y->address);

	return order ? order : x->loopback - y->loopback; /* interfaces other than lo first */
}

/* The first of the sorted locals with the address, or NULL. */
static const struct model_local *find_local(const struct model_local *locals, size_t count,
					    const union shunt_address *address)
{
	size_t low = 0, high = count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (addr_compare(&locals[middle].address, address) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low < count && addr_equal(&locals[low].address, address) ? &locals[low] : NULL;
}

static void check_unknown_port(const struct model_service *service, const struct model_local *local,
			       struct report *report)
{
	char text[ADDR_TEXT_MAX];

	addr_format(&service->address, text);
	if (service->unknown_port == MODEL_UNKNOWN_PASS && !local)
		complain(report, service->unknown_port_place,
			 "service \"%s\": \"unknown-port: pass\" is for addresses of this host, and %s is not one: its "
			 "packets would be routed in a loop; say \"drop\", or add the address to lo",
			 service->name, text);
	if (service->unknown_port != MODEL_UNKNOWN_PASS && local && !local->loopback)
		complain(report, service->address_place,
			 "service \"%s\": %s is an address of interface %s, so that losing its other ports would cut "
			 "this host off: say \"unknown-port: pass\", or use an address of its own",
			 service->name, text, local->interface);
}

static void check_echo(const struct model_service *service, struct report *report)
{
	if (service->unknown_port == MODEL_UNKNOWN_PASS && service->echo != MODEL_ECHO_ANSWER)
		complain(
			report, service->echo_place,
			"service \"%s\": \"echo: %s\" beside \"unknown-port: pass\" says nothing, because a ping to an "
			"address of this host is the host's: remove it",
			service->name, model_echo_names[service->echo]);
}

static void check_service(const struct model *model, const struct model_service *service,
			  const struct model_local *local, struct report *report)
{
	char text[ADDR_TEXT_MAX];

	model_check_name("service", service->name, service->place, report);
	if (addr_is_unicast(&service->address))
		check_unknown_port(service, local, report);
	else
		complain(
			report, service->address_place,
			"service \"%s\": %s cannot be a service address: give a unicast address that routers can reach",
			service->name, addr_format(&service->address, text));
	if (service->protocol != IPPROTO_TCP && service->protocol != IPPROTO_UDP)
		complain(report, service->place, "service \"%s\": protocol %u is not balanced: use tcp or udp",
			 service->name, service->protocol);
	if (!service->any_port && !service->n_ports && !service->bad_ports)
		complain(report, service->ports_place, "service \"%s\" has no port: list ports, or say \"any\"",
			 service->name);
	check_echo(service, report);
	check_pool_of(model, service, report);
}

/* One port range of one service; 0-0 stands for any-port, which may stand beside exact ports. */
struct claim {
	const struct model_service *service;
	struct model_ports ports;
};

static int by_service_address(const struct model_service *a, const struct model_service *b)
{
	int order = addr_compare(&a->address, &b->address);

	if (order)
		return order;
	return a->protocol - b->protocol;
}

static int by_place(const struct model_service *a, const struct model_service *b)
{
	if (model_place_before(a->place, b->place))
		return -1;
	return model_place_before(b->place, a->place) ? 1 : strcmp(a->name, b->name);
}

static int by_claim(const void *a, const void *b)
{
	const struct claim *x = a, *y = b;
	int order = by_service_address(x->service, y->service);

	if (!order)
		order = x->ports.first - y->ports.first;
	return order ? order : by_place(x->service, y->service);
}

static void report_overlap(const struct claim *a, const struct claim *b, struct report *report)
{
	bool swap = by_place(a->service, b->service) > 0;
	const struct model_service *first = (swap ? b : a)->service, *second = (swap ? a : b)->service;
	char text[ADDR_TEXT_MAX], where[PLACE_TEXT_MAX], port[24];

	snprintf(port, sizeof(port), "port %u", b->ports.first);
	complain(report, second->ports_place,
		 "services \"%s\" and \"%s\"%s both have %s %s of %s: a port of an address can have one service, "
		 "change one of them",
		 second->name, first->name, model_place_text(first->place, where),
		 second->protocol == IPPROTO_UDP ? "UDP" : "TCP", b->ports.first ? port : "\"any\"",
		 addr_format(&second->address, text));
}

static struct claim *list_claims(const struct model *model, size_t *count)
{
	struct claim *claims;
	size_t n = 0;

	for (size_t i = 0; i < model->n_services; i++)
		n += model->services[i].n_ports + 1;
	claims = calloc(n + 1, sizeof(*claims));
	n = 0;
	for (size_t i = 0; claims && i < model->n_services; i++) {
		const struct model_service *service = &model->services[i];

		if (service->any_port)
			claims[n++] = (struct claim){.service = service};
		for (size_t j = 0; j < service->n_ports; j++)
			claims[n++] = (struct claim){service, service->ports[j]};
	}
	*count = n;
	return claims;
}

static int check_overlaps(const struct model *model, struct report *report)
{
	size_t count;
	struct claim *claims = list_claims(model, &count), *widest = claims;

	if (!claims)
		return -ENOMEM;
	qsort(claims, count, sizeof(*claims), by_claim);
	for (size_t i = 1; i < count; i++) {
		struct claim *claim = &claims[i];

		if (by_service_address(widest->service, claim->service) == 0 &&
		    claim->ports.first <= widest->ports.last) {
			report_overlap(widest, claim, report);
			if (claim->ports.last <= widest->ports.last)
				continue;
		}
		widest = claim;
	}
	free(claims);
	return 0;
}

static int by_address(const void *a, const void *b)
{
	const struct model_service *x = *(const struct model_service *const *)a;
	const struct model_service *y = *(const struct model_service *const *)b;
	int order = addr_compare(&x->address, &y->address);

	return order ? order : by_place(x, y);
}

/* What holds for an address must be said alike by all its services. */
static void check_agreement(const struct model_service *first, const struct model_service *other, struct report *report)
{
	char text[ADDR_TEXT_MAX], where[PLACE_TEXT_MAX];

	if (first->unknown_port != other->unknown_port)
		complain(report, other->unknown_port_place,
			 "service \"%s\" has \"unknown-port: %s\" but service \"%s\"%s of the same address %s has "
			 "\"%s\": "
			 "it holds for the whole address, say the same in both",
			 other->name, model_unknown_port_names[other->unknown_port], first->name,
			 model_place_text(first->place, where), addr_format(&first->address, text),
			 model_unknown_port_names[first->unknown_port]);
	if (first->echo != other->echo)
		complain(report, other->echo_place,
			 "service \"%s\" has \"echo: %s\" but service \"%s\"%s of the same address %s has \"%s\": it "
			 "holds "
			 "for the whole address, say the same in both",
			 other->name, model_echo_names[other->echo], first->name, model_place_text(first->place, where),
			 addr_format(&first->address, text), model_echo_names[first->echo]);
	else if (first->echo == MODEL_ECHO_FORWARD && strcmp(first->pool, other->pool) != 0)
		complain(report, other->echo_place,
			 "service \"%s\" has \"echo: forward\" and pool \"%.63s\", but service \"%s\"%s of the same "
			 "address "
			 "%s has pool \"%.63s\": a ping names no port, so give them one pool, or say \"echo: answer\"",
			 other->name, other->pool, first->name, model_place_text(first->place, where),
			 addr_format(&first->address, text), first->pool);
}

static void check_backend_address(const struct model_service **sorted, size_t count, const struct model_pool *pool,
				  const struct model_backend *backend, struct report *report)
{
	char text[ADDR_TEXT_MAX];
	size_t low = 0, high = count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (addr_compare(&sorted[middle]->address, &backend->address) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	if (low == count || !addr_equal(&sorted[low]->address, &backend->address))
		return;
	complain(
		report, backend->address_place,
		"backend \"%s/%s\" has the address %s of service \"%s\", so that its packets would come back: give the "
		"backend's own address",
		pool->name, backend->name, addr_format(&backend->address, text), sorted[low]->name);
}

static int check_by_address(const struct model *model, struct report *report)
{
	const struct model_service **sorted = calloc(model->n_services + 1, sizeof(*sorted)), *first;

	if (!sorted)
		return -ENOMEM;
	for (size_t i = 0; i < model->n_services; i++)
		sorted[i] = &model->services[i];
	qsort(sorted, model->n_services, sizeof(*sorted), by_address);
	first = sorted[0];
	for (size_t i = 1; i < model->n_services; i++) {
		if (addr_equal(&first->address, &sorted[i]->address))
			check_agreement(first, sorted[i], report);
		else
			first = sorted[i];
	}
	for (size_t i = 0; i < model->n_pools; i++) {
		const struct model_pool *pool = &model->pools[i];

		for (size_t j = 0; j < pool->n_backends; j++)
			check_backend_address(sorted, model->n_services, pool, &pool->backends[j], report);
	}
	free(sorted);
	return 0;
}

int model_check_services(const struct model *model, const struct model_local *locals, size_t n_locals,
			 struct report *report)
{
	struct model_local *sorted = calloc(n_locals + 1, sizeof(*sorted));
	int ret;

	if (!sorted)
		return -ENOMEM;
	if (n_locals)
		memcpy(sorted, locals, n_locals * sizeof(*sorted));
	qsort(sorted, n_locals, sizeof(*sorted), by_local);
	for (size_t i = 0; i < model->n_services; i++) {
		const struct model_service *service = &model->services[i];

		check_service(model, service, find_local(sorted, n_locals, &service->address), report);
		if (i && strcmp(service[-1].name, service->name) == 0)
			model_check_duplicate("service", service->name, service[-1].place, service->place, report);
	}
	free(sorted);
	ret = check_overlaps(model, report);
	return ret ? ret : check_by_address(model, report);
}
