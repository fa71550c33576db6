/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Methods that change something: each makes a changed copy of the model, which is judged and applied whole. */
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "addr.h"
#include "log.h"
#include "methods.h"

/* ---- from a copy to what is in force ---- */

/* A copy to change, or NULL after call_fail(). */
static struct model *copy_model(struct call *call)
{
	const struct model *model = engine_model(call->daemon->engine);
	struct model *copy;

	if (!model) {
		call_fail(call, CONTROL_INVALID,
			  "nothing is applied yet, so there is no hash key: start shuntd with a document first (-c "
			  "FILE)");
		return NULL;
	}
	if (model_copy(model, &copy)) {
		call_fail(call, CONTROL_FAILED, "out of memory");
		return NULL;
	}
	return copy;
}

/* Takes the model. */
static json_t *apply(struct call *call, struct model *model)
{
	const char *pool = call_text(call, "pool"), *name = call_text(call, "name");
	struct change change = {.settle_ms = VERB_SETTLE_MS};
	char what[2 * MODEL_NAME_MAX + 2];
	json_t *reply;

	if (change_check(call->daemon, model, &call->report)) {
		model_free(model);
		call->error = CONTROL_INVALID;
		return NULL;
	}
	/* Of a service, `pool` is a setting; of a backend, half of its name. */
	if (pool && !call_text(call, "protocol"))
		snprintf(what, sizeof(what), "%s/%s", pool, name);
	else
		snprintf(what, sizeof(what), "%s", name);
	reply = call_change(call, model, &change, what);
	if (reply && !change.dry_run)
		json_object_clear(reply);
	return reply;
}

/* A wrong value: gives the copy up, after the message, which may quote it. */
#define refuse(call, model, error, ...) (call_fail(call, error, __VA_ARGS__), model_free(model), NULL)

/* Index of `word` in names[0..n), n for none. */
static size_t word_index(const char *word, const char *const *names, size_t n)
{
	size_t i = 0;

	while (i < n && strcmp(word, names[i]) != 0)
		i++;
	return i;
}

static bool take_address(struct call *call, const char *name, union shunt_address *out)
{
	if (!addr_parse(call_text(call, name), out))
		return true;
	call_fail(call, CONTROL_INVALID, "%s \"%.60s\" is not an IP address", name, call_text(call, name));
	return false;
}

/* ---- services ---- */

static bool take_service_words(struct call *call, struct model_service *service)
{
	const char *protocol = call_text(call, "protocol"), *hash = call_text(call, "hash");
	const char *unknown = call_text(call, "unknown_port"), *echo = call_text(call, "echo");
	size_t hash_index = hash ? word_index(hash, model_hash_names, SHUNT_NR_HASH_MODES) : SHUNT_HASH_5TUPLE;
	size_t unknown_index =
		unknown ? word_index(unknown, model_unknown_port_names, MODEL_NR_UNKNOWN_PORTS) : MODEL_UNKNOWN_DROP;
	size_t echo_index = echo ? word_index(echo, model_echo_names, MODEL_NR_ECHOS) : MODEL_ECHO_ANSWER;

	service->protocol = !strcmp(protocol, "tcp") ? IPPROTO_TCP : !strcmp(protocol, "udp") ? IPPROTO_UDP : 0;
	service->hash = (enum shunt_hash_mode)hash_index;
	service->unknown_port = (enum model_unknown_port)unknown_index;
	service->echo = (enum model_echo)echo_index;
	if (!service->protocol)
		call_fail(call, CONTROL_INVALID, "protocol \"%.20s\" is neither tcp nor udp", protocol);
	else if (hash_index == SHUNT_NR_HASH_MODES)
		call_fail(call, CONTROL_INVALID, "hash \"%.20s\" is none of %s, %s, %s", hash, model_hash_names[0],
			  model_hash_names[1], model_hash_names[2]);
	else if (unknown_index == MODEL_NR_UNKNOWN_PORTS)
		call_fail(call, CONTROL_INVALID, "unknown_port \"%.20s\" is none of %s, %s, %s", unknown,
			  model_unknown_port_names[0], model_unknown_port_names[1], model_unknown_port_names[2]);
	else if (echo_index == MODEL_NR_ECHOS)
		call_fail(call, CONTROL_INVALID, "echo \"%.20s\" is none of %s, %s, %s", echo, model_echo_names[0],
			  model_echo_names[1], model_echo_names[2]);
	else
		return true;
	return false;
}

static bool take_service(struct call *call, struct model_service *service)
{
	const char *ports = call_text(call, "ports");

	if (!take_address(call, "address", &service->address) || !take_service_words(call, service))
		return false;
	if (model_ports_parse(ports, service)) {
		call_fail(call, CONTROL_INVALID,
			  "ports \"%.60s\" are not numbers and ranges of 1 to 65535 (80,443,8000-8099), or any", ports);
		return false;
	}
	service->name = strdup(call_text(call, "name"));
	service->pool = strdup(call_text(call, "pool"));
	if (service->name && service->pool)
		return true;
	call_fail(call, CONTROL_FAILED, "out of memory");
	return false;
}

