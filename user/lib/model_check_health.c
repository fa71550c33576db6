/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <netinet/in.h>
#include <string.h>

#include "addr.h"
#include "model_check.h"

#define NAME_CHARACTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-"

static void wrong(const struct model_pool *pool, struct report *report, const char *text)
{
	const struct model_place place = {pool->health->line, pool->health->column};

	complain(report, place, "pool \"%s\": health: %s", pool->name, text);
}

/* Texts that belong to another type of check. */
static void check_texts(const struct model_pool *pool, struct report *report)
{
	const struct model_health *health = pool->health;
	bool http = model_check_speaks_http(health->type), udp = health->type == MODEL_CHECK_UDP;

	if (!http && (health->path || health->host))
		wrong(pool, report,
		      "path and host are for the types http and https: leave them out, or use one of those");
	if (!http && !udp && health->match)
		wrong(pool, report, "match is for the types http, https and udp: leave it out");
	if (!udp && health->send)
		wrong(pool, report, "send is for type udp: leave it out");
	if (health->type != MODEL_CHECK_DNS && health->query)
		wrong(pool, report, "query is for type dns: leave it out");
	if (health->type != MODEL_CHECK_EXEC && health->hook)
		wrong(pool, report, "hook is for type exec: leave it out");
	if (udp && !health->send)
		wrong(pool, report, "type udp lacks send: give the text to send, which the server must answer");
	if (health->type == MODEL_CHECK_DNS && !health->query)
		wrong(pool, report, "type dns lacks query: give the name to ask for");
	if (health->type == MODEL_CHECK_EXEC && !health->hook)
		wrong(pool, report, "type exec lacks hook: give the name of a file in the hooks directory");
	if (health->path && *health->path != '/')
		wrong(pool, report, "path must begin with a slash");
	if ((health->path && strchr(health->path, ' ')) || (health->host && strchr(health->host, ' ')))
		wrong(pool, report, "path and host have no spaces");
}

/* What a certificate can have; RFC 6066, 3: SNI is for names alone. */
static void check_server_name(const struct model_pool *pool, struct report *report)
{
	const struct model_health *health = pool->health;
	char name[MODEL_SERVER_NAME_MAX + 1];
	union shunt_address address;
	bool is_address;

	model_health_server_name(health, name);
	is_address = !addr_parse(name, &address);
	if (health->sni && (is_address || strcmp(name, health->sni) != 0))
		wrong(pool, report,
		      "sni is a name, of at most 253 characters and without a port: leave it out where there is none");
	else if (!is_address && ((health->host && !*name) || name[strspn(name, NAME_CHARACTERS)]))
		wrong(pool, report,
		      "sni, or without it host, is a name: letters, digits, . _ and -; others in their ASCII form");
	if (health->verify == MODEL_VERIFY_CA && !*name)
		wrong(pool, report, "verify: ca needs host or sni: the name that the certificate must have");
}

static void check_tls(const struct model_pool *pool, struct report *report)
{
	const struct model_health *health = pool->health;

	if (health->type != MODEL_CHECK_HTTPS) {
		if (health->sni || health->ca_file || health->verify != MODEL_VERIFY_NONE)
			wrong(pool, report, "sni, verify and ca-file are for type https: leave them out, or use that");
		return;
	}
	check_server_name(pool, report);
	if (health->ca_file && health->verify != MODEL_VERIFY_CA)
		wrong(pool, report, "ca-file needs verify: ca");
	if (health->ca_file && *health->ca_file != '/')
		wrong(pool, report, "ca-file must be the whole path, beginning with a slash");
}

static void check_hook(const struct model_pool *pool, struct report *report)
{
	const char *hook = pool->health->hook;

	if (!hook)
		return;
	if (hook[strspn(hook, NAME_CHARACTERS)] || *hook == '.')
		wrong(pool, report,
		      "hook must be the name of a file in the hooks directory: letters, digits, . _ and -");
	if (pool->health->packet_size)
		wrong(pool, report, "packet-size is not for type exec: leave it out");
}

static void check_times(const struct model_pool *pool, struct report *report)
{
	const struct model_health *health = pool->health;

	if (health->timeout > health->interval)
		wrong(pool, report, "timeout is longer than interval: make it shorter, or check less often");
	if (health->hold_down > health->hold_down_max)
		wrong(pool, report, "hold-down is longer than hold-down-max");
	if (health->via == MODEL_VIA_DIRECT && health->packet_size)
		wrong(pool, report, "packet-size needs check-via: data-path");
}

static bool has_port(const struct model *model, const char *pool)
{
	for (size_t i = 0; i < model->n_services; i++)
		if (!strcmp(model->services[i].pool, pool) && model->services[i].n_ports)
			return true;
	return false;
}

void model_check_health(const struct model *model, const struct model_pool *pool, struct report *report)
{
	const struct model_health *health = pool->health;
	bool used = false;

	if (!health)
		return;
	check_texts(pool, report);
	check_tls(pool, report);
	check_hook(pool, report);
	check_times(pool, report);
	for (size_t i = 0; i < model->n_services; i++)
		used |= !strcmp(model->services[i].pool, pool->name);
	if (used && !health->port && health->type != MODEL_CHECK_EXEC && !has_port(model, pool->name))
		wrong(pool, report, "give a port: the services of the pool take any");
	if (!used && !health->port && health->via == MODEL_VIA_DIRECT && health->type != MODEL_CHECK_EXEC)
		wrong(pool, report, "give a port: no service of the pool has one");
}
