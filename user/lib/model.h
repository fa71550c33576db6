/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The document in memory: what the operator wants.  Plain data, owned by the model; every array is sorted
 * by name, so that the order of input never matters.  Identity is the name.
 */
#ifndef SHUNT_MODEL_H
#define SHUNT_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <jansson.h>
#include <shunt/types.h>

#include "addr.h"
#include "model_health.h"
#include "report.h"

#define MODEL_NAME_MAX 63 /* characters: [A-Za-z0-9._-], the first a letter or digit */
#define MODEL_WEIGHT_MAX 65535u
#define MODEL_BALANCE_MAX 100u
#define MODEL_VNODES_MAX 100000u
#define MODEL_KEY_BYTES 16
#define MODEL_KEY_KEEP "keep" /* in the place of a key: the one in force */

/*
 * Where in the document a thing stands; 0,0 for what a verb made.  `place` of a pool, backend or service is that of its
 * name; the others are those of a value that can be wrong by itself, and are those of the name where it is a default.
 */
struct model_place {
	unsigned int line;
	unsigned int column;
};

struct model_backend {
	char *name;
	union shunt_address address;
	uint32_t weight; /* 0 .. MODEL_WEIGHT_MAX */
	struct model_place place, address_place, weight_place;
};

enum model_encapsulation { MODEL_IPIP, MODEL_GUE, MODEL_L2, MODEL_NR_ENCAPSULATIONS };
enum model_udp6_checksum { MODEL_UDP6_COMPUTED, MODEL_UDP6_ZERO, MODEL_NR_UDP6_CHECKSUMS };

/* Outer sources: one address, or a prefix whose other bits carry the flow's entropy. */
struct model_source {
	bool given;
	struct shunt_prefix prefix;
	struct model_place place;
};
#define MODEL_SOURCE4_MIN 8u /* bits of the shortest prefix */
#define MODEL_SOURCE6_MIN 32u

/* How connections are kept through changes: docs/connections.md. */
enum model_connections { MODEL_TRACKED, MODEL_STATELESS, MODEL_NR_CONNECTIONS };

struct model_pool {
	char *name;
	char *algorithm; /* of table_algorithms[] */
	uint32_t slots;
	uint32_t balance_percent, vnodes; /* as in struct table_params; 0: not given */
	enum model_encapsulation encapsulation;
	uint16_t gue_port; /* 0: not given, SHUNT_GUE_PORT */
	enum model_udp6_checksum udp6_checksum;
	struct model_source source4, source6;
	enum model_connections connections;
	uint32_t settle, learn, drain_timeout; /* milliseconds, MODEL_DURATION_MIN .. MODEL_DURATION_MAX */
	uint32_t slow_start;		       /* the same; 0: none */
	struct model_health *health;	       /* NULL: not checked */
	struct model_backend *backends;
	size_t n_backends;
	struct model_place place, algorithm_place, slots_place, balance_place, vnodes_place, gue_port_place,
		udp6_checksum_place, settle_place, learn_place;
};

struct model_ports {
	uint16_t first, last; /* inclusive, 1 .. 65535 */
};

/* What holds for a service address, and so is said alike by all its services. */
enum model_unknown_port { MODEL_UNKNOWN_DROP, MODEL_UNKNOWN_REFUSE, MODEL_UNKNOWN_PASS, MODEL_NR_UNKNOWN_PORTS };
enum model_echo { MODEL_ECHO_ANSWER, MODEL_ECHO_FORWARD, MODEL_ECHO_DROP, MODEL_NR_ECHOS };

struct model_service {
	char *name;
	union shunt_address address;
	uint8_t protocol; /* IPPROTO_TCP or IPPROTO_UDP */
	bool any_port;
	struct model_ports *ports; /* sorted, disjoint; empty if any_port */
	size_t n_ports;
	char *pool;
	enum shunt_hash_mode hash;
	enum model_unknown_port unknown_port;
	enum model_echo echo;
	bool bad_ports; /* only while a document is read: ports or protocol were wrong, and are reported */
	struct model_place place, address_place, ports_place, pool_place, unknown_port_place, echo_place;
};

