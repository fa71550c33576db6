/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* list, show and del are alike for services, pools and backends. */
#ifndef SHUNT_CTL_OBJECT_H
#define SHUNT_CTL_OBJECT_H

#include "ctl.h"

struct ctl_object {
	const char *kind;   /* "service": for sentences */
	const char *method; /* of its list: "ServiceList" */
	const char *rows;   /* member of the reply: "services" */
	const char *word;   /* "NAME", or "POOL/BACKEND" */
	const char *list_doc, *show_doc, *del_doc;
	const char *del_method;
	const struct ctl_column *list, *show;
	size_t n_list, n_show;
	/* Put a word into the parameters; false if it is not of the right shape. */
	bool (*name)(json_t *parameters, const char *word);
};

int ctl_object_list(const struct ctl_object *object, int argc, char **argv);
int ctl_object_show(const struct ctl_object *object, int argc, char **argv);
int ctl_object_del(const struct ctl_object *object, int argc, char **argv);

/* For `name`: any word is one. */
bool ctl_object_name(json_t *parameters, const char *word);

#endif
