/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "document_fields.h"

static bool read_ttl_exceeded(struct reader *reader, const struct yaml_node *value, void *object)
{
	struct model_settings *settings = object;
	unsigned int choice;

	if (!read_choice(reader, value, "ttl-exceeded", model_ttl_exceeded_names, MODEL_NR_TTL_EXCEEDED, &choice))
		return false;
	settings->ttl_exceeded = choice;
	return true;
}

static bool read_too_big(struct reader *reader, const struct yaml_node *value, void *object)
{
	struct model_settings *settings = object;
	unsigned int choice;

	if (!read_choice(reader, value, "too-big-without-df", model_too_big_names, MODEL_NR_TOO_BIG, &choice))
		return false;
	settings->too_big_without_df = choice;
	return true;
}

static bool read_error_rate(struct reader *reader, const struct yaml_node *value, void *object)
{
	struct model_settings *settings = object;

	return read_number(reader, value, "error-rate", MODEL_ERROR_RATE_MAX, "a whole number from 0 to 1000000",
			   &settings->error_rate);
}

static const struct field settings_fields[] = {
	{"ttl-exceeded", read_ttl_exceeded, NULL},
	{"too-big-without-df", read_too_big, NULL},
	{"error-rate", read_error_rate, NULL},
};

bool read_settings(struct reader *reader, const struct yaml_node *value, void *object)
{
	struct model *model = object;

	return read_fields(reader, value, "settings", settings_fields,
			   sizeof(settings_fields) / sizeof(*settings_fields), &model->settings);
}
