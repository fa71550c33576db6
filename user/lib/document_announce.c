/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The document's `announce`: how service addresses are announced to the network. */
#include <linux/rtnetlink.h>
#include <stdlib.h>
#include <string.h>

#include "document_fields.h"
#include "probe.h"

static bool is_taken(uint32_t table)
{
	return table == RT_TABLE_UNSPEC || (table >= RT_TABLE_DEFAULT && table <= RT_TABLE_LOCAL) ||
	       (table >= PROBE_TABLE_FIRST && table - PROBE_TABLE_FIRST < PROBE_NUMBERS);
}

static bool read_table(struct reader *reader, const struct yaml_node *value, void *object)
{
	struct model_announce *announce = object;
	uint32_t table;

	if (!read_number(reader, value, "table", UINT32_MAX, "the number of a routing table", &table))
		return false;
	if (is_taken(table)) {
		complain_at(
			reader->report, value,
			"table is %u, which is in use for other things: give announcements a table of their own, such "
			"as 100",
			table);
		return false;
	}
	announce->table = table;
	return true;
}

#define NAME_LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-"

static bool read_hook(struct reader *reader, const struct yaml_node *value, void *object)
{
	struct model_announce *announce = object;
	char *name = NULL;
	bool good;

	if (!read_text(reader, value, "hook", &name))
		return false;
	good = *name && *name != '.' && !name[strspn(name, NAME_LETTERS)] && strlen(name) < sizeof(announce->hook);
	if (good)
		memcpy(announce->hook, name, strlen(name) + 1);
	else
		complain_at(reader->report, value,
			    "hook must be the name of a file in the hooks directory's folder \"announce\": letters, "
			    "digits, . _ "
			    "and -");
	free(name);
	return good;
}

static bool read_when(struct reader *reader, const struct yaml_node *value, void *object)
{
	struct model_announce *announce = object;
	unsigned int choice;

	if (!read_choice(reader, value, "when", model_when_names, MODEL_NR_WHENS, &choice))
		return false;
	announce->when = choice;
	return true;
}

static const struct field announce_fields[] = {
	{"table", read_table, NULL},
	{"hook", read_hook, NULL},
	{"when", read_when, NULL},
};

bool read_announce(struct reader *reader, const struct yaml_node *value, void *object)
{
	struct model *model = object;

	size_t before = reader->report->errors;

	model->announce.given = true;
	if (!read_fields(reader, value, "announce", announce_fields, sizeof(announce_fields) / sizeof(*announce_fields),
			 &model->announce))
		return false;
	if (model->announce.table || *model->announce.hook || reader->report->errors != before)
		return true;
	complain_at(reader->report, value,
		    "announce has neither table nor hook: give the number of a routing table that nothing else uses, "
		    "such as "
		    "100");
	return false;
}
