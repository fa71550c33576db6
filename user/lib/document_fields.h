/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the files of the document reader share; for nobody else. */
#ifndef SHUNT_DOCUMENT_FIELDS_H
#define SHUNT_DOCUMENT_FIELDS_H

#include "model.h"
#include "report.h"
#include "yaml.h"

struct reader {
	struct model *model;
	struct report *report;
	bool no_memory; /* reading ends with -ENOMEM */
};

/* An error at a node. */
#define complain_at(report, node, ...) report_add(report, REPORT_ERROR, (node)->line, (node)->column, __VA_ARGS__)

/* Notes that memory ran out; returns false. */
bool reader_no_memory(struct reader *reader);

/* Room for one more element at the end of an array that is filled one by one; NULL if out of memory (noted). */
void *reader_append(struct reader *reader, void **array, size_t count, size_t size);

/* Readers of values: true and the outputs set; false, outputs untouched, with an error in the report. */
typedef bool field_fn(struct reader *reader, const struct yaml_node *value, void *object);

#define FIELDS_MAX 32 /* in one mapping */

/* A key of a mapping. */
struct field {
	const char *name;
	field_fn *read;	    /* NULL: not a key, but people try it: `remedy` says why not */
	const char *remedy; /* where the key is missing; NULL: it has a default */
};

/*
 * Read a mapping into `object`, listing all that is wrong with it.  False where it is no mapping, or where a field that
 * has no default is missing or wrong, so that the object is of no use.
 */
bool read_fields(struct reader *reader, const struct yaml_node *node, const char *what, const struct field *fields,
		 size_t n, void *object);

/* Each item of a list; `what` names the list.  False where it is no list; else the items' own affair. */
typedef void item_fn(struct reader *reader, const struct yaml_node *item, void *object);
bool read_list(struct reader *reader, const struct yaml_node *node, const char *what, item_fn *read, void *object);

bool read_text(struct reader *reader, const struct yaml_node *node, const char *what, char **out);

/* A whole number from 0 to max; `range` is what to write, in words. */
bool read_number(struct reader *reader, const struct yaml_node *node, const char *what, uint32_t max, const char *range,
		 uint32_t *out);

/* A number of at most two decimals, in hundredths. */
bool read_percent(struct reader *reader, const struct yaml_node *node, const char *what, uint32_t min, uint32_t max,
		  const char *range, uint32_t *out);
/* In milliseconds; range: what to write, in words. */
bool read_duration_in(struct reader *reader, const struct yaml_node *node, const char *what, uint32_t min, uint32_t max,
		      const char *range, uint32_t *out);
/* From MODEL_DURATION_MIN to MODEL_DURATION_MAX milliseconds. */
bool read_duration(struct reader *reader, const struct yaml_node *node, const char *what, uint32_t *out);
bool read_address(struct reader *reader, const struct yaml_node *node, const char *what, union shunt_address *out);

/* One of `names`: its index. */
bool read_choice(struct reader *reader, const struct yaml_node *node, const char *what, const char *const *names,
		 size_t n, unsigned int *out);

struct model_place node_place(const struct yaml_node *node);

bool read_health(struct reader *reader, const struct yaml_node *value, struct model_health **out);

field_fn read_pools, read_services, read_policy, read_settings, read_announce;
field_fn read_encapsulation; /* object: struct model_pool */

#endif
