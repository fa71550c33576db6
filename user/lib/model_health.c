/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "duration.h"
#include "model_health.h"

const char *const model_check_names[MODEL_NR_CHECKS] = {
	[MODEL_CHECK_TCP] = "tcp", [MODEL_CHECK_HTTP] = "http", [MODEL_CHECK_HTTPS] = "https",
	[MODEL_CHECK_UDP] = "udp", [MODEL_CHECK_DNS] = "dns",	[MODEL_CHECK_EXEC] = "exec",
};
const char *const model_verify_names[MODEL_NR_VERIFIES] = {
	[MODEL_VERIFY_NONE] = "none",
	[MODEL_VERIFY_CA] = "ca",
};
const char *const model_via_names[MODEL_NR_VIAS] = {
	[MODEL_VIA_DATA_PATH] = "data-path",
	[MODEL_VIA_DIRECT] = "direct",
};
const char *const model_newcomer_names[MODEL_NR_NEWCOMERS] = {
	[MODEL_NEW_WAIT] = "wait",
	[MODEL_NEW_SERVE] = "serve",
};
const char *const model_last_names[HEALTH_NR_LASTS] = {
	[HEALTH_FAIL_OPEN] = "fail-open",
	[HEALTH_REFUSE] = "refuse",
};

bool model_check_streams(enum model_check type)
{
	return type == MODEL_CHECK_TCP || model_check_speaks_http(type);
}

bool model_check_speaks_http(enum model_check type)
{
	return type == MODEL_CHECK_HTTP || type == MODEL_CHECK_HTTPS;
}

void model_health_server_name(const struct model_health *health, char out[static MODEL_SERVER_NAME_MAX + 1])
{
	const char *name = health->sni ? health->sni : health->host ? health->host : "";
	const char *colon = strchr(name, ':');
	size_t length = strlen(name);

	if (*name == '[') { /* an IPv6 address, perhaps with a port */
		name++;
		length = strcspn(name, "]");
	} else if (colon && !strchr(colon + 1, ':')) {
		length = (size_t)(colon - name);
	}
	if (length > MODEL_SERVER_NAME_MAX)
		length = 0;
	memcpy(out, name, length);
	out[length] = '\0';
}

struct model_health model_health_default(void)
{
	return (struct model_health){
		.interval = MODEL_HEALTH_INTERVAL,
		.timeout = MODEL_HEALTH_TIMEOUT,
		.rise = MODEL_HEALTH_RISE,
		.fall = MODEL_HEALTH_FALL,
		.hold_down = MODEL_HEALTH_HOLD_DOWN,
		.hold_down_max = MODEL_HEALTH_HOLD_DOWN_MAX,
		.panic = MODEL_HEALTH_PANIC,
		.status_first = 200,
		.status_last = 399,
	};
}

void model_health_free(struct model_health *health)
{
	if (!health)
		return;
	free(health->path);
	free(health->host);
	free(health->match);
	free(health->send);
	free(health->query);
	free(health->hook);
	free(health->sni);
	free(health->ca_file);
	free(health);
}

static bool copy_text(const char *from, char **to)
{
	*to = from ? strdup(from) : NULL;
	return *to || !from;
}

int model_health_copy(const struct model_health *from, struct model_health **out)
{
	struct model_health *health = malloc(sizeof(*health));
	bool copied;

	if (!health)
		return -ENOMEM;
	*health = *from;
	health->line = health->column = 0;
	copied = copy_text(from->path, &health->path);
	copied &= copy_text(from->host, &health->host);
	copied &= copy_text(from->match, &health->match);
	copied &= copy_text(from->send, &health->send);
	copied &= copy_text(from->query, &health->query);
	copied &= copy_text(from->hook, &health->hook);
	copied &= copy_text(from->sni, &health->sni);
	copied &= copy_text(from->ca_file, &health->ca_file);
	if (!copied) {
		model_health_free(health);
		return -ENOMEM;
	}
	*out = health;
	return 0;
}

static int set_text(json_t *object, const char *key, const char *text)
{
	return text ? json_object_set_new(object, key, json_string(text)) : 0;
}

static int set_duration(json_t *object, const char *key, uint32_t milliseconds)
{
	char text[DURATION_TEXT_MAX];

	return json_object_set_new(object, key, json_string(duration_format(milliseconds, text)));
}

static int set_number(json_t *object, const char *key, uint32_t number)
{
	return json_object_set_new(object, key, json_integer(number));
}

json_t *model_health_json(const struct model_health *health)
{
	json_t *object = json_object();
	char status[16];
	int failed = json_object_set_new(object, "type", json_string(model_check_names[health->type]));

	if (health->port)
		failed |= set_number(object, "port", health->port);
	failed |= set_text(object, "check-via", model_via_names[health->via]);
	failed |= set_duration(object, "interval", health->interval);
	failed |= set_duration(object, "timeout", health->timeout);
	failed |= set_number(object, "rise", health->rise);
	failed |= set_number(object, "fall", health->fall);
	failed |= set_duration(object, "hold-down", health->hold_down);
	failed |= set_duration(object, "hold-down-max", health->hold_down_max);
	failed |= set_number(object, "panic", health->panic);
	failed |= set_text(object, "last-backend", model_last_names[health->last]);
	failed |= set_text(object, "new-backends", model_newcomer_names[health->newcomers]);
	if (health->packet_size)
		failed |= set_number(object, "packet-size", health->packet_size);
	failed |= set_text(object, "path", health->path);
	failed |= set_text(object, "host", health->host);
	failed |= set_text(object, "match", health->match);
	failed |= set_text(object, "send", health->send);
	failed |= set_text(object, "query", health->query);
	failed |= set_text(object, "hook", health->hook);
	failed |= set_text(object, "sni", health->sni);
	failed |= set_text(object, "ca-file", health->ca_file);
	if (health->type == MODEL_CHECK_HTTPS)
		failed |= set_text(object, "verify", model_verify_names[health->verify]);
	if (model_check_speaks_http(health->type)) {
		snprintf(status, sizeof(status), "%u-%u", health->status_first, health->status_last);
		failed |= set_text(object, "status", status);
	}
	if (!failed)
		return object;
	json_decref(object);
	return NULL;
}