/* What the packet path answers by itself, and how often. */
enum model_ttl_exceeded { MODEL_TTL_DROP, MODEL_TTL_ANSWER, MODEL_NR_TTL_EXCEEDED };
enum model_too_big { MODEL_TOO_BIG_DROP, MODEL_TOO_BIG_SEND, MODEL_NR_TOO_BIG };

struct model_settings {
	enum model_ttl_exceeded ttl_exceeded;
	enum model_too_big too_big_without_df;
	uint32_t error_rate; /* ICMP errors and resets a second on each CPU, 0 .. MODEL_ERROR_RATE_MAX; 0: none */
};

/* What a change may do without being forced; nothing is forbidden where it is not given. */
struct model_policy {
	bool given;
	bool has_max_moved, has_max_leaving;
	uint32_t max_moved_percent; /* of a pool's slots, 0 .. 100 */
	uint32_t max_leaving;	    /* backends that have slots and lose all of them */
	bool allow_empty;	    /* a pool may lose all its backends */
};

/* How service addresses are announced to the network; not at all where it is not given. */
enum model_when { MODEL_WHEN_ANY, MODEL_WHEN_ALL, MODEL_NR_WHENS }; /* of an address's services can be served */

struct model_announce {
	bool given;
	uint32_t table;		       /* of routes; 0: none */
	char hook[MODEL_NAME_MAX + 1]; /* file in the hooks directory; "": none */
	enum model_when when;
};

struct model {
	char *key_file;		      /* hash-key-file as given, or NULL */
	struct model_place key_place; /* of the key's or the key file's value */
	bool has_key;		      /* `key` is known: given inline, or read from key_file */
	bool keep_key;		      /* "hash-key: keep", and document_keep_key() has not been called yet */
	uint8_t key[MODEL_KEY_BYTES]; /* never printed, logged or exported; memory is wiped when freed */
	struct model_policy policy;
	struct model_settings settings;
	struct model_announce announce;
	struct model_pool *pools;
	size_t n_pools;
	struct model_service *services;
	size_t n_services;
};

/* Values where the document gives none. */
#define MODEL_DEFAULT_ALGORITHM "maglev"
#define MODEL_DEFAULT_SLOTS 65537u
#define MODEL_DEFAULT_WEIGHT 1u
#define MODEL_DEFAULT_SETTLE (130 * 60000u) /* longer than keepalives of two hours, and than RFC 5382's 2 h 4 min */
#define MODEL_DEFAULT_LEARN 30000u
#define MODEL_DEFAULT_DRAIN_TIMEOUT (24 * 3600000u)
#define MODEL_DEFAULT_ERROR_RATE 1000u
#define MODEL_ERROR_RATE_MAX 1000000u
#define MODEL_DURATION_MIN 1000u
#define MODEL_DURATION_MAX (30 * 24 * 3600000u)

/* The words of the document, by enum. */
extern const char *const model_encapsulation_names[MODEL_NR_ENCAPSULATIONS];
extern const char *const model_udp6_checksum_names[MODEL_NR_UDP6_CHECKSUMS];
extern const char *const model_hash_names[SHUNT_NR_HASH_MODES];
extern const char *const model_unknown_port_names[MODEL_NR_UNKNOWN_PORTS];
extern const char *const model_echo_names[MODEL_NR_ECHOS];
extern const char *const model_ttl_exceeded_names[MODEL_NR_TTL_EXCEEDED];
extern const char *const model_too_big_names[MODEL_NR_TOO_BIG];
extern const char *const model_connections_names[MODEL_NR_CONNECTIONS];
extern const char *const model_when_names[MODEL_NR_WHENS];

void model_free(struct model *model); /* NULL is allowed */

/* Without the places: a copy is made for verbs to change, and then speaks of no document.  0 or -ENOMEM. */
int model_copy(const struct model *from, struct model **out);

