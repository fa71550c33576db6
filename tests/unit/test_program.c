/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What loading says when the object is not there or is none.  Loading itself is tested by the suites on the kernel. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "program.h"

static void expect(const char *dir, int error, const char *part)
{
	struct bpf_object *object = NULL;
	struct report report = {};
	struct maps maps = {};
	int fd = -7;

	assert_int_equal(program_load(PROGRAM_LB, dir, &(struct program_options){}, &maps, &object, &fd, &report),
			 error);
	assert_null(object);
	assert_int_equal(fd, -7);
	assert_int_equal(report.count, 1);
	assert_non_null(strstr(report.entries[0].text, part));
	report_free(&report);
}

static void a_folder_without_objects(void **state)
{
	(void)state;
	expect("/nonexistent", -ENOENT, "/nonexistent: no readable shunt.bpf.o there");
}

static void no_folder_named(void **state)
{
	(void)state;
	unsetenv("SHUNT_OBJECT_DIR");
	expect(NULL, -ENOENT, "make install");
	setenv("SHUNT_OBJECT_DIR", "/nonexistent-2", 1);
	expect(NULL, -ENOENT, "/nonexistent-2: no readable");
	unsetenv("SHUNT_OBJECT_DIR");
}

static void a_file_that_is_no_object(void **state)
{
	char dir[] = "/tmp/shunt-unit-XXXXXX", path[64];
	FILE *file;

	(void)state;
	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/shunt.bpf.o", dir);
	file = fopen(path, "w");
	fputs("not an ELF file\n", file);
	fclose(file);
	expect(dir, -EINVAL, "is no BPF object");
	unlink(path);
	rmdir(dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_folder_without_objects),
		cmocka_unit_test(no_folder_named),
		cmocka_unit_test(a_file_that_is_no_object),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