json_t *method_service_add(struct call *call)
{
	struct model *model = copy_model(call);
	struct model_service service = {};
	const char *name = call_text(call, "name");
	int ret;

	if (!model)
		return NULL;
	if (!take_service(call, &service)) {
		model_service_clear(&service);
		model_free(model);
		return NULL;
	}
	ret = model_add_service(model, &service);
	if (!ret)
		return apply(call, model);
	model_service_clear(&service);
	if (ret == -EEXIST)
		return refuse(call, model, CONTROL_EXISTS, "there is a service %.63s already", name);
	return refuse(call, model, CONTROL_FAILED, "out of memory");
}

json_t *method_service_del(struct call *call)
{
	struct model *model = copy_model(call);
	const char *name = call_text(call, "name");

	if (!model)
		return NULL;
	if (!model_del_service(model, name))
		return apply(call, model);
	if (!call_flag(call, "ignore_missing"))
		return refuse(call, model, CONTROL_NOT_FOUND, "there is no service %.63s", name);
	model_free(model);
	return json_object();
}

/* ---- pools ---- */

/* 0 where it is not given. */
static bool take_number(struct call *call, const char *name, uint32_t least, uint32_t most, uint32_t *out)
{
	json_int_t value = call_number(call, name, -1);

	if (value < 0)
		return true;
	if (value < least || value > most) {
		call_fail(call, CONTROL_INVALID, "%s %" JSON_INTEGER_FORMAT " is not between %u and %u", name, value,
			  least, most);
		return false;
	}
	*out = (uint32_t)value;
	return true;
}

static bool take_word(struct call *call, const char *parameter, const char *const *words, size_t n, size_t *out)
{
	const char *word = call_text(call, parameter);
	char list[64] = "";
	size_t length = 0;

	*out = word ? word_index(word, words, n) : 0;
	if (*out < n)
		return true;
	for (size_t i = 0; i < n; i++)
		length += (size_t)snprintf(list + length, sizeof(list) - length, "%s%s", i ? " or " : "", words[i]);
	call_fail(call, CONTROL_INVALID, "%s \"%.20s\" is not known: use %s", parameter, word, list);
	return false;
}

static bool take_source(struct call *call, const char *parameter, bool v4, struct model_source *source)
{
	const char *text = call_text(call, parameter);

	if (!text || (!model_source_parse(text, source) && model_source_is_v4(source) == v4))
		return true;
	call_fail(call, CONTROL_INVALID,
		  "source %.63s is no %s address or prefix: give one such as %s, with no bit set beyond its length",
		  text, v4 ? "IPv4" : "IPv6", v4 ? "192.0.2.1 or 192.0.2.0/24" : "2001:db8::1 or 2001:db8::/64");
	return false;
}

static bool take_encapsulation(struct call *call, struct model_pool *pool)
{
	size_t type, checksum;

	if (!take_word(call, "encapsulation", model_encapsulation_names, MODEL_NR_ENCAPSULATIONS, &type) ||
	    !take_word(call, "udp6_checksum", model_udp6_checksum_names, MODEL_NR_UDP6_CHECKSUMS, &checksum))
		return false;
	pool->encapsulation = (enum model_encapsulation)type;
	pool->udp6_checksum = (enum model_udp6_checksum)checksum;
	pool->gue_port = (uint16_t)call_number(call, "port", 0);
	return take_source(call, "source4", true, &pool->source4) &&
	       take_source(call, "source6", false, &pool->source6);
}

static bool take_pool(struct call *call, struct model_pool *pool)
{
	const char *algorithm = call_text(call, "algorithm");

	if (!take_encapsulation(call, pool))
		return false;
	pool->slots = (uint32_t)call_number(call, "slots", MODEL_DEFAULT_SLOTS);
	if (!take_number(call, "balance_percent", 100, 100 * MODEL_BALANCE_MAX, &pool->balance_percent) ||
	    !take_number(call, "vnodes", 1, MODEL_VNODES_MAX, &pool->vnodes))
		return false;
	pool->settle = MODEL_DEFAULT_SETTLE;
	pool->learn = MODEL_DEFAULT_LEARN;
	pool->drain_timeout = MODEL_DEFAULT_DRAIN_TIMEOUT;
	pool->name = strdup(call_text(call, "name"));
	pool->algorithm = strdup(algorithm ? algorithm : MODEL_DEFAULT_ALGORITHM);
	if (pool->name && pool->algorithm)
		return true;
	call_fail(call, CONTROL_FAILED, "out of memory");
	return false;
}

