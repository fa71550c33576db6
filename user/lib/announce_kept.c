/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <jansson.h>
#include <xxhash.h>

#include "addr.h"
#include "announce_kept.h"
#include "file.h"

#define FORMAT 1
#define FILE_MAX (4u << 20)
#define SUM 17u /* 16 hexadecimal digits and a space */

bool announce_mode_parse(const char *word, enum attach_mode *out)
{
	static const enum attach_mode modes[] = {ATTACH_NATIVE, ATTACH_GENERIC};

	for (size_t i = 0; word && i < sizeof(modes) / sizeof(modes[0]); i++) {
		if (strcmp(word, attach_mode_name(modes[i])) != 0)
			continue;
		*out = modes[i];
		return true;
	}
	return false;
}

/* ---- save ---- */

static json_t *drain_json(const struct announce_kept *kept)
{
	json_t *drain, *interfaces = json_array();
	int failed = 0;

	if (!kept->drained.time) {
		json_decref(interfaces);
		return json_null();
	}
	for (size_t i = 0; i < kept->n_interfaces; i++)
		failed |= json_array_append_new(interfaces,
						json_pack("{s:s, s:s}", "interface", kept->interfaces[i].name, "mode",
							  attach_mode_name(kept->interfaces[i].mode)));
	drain = json_pack("{s:o}", "interfaces", interfaces);
	failed |= !drain || origin_set_json(drain, &kept->drained);
	if (!failed)
		return drain;
	json_decref(drain);
	return NULL;
}

static json_t *up_json(const struct announce_kept *kept)
{
	json_t *array = json_array();
	char text[ADDR_TEXT_MAX];
	int failed = 0;

	for (size_t i = 0; i < kept->n_up; i++)
		failed |= json_array_append_new(array, json_string(addr_format(&kept->up[i], text)));
	if (!failed)
		return array;
	json_decref(array);
	return NULL;
}

/* One line without its end; NULL if out of memory. */
static char *encode(const struct announce_kept *kept)
{
	json_t *tables = json_array(), *object;
	int failed = 0;
	char *text;

	for (size_t i = 0; i < kept->n_tables; i++)
		failed |= json_array_append_new(tables, json_integer(kept->tables[i]));
	object = json_pack("{s:i, s:o, s:s, s:o, s:o}", "format", FORMAT, "tables", tables, "hook", kept->hook, "up",
			   up_json(kept), "drain", drain_json(kept));
	text = failed ? NULL : json_dumps(object, JSON_COMPACT);
	json_decref(object);
	return text;
}

static void write_sum(char out[static SUM + 1], const char *text, size_t length)
{
	snprintf(out, SUM + 1, "%016" PRIx64 " ", XXH64(text, length, 0));
}

int announce_kept_save(const char *dir, const struct announce_kept *kept, struct report *report)
{
	char *text = encode(kept), sum[SUM + 1], end[] = "\n";
	struct iovec parts[] = {{sum, SUM}, {text, text ? strlen(text) : 0}, {end, 1}};
	int ret = text ? 0 : -ENOMEM, fd = -1;

	if (!ret) {
		write_sum(sum, text, strlen(text));
		fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		ret = fd < 0 ? -errno : file_replace(fd, ANNOUNCE_FILE, parts, 3);
	}
	if (!ret && fsync(fd))
		ret = -errno;
	if (fd >= 0)
		close(fd);
	free(text);
	return ret ? report_error(report, ret, "cannot write %s/" ANNOUNCE_FILE ": %s", dir, strerror(-ret)) : 0;
}

/* ---- load ---- */

static bool decode_tables(const json_t *array, struct announce_kept *kept)
{
	if (!json_is_array(array) || json_array_size(array) > ANNOUNCE_TABLES)
		return false;
	for (size_t i = 0; i < json_array_size(array); i++) {
		json_int_t table = json_integer_value(json_array_get(array, i));

		if (table <= 0 || table > UINT32_MAX)
			return false;
		kept->tables[kept->n_tables++] = (uint32_t)table;
	}
	return true;
}

static bool decode_hook(const json_t *object, struct announce_kept *kept)
{
	const char *hook = json_string_value(json_object_get(object, "hook"));
	const json_t *up = json_object_get(object, "up");

	if (!hook || strlen(hook) >= sizeof(kept->hook) || !json_is_array(up))
		return false;
	memcpy(kept->hook, hook, strlen(hook) + 1);
	kept->up = calloc(json_array_size(up) + 1, sizeof(*kept->up));
	for (size_t i = 0; kept->up && i < json_array_size(up); i++) {
		const char *text = json_string_value(json_array_get(up, i));

		if (!text || addr_parse(text, &kept->up[i]))
			return false;
		kept->n_up++;
	}
	return kept->up;
}

static bool decode_drain(const json_t *drain, struct announce_kept *kept)
{
	const json_t *interfaces = json_object_get(drain, "interfaces");

	if (json_is_null(drain))
		return true;
	if (origin_from_json(drain, &kept->drained) || !kept->drained.time || !json_is_array(interfaces) ||
	    json_array_size(interfaces) > ANNOUNCE_INTERFACES)
		return false;
	for (size_t i = 0; i < json_array_size(interfaces); i++) {
		struct announce_interface *to = &kept->interfaces[kept->n_interfaces++];
		const json_t *from = json_array_get(interfaces, i);
		const char *name = json_string_value(json_object_get(from, "interface"));

		if (!name || strlen(name) >= sizeof(to->name) ||
		    !announce_mode_parse(json_string_value(json_object_get(from, "mode")), &to->mode))
			return false;
		memcpy(to->name, name, strlen(name) + 1);
	}
	return true;
}

static bool decode(const char *text, size_t length, struct announce_kept *out)
{
	struct announce_kept kept = {};
	char sum[SUM + 1];
	json_t *object;
	bool good;

	if (length < SUM + 1 || text[length - 1] != '\n')
		return false;
	write_sum(sum, text + SUM, length - SUM - 1);
	if (memcmp(sum, text, SUM) != 0)
		return false;
	object = json_loadb(text + SUM, length - SUM - 1, JSON_REJECT_DUPLICATES, NULL);
	good = json_integer_value(json_object_get(object, "format")) == FORMAT &&
	       decode_tables(json_object_get(object, "tables"), &kept) && decode_hook(object, &kept) &&
	       decode_drain(json_object_get(object, "drain"), &kept);
	json_decref(object);
	if (good)
		*out = kept;
	else
		free(kept.up);
	return good;
}

int announce_kept_load(const char *dir, struct announce_kept *out, struct report *report)
{
	size_t length = 0;
	char *path, *text;
	int ret;

	if (asprintf(&path, "%s/" ANNOUNCE_FILE, dir) < 0)
		return -ENOMEM;
	text = file_read(path, FILE_MAX, &length, &ret);
	if (text && !decode(text, length, out))
		ret = -EUCLEAN;
	if (ret == -ENOENT) {
		*out = (struct announce_kept){};
		ret = 0;
	} else if (ret == -EUCLEAN) {
		report_error(report, ret,
			     "%s is damaged, so that announcements stay as they are: \"shuntctl self undrain\" or "
			     "\"shuntctl self drain\" says what shall be, and writes it anew",
			     path);
	} else if (ret) {
		report_error(report, ret, "cannot read %s: %s", path, strerror(-ret));
	}
	free(text);
	free(path);
	return ret;
}
