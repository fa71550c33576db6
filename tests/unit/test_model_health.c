/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "model_health.h"

static void expect_name(const char *host, const char *sni, const char *name)
{
	struct model_health health = {.type = MODEL_CHECK_HTTPS, .host = (char *)host, .sni = (char *)sni};
	char out[MODEL_SERVER_NAME_MAX + 1];

	model_health_server_name(&health, out);
	assert_string_equal(out, name);
}

static void a_server_is_called_as_its_host(void **state)
{
	(void)state;
	expect_name(NULL, NULL, "");
	expect_name("www.example.com", NULL, "www.example.com");
	expect_name("www.example.com:8443", NULL, "www.example.com");
	expect_name("192.0.2.1:8443", NULL, "192.0.2.1");
	expect_name("[2001:db8::1]:8443", NULL, "2001:db8::1");
	expect_name("[2001:db8::1]", NULL, "2001:db8::1");
	expect_name("2001:db8::1", NULL, "2001:db8::1");
	expect_name("www.example.com:8443", "other.example.com", "other.example.com");
	expect_name(":80", NULL, "");
	expect_name("[", NULL, "");
	expect_name("[]", NULL, "");
}

static void a_name_that_is_too_long_is_none(void **state)
{
	char host[MODEL_SERVER_NAME_MAX + 2];

	(void)state;
	memset(host, 'a', sizeof(host) - 1);
	host[sizeof(host) - 1] = '\0';
	expect_name(host, NULL, "");
	expect_name(host + 1, NULL, host + 1); /* as long as may be */
}

static void copies_and_documents_have_all(void **state)
{
	struct model_health health = model_health_default(), *copy;
	json_t *first, *second;

	(void)state;
	health.type = MODEL_CHECK_HTTPS;
	health.verify = MODEL_VERIFY_CA;
	health.host = (char *)"www.example.com";
	health.sni = (char *)"other.example.com";
	health.ca_file = (char *)"/etc/ca.pem";
	assert_int_equal(model_health_copy(&health, &copy), 0);
	first = model_health_json(&health);
	second = model_health_json(copy);
	assert_true(json_equal(first, second));
	assert_string_equal(json_string_value(json_object_get(first, "sni")), "other.example.com");
	assert_string_equal(json_string_value(json_object_get(first, "ca-file")), "/etc/ca.pem");
	assert_string_equal(json_string_value(json_object_get(first, "verify")), "ca");
	assert_true(copy->sni != health.sni && copy->ca_file != health.ca_file);
	json_decref(first);
	json_decref(second);
	model_health_free(copy);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_server_is_called_as_its_host),
		cmocka_unit_test(a_name_that_is_too_long_is_none),
		cmocka_unit_test(copies_and_documents_have_all),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