/* Free the members, not the struct itself. */
void model_pool_clear(struct model_pool *pool);
void model_backend_clear(struct model_backend *backend);
void model_service_clear(struct model_service *service);

/* Sort the arrays by name (equal ones by place) and each service's ports: for whoever filled them by hand. */
void model_sort(struct model *model);

struct model_pool *model_pool(const struct model *model, const char *name);
struct model_service *model_service(const struct model *model, const char *name);
struct model_backend *model_backend(const struct model_pool *pool, const char *name);

/*
 * Verbs: insert (ownership of the members moves to the model on success) and delete by name, keeping the arrays
 * sorted.  -EEXIST, -ENOENT, -ENOMEM.  What may be in a model is judged by model_check() afterwards.
 */
int model_add_pool(struct model *model, struct model_pool *pool);
int model_add_backend(struct model_pool *pool, struct model_backend *backend);
int model_add_service(struct model *model, struct model_service *service);
int model_del_pool(struct model *model, const char *name);
int model_del_backend(struct model_pool *pool, const char *name);
int model_del_service(struct model *model, const char *name);

/* Bytes that encapsulation puts in front of packets to an address of the family, at most. */
uint32_t model_overhead(const struct model_pool *pool, bool v4);

/* The text of a source: an address, or a prefix.  Returns `out`. */
const char *model_source_text(const struct model_source *source, char out[static ADDR_TEXT_MAX]);
/* 0 and *out, place left as it is; -EINVAL. */
int model_source_parse(const char *text, struct model_source *out);
bool model_source_is_v4(const struct model_source *source);
/* Bits that a prefix leaves to entropy; 0: one address. */
unsigned int model_source_bits(const struct model_source *source);

/* Service entries that the service takes (1 for any-port). */
size_t model_service_entries(const struct model_service *service);

/* "80,443,8000-8099" or "any"; malloc'd, NULL if out of memory.  Parse: 0; -EINVAL or -ENOMEM, *service untouched. */
char *model_ports_text(const struct model_service *service);
int model_ports_parse(const char *text, struct model_service *service);
/* One item of them: "80" or "8000-8099".  0, or -EINVAL and *out untouched. */
int model_range_parse(const char *text, struct model_ports *out);

/* An address of an interface of this host, for model_check(). */
struct model_local {
	union shunt_address address;
	char interface[16];
	bool loopback;
};

/*
 * Everything that makes a model wrong whatever made it: missing pools, non-prime sizes (with the nearest primes),
 * weights, duplicates, two services on one address and port, settings of one address that disagree, in a document a
 * source whose family no backend has, a service on a local address without unknown-port: pass, unknown-port: pass on an
 * address that is not local, no key.  Adds one error for each, with its place, and returns -EINVAL if there was any;
 * -ENOMEM.
 */
int model_check(const struct model *model, const struct model_local *locals, size_t n_locals, struct report *report);

/*
 * As model_check(), for a change of the model in force (NULL: of none).  What is wrong in force already, because this
 * host's addresses changed since, is a warning: it must not forbid to change a weight.
 */
int model_check_change(const struct model *model, const struct model *in_force, const struct model_local *locals,
		       size_t n_locals, struct report *report);

/*
 * What a model that passed model_check() may not mean: shares off by more than 1 % of what the weights say, with
 * algorithms that give exact shares.  The engine says it too, of the backends that have a way; this is for who only
 * checks.  0 or -ENOMEM.
 */
int model_warn(const struct model *model, struct report *report);

/* The host's addresses in this network namespace.  *out is malloc'd. */
int model_locals(struct model_local **out, size_t *count);

/*
 * The model as a document in JSON (which is YAML: document_parse() reads it back).  The key, inline or read from its
 * file, is written only with MODEL_WITH_KEY, for the state file; with MODEL_KEEP_KEY an inline one becomes "keep".  New
 * reference, or NULL if out of memory.
 */
enum model_json_flags { MODEL_WITHOUT_KEY, MODEL_WITH_KEY, MODEL_KEEP_KEY };
json_t *model_json(const struct model *model, enum model_json_flags flags);

#endif
