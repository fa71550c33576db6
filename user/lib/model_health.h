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
	MODEL_CHECK_UDP,
	MODEL_CHECK_DNS,
	MODEL_CHECK_EXEC,
	MODEL_NR_CHECKS
};
enum model_via { MODEL_VIA_DATA_PATH, MODEL_VIA_DIRECT, MODEL_NR_VIAS };
enum model_newcomers { MODEL_NEW_WAIT, MODEL_NEW_SERVE, MODEL_NR_NEWCOMERS };

extern const char *const model_check_names[MODEL_NR_CHECKS];
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
	char *path, *host, *match, *send, *query, *hook;
	uint32_t status_first, status_last; /* http */
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

/* All defaults. */
struct model_health model_health_default(void);

void model_health_free(struct model_health *health); /* NULL is allowed */
/* Without the place.  0 or -ENOMEM. */
int model_health_copy(const struct model_health *from, struct model_health **out);
/* As the document has it.  New reference; NULL: out of memory. */
json_t *model_health_json(const struct model_health *health);

#endif