json_t *method_pool_add(struct call *call)
{
	struct model *model = copy_model(call);
	const char *name = call_text(call, "name");
	struct model_pool pool = {};
	int ret;

	if (!model)
		return NULL;
	if (!take_pool(call, &pool)) {
		model_pool_clear(&pool);
		model_free(model);
		return NULL;
	}
	ret = model_add_pool(model, &pool);
	if (!ret)
		return apply(call, model);
	model_pool_clear(&pool);
	if (ret == -EEXIST)
		return refuse(call, model, CONTROL_EXISTS, "there is a pool %.63s already", name);
	return refuse(call, model, CONTROL_FAILED, "out of memory");
}

json_t *method_pool_del(struct call *call)
{
	struct model *model = copy_model(call);
	const char *name = call_text(call, "name");

	if (!model)
		return NULL;
	for (size_t i = 0; i < model->n_services; i++)
		if (!strcmp(model->services[i].pool, name))
			return refuse(call, model, CONTROL_INVALID,
				      "service %s points at pool %s: delete the service first", model->services[i].name,
				      name);
	if (!model_del_pool(model, name))
		return apply(call, model);
	if (!call_flag(call, "ignore_missing"))
		return refuse(call, model, CONTROL_NOT_FOUND, "there is no pool %.63s", name);
	model_free(model);
	return json_object();
}

/* ---- backends ---- */

/* The pool named in a copy to change; NULL, and no copy, after call_fail(). */
static struct model_pool *pool_of_copy(struct call *call, struct model **copy)
{
	struct model_pool *pool;

	*copy = copy_model(call);
	if (!*copy)
		return NULL;
	pool = model_pool(*copy, call_text(call, "pool"));
	if (!pool) {
		call_fail(call, CONTROL_NOT_FOUND, "there is no pool %.63s", call_text(call, "pool"));
		model_free(*copy);
	}
	return pool;
}

json_t *method_backend_add(struct call *call)
{
	struct model *model;
	struct model_pool *pool = pool_of_copy(call, &model);
	struct model_backend backend = {};
	const char *name = call_text(call, "name");
	int ret;

	if (!pool)
		return NULL;
	if (!take_address(call, "address", &backend.address)) {
		model_free(model);
		return NULL;
	}
	backend.weight = (uint32_t)call_number(call, "weight", MODEL_DEFAULT_WEIGHT);
	backend.name = strdup(name);
	ret = backend.name ? model_add_backend(pool, &backend) : -ENOMEM;
	if (!ret)
		return apply(call, model);
	model_backend_clear(&backend);
	if (ret == -EEXIST)
		return refuse(call, model, CONTROL_EXISTS, "there is a backend %s/%.63s already",
			      call_text(call, "pool"), name);
	return refuse(call, model, CONTROL_FAILED, "out of memory");
}

json_t *method_backend_del(struct call *call)
{
	struct model *model;
	struct model_pool *pool = pool_of_copy(call, &model);
	const char *name = call_text(call, "name");

	if (!pool)
		return NULL;
	if (!call_flag(call, "now") && !call_flag(call, "plan") && drain_needed(call)) {
		model_free(model);
		return drain_and_delete(call);
	}
	if (!model_del_backend(pool, name))
		return apply(call, model);
	if (!call_flag(call, "ignore_missing"))
		return refuse(call, model, CONTROL_NOT_FOUND, "there is no backend %s/%.63s", call_text(call, "pool"),
			      name);
	model_free(model);
	return json_object();
}

json_t *method_backend_set(struct call *call)
{
	struct model *model;
	struct model_pool *pool = pool_of_copy(call, &model);
	const char *name = call_text(call, "name");
	struct model_backend *backend;

	if (!pool)
		return NULL;
	backend = model_backend(pool, name);
	if (!backend)
		return refuse(call, model, CONTROL_NOT_FOUND, "there is no backend %s/%.63s", call_text(call, "pool"),
			      name);
	backend->weight = (uint32_t)call_number(call, "weight", backend->weight);
	return apply(call, model);
}

/* ---- the daemon itself ---- */

json_t *method_reload(struct call *call)
{
	struct daemon *daemon = call->daemon;
	struct origin origin;
	bool changed = false;
	json_t *warnings;
	int ret;

	if (!daemon->options->file)
		return call_fail(call, CONTROL_INVALID, "shuntd was started without a document: start it with -c FILE");
	origin = call_origin(call, daemon->options->file);
	ret = apply_file(daemon, true, &origin, &changed, &call->report);
	if (ret) {
		log_error("%s is refused, nothing has changed:", daemon->options->file);
		log_report(&call->report);
		return call_fail(call, call_error_of(ret), "%s is refused, nothing has changed", daemon->options->file);
	}
	log_info("%s %s", daemon->options->file, changed ? "is applied" : "says what is in force already");
	warnings = control_entries(&call->report);
	return json_pack("{s:b, s:o}", "changed", changed, "warnings", warnings ? warnings : json_array());
}

json_t *method_reopen(struct call *call)
{
	int ret = apply_reopen(call->daemon, &call->report);

	if (ret) {
		call->error = CONTROL_FAILED;
		return NULL;
	}
	return json_object();
}
