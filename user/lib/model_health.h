/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What a pool's document says of health checks. */
#ifndef SHUNT_MODEL_HEALTH_H
#define SHUNT_MODEL_HEALTH_H

#include <stdbool.h>
#include <stdint.h>
#include <jansson.h>

#include "health.h"

enum model_check {
	MODEL_CHECK_TCP,
	MODEL_CHECK_HTTP,
	MODEL_CHECK_HTTPS,
	MODEL_CHECK_UDP,
	MODEL_CHECK_DNS,
	MODEL_CHECK_EXEC,
	MODEL_NR_CHECKS
};
enum model_verify { MODEL_VERIFY_NONE, MODEL_VERIFY_CA, MODEL_NR_VERIFIES };
enum model_via { MODEL_VIA_DATA_PATH, MODEL_VIA_DIRECT, MODEL_NR_VIAS };
enum model_newcomers { MODEL_NEW_WAIT, MODEL_NEW_SERVE, MODEL_NR_NEWCOMERS };

extern const char *const model_check_names[MODEL_NR_CHECKS];
extern const char *const model_verify_names[MODEL_NR_VERIFIES];
extern const char *const model_via_names[MODEL_NR_VIAS];
extern const char *const model_newcomer_names[MODEL_NR_NEWCOMERS];
extern const char *const model_last_names[HEALTH_NR_LASTS];

struct model_health {
	enum model_check type;
	enum model_via via;
	uint32_t port;		    /* 0: that of the service */
	uint32_t interval, timeout; /* milliseconds */
	uint32_t rise, fall;
	uint32_t hold_down, hold_down_max; /* milliseconds */
	uint32_t packet_size;		   /* bytes; 0: as it comes */
	uint32_t panic;			   /* per cent */
	enum health_last last;
	enum model_newcomers newcomers;
	/* By type; NULL where it does not apply or is not given. */
	char *path, *host, *match, *send, *query, *hook, *sni, *ca_file;
	uint32_t status_first, status_last; /* http, https */
	enum model_verify verify;	    /* https */
	unsigned int line, column;	    /* of the mapping; 0: a verb's */
};

#define MODEL_HEALTH_INTERVAL 2000u
#define MODEL_HEALTH_TIMEOUT 1000u
#define MODEL_HEALTH_RISE 2u
#define MODEL_HEALTH_FALL 3u
#define MODEL_HEALTH_HOLD_DOWN 10000u
#define MODEL_HEALTH_HOLD_DOWN_MAX 600000u
#define MODEL_HEALTH_PANIC 50u
#define MODEL_HEALTH_TEXT_MAX 1000u /* bytes of a text */
#define MODEL_HEALTH_SIZE_MAX 9216u /* of a packet */
#define MODEL_SERVER_NAME_MAX 253u  /* bytes (RFC 1035, 2.3.4) */

/* Whether it goes over TCP, and whether it speaks HTTP. */
bool model_check_streams(enum model_check type);
bool model_check_speaks_http(enum model_check type);

/*
 * The name or the address that a server has in TLS: `sni`, else `host` without its port.  Empty: none is given, or it
 * is too long for one.
 */
void model_health_server_name(const struct model_health *health, char out[static MODEL_SERVER_NAME_MAX + 1]);

/* All defaults. */
struct model_health model_health_default(void);

void model_health_free(struct model_health *health); /* NULL is allowed */
/* Without the place.  0 or -ENOMEM. */
int model_health_copy(const struct model_health *from, struct model_health **out);
/* As the document has it.  New reference; NULL: out of memory. */
json_t *model_health_json(const struct model_health *health);

#endif
