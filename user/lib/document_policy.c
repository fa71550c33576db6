/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The document's policy: what a change may do without --force. */
#include <stdlib.h>
#include <string.h>

#include "document_fields.h"

static bool read_max_moved(struct reader *reader, const struct yaml_node *value, void *object)
{
	struct model_policy *policy = object;
	char *end = NULL;
	unsigned long percent = 0;

	if (value->kind == YAML_SCALAR && *value->text >= '0' && *value->text <= '9')
		percent = strtoul(value->text, &end, 10);
	if (!end || strcmp(end, "%") != 0 || percent > 100) {
		complain_at(
			reader->report, value,
			"max-moved is not a percentage: write a whole number from 0 to 100 and \"%%\", such as 30%%");
		return false;
	}
	policy->has_max_moved = true;
	policy->max_moved_percent = (uint32_t)percent;
	return true;
}

static bool read_max_leaving(struct reader *reader, const struct yaml_node *value, void *object)
{
	struct model_policy *policy = object;

	policy->has_max_leaving = read_number(reader, value, "max-leaving", SHUNT_BACKENDS_MAX,
					      "how many backends may leave at once", &policy->max_leaving);
	return policy->has_max_leaving;
}

static bool read_allow_empty(struct reader *reader, const struct yaml_node *value, void *object)
{
	static const char *const words[] = {"false", "true"};
	struct model_policy *policy = object;
	unsigned int index;

	if (!read_choice(reader, value, "allow-empty", words, 2, &index))
		return false;
	policy->allow_empty = index;
	return true;
}

static const struct field policy_fields[] = {
	{"max-moved", read_max_moved, NULL},
	{"max-leaving", read_max_leaving, NULL},
	{"allow-empty", read_allow_empty, NULL},
};

bool read_policy(struct reader *reader, const struct yaml_node *value, void *object)
{
	struct model *model = object;

	model->policy.given = true;
	return read_fields(reader, value, "policy", policy_fields, sizeof(policy_fields) / sizeof(*policy_fields),
			   &model->policy);
}
