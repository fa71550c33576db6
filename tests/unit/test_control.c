/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

#include "control.h"

static char why[CONTROL_WHY_MAX];

/* ---- framing ---- */

static void a_path_names_the_instance(void **state)
{
	char path[CONTROL_PATH_MAX] = "untouched", name[200];

	(void)state;
	memset(name, 'a', sizeof(name));
	name[sizeof(name) - 1] = '\0';
	assert_int_equal(control_path(name, path), -ENAMETOOLONG);
	assert_string_equal(path, "untouched");
	assert_int_equal(control_path("blue", path), 0);
	assert_string_equal(path, "/run/shunt/blue/control.sock");
}

/* Feeds in pieces of `piece` bytes and returns how many messages came out, each checked to be {"n": i}. */
static int messages_by_pieces(const char *stream, size_t length, size_t piece)
{
	struct control_decoder decoder;
	json_t *message;
	int count = 0;

	control_decoder_init(&decoder, 100);
	for (size_t at = 0; at < length; at += piece) {
		assert_int_equal(control_decoder_feed(&decoder, stream + at, piece < length - at ? piece : length - at),
				 0);
		while (control_decoder_next(&decoder, &message, why) == 1) {
			assert_int_equal(json_integer_value(json_object_get(message, "n")), count);
			json_decref(message);
			count++;
		}
	}
	assert_false(control_decoder_partial(&decoder));
	control_decoder_free(&decoder);
	return count;
}

static void messages_come_out_whatever_the_pieces(void **state)
{
	static const char stream[] =
		"{\"n\":0}\0{\"n\":1}\0  {\"n\" : 2}\n\0{\"n\":3,\"long\":\"xxxxxxxxxxxxxxxxxxx\"}";

	(void)state;
	for (size_t piece = 1; piece <= sizeof(stream); piece++)
		assert_int_equal(messages_by_pieces(stream, sizeof(stream), piece), 4);
}

static void half_a_message_is_no_message(void **state)
{
	struct control_decoder decoder;
	json_t *message = NULL;

	(void)state;
	control_decoder_init(&decoder, 100);
	assert_int_equal(control_decoder_next(&decoder, &message, why), 0);
	assert_int_equal(control_decoder_feed(&decoder, "{\"n\":0}", 7), 0);
	assert_int_equal(control_decoder_next(&decoder, &message, why), 0);
	assert_true(control_decoder_partial(&decoder));
	assert_int_equal(control_decoder_feed(&decoder, "", 0), 0);
	assert_int_equal(control_decoder_next(&decoder, &message, why), 0);
	assert_null(message);
	control_decoder_free(&decoder);
}

static void the_limit_counts_the_message_alone(void **state)
{
	struct control_decoder decoder;
	json_t *message = NULL;

	(void)state;
	control_decoder_init(&decoder, 7);
	assert_int_equal(control_decoder_feed(&decoder, "{\"n\":1}\0{\"n\":2}\0{\"n\":33}", 24), 0);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(control_decoder_next(&decoder, &message, why), 1);
		json_decref(message);
	}
	message = NULL;
	assert_int_equal(control_decoder_next(&decoder, &message, why), -EMSGSIZE);
	assert_int_equal(control_decoder_next(&decoder, &message, why), -EMSGSIZE);
	assert_null(message);
	control_decoder_free(&decoder);
}

static void an_endless_message_is_refused_before_it_ends(void **state)
{
	struct control_decoder decoder;
	char block[4096];
	json_t *message;
	int err = 0;

	(void)state;
	memset(block, '[', sizeof(block));
	control_decoder_init(&decoder, CONTROL_REQUEST_MAX);
	for (size_t fed = 0; !err; fed += sizeof(block)) {
		assert_true(fed <= CONTROL_REQUEST_MAX + sizeof(block));
		assert_int_equal(control_decoder_feed(&decoder, block, sizeof(block)), 0);
		err = control_decoder_next(&decoder, &message, why);
	}
	assert_int_equal(err, -EMSGSIZE);
	assert_true(decoder.capacity <= 4 * CONTROL_REQUEST_MAX);
	control_decoder_free(&decoder);
}

static void refuse(const char *text, size_t length)
{
	struct control_decoder decoder;
	json_t *message = NULL;

	control_decoder_init(&decoder, CONTROL_REQUEST_MAX);
	assert_int_equal(control_decoder_feed(&decoder, text, length), 0);
	assert_int_equal(control_decoder_feed(&decoder, "\0{\"n\":1}", 9), 0);
	why[0] = '\0';
	assert_int_equal(control_decoder_next(&decoder, &message, why), -EBADMSG);
	assert_null(message);
	assert_true(strlen(why) > 0);
	/* The stream goes on with the next message. */
	assert_int_equal(control_decoder_next(&decoder, &message, why), 1);
	assert_int_equal(json_integer_value(json_object_get(message, "n")), 1);
	json_decref(message);
	control_decoder_free(&decoder);
}

static void what_is_no_object_is_refused_and_skipped(void **state)
{
	static const char *const bad[] = {
		"",
		" ",
		"{",
		"}",
		"[]",
		"[{\"method\": \"x\"}]",
		"null",
		"\"text\"",
		"7",
		"{} {}",
		"{\"a\": 1, \"a\": 2}",
		"{\"a\": \"\\u0000\"}",
		"{\"a\": 99999999999999999999}",
		"{\"a\": 1e999}",
		"{\"a\": \"\xff\"}",
		"{\"a\": \"\xc0\x80\"}",
		"{\"a\": \"\xed\xa0\x80\"}",
		"{\"a\": \"\\ud800\"}",
		"{'a': 1}",
		"{\"a\": nan}",
		"{\"a\": 1,}",
		"GET / HTTP/1.1\r\n\r\n",
	};
	static char deep[100000];

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		refuse(bad[i], strlen(bad[i]));
	memset(deep, '[', sizeof(deep));
	memcpy(deep, "{\"a\":", 5);
	refuse(deep, sizeof(deep));
}

/* A seeded walk: any bytes in any pieces; what comes out is an object, memory stays bounded, no error is invented. */
static void random_bytes_break_nothing(void **state)
{
	static const char alphabet[] = "{}[]\"n:0,\\u\xff\0\0 ";
	struct control_decoder decoder;
	json_t *message;

	(void)state;
	srandom(7);
	control_decoder_init(&decoder, 64);
	for (int i = 0; i < 200000; i++) {
		char bytes[40];
		size_t n = (size_t)random() % sizeof(bytes);
		int err;

		for (size_t j = 0; j < n; j++)
			bytes[j] = alphabet[(size_t)random() % (sizeof(alphabet) - 1)];
		assert_int_equal(control_decoder_feed(&decoder, bytes, n), 0);
		while ((err = control_decoder_next(&decoder, &message, why))) {
			if (err == -EMSGSIZE) {
				control_decoder_free(&decoder);
				break;
			}
			assert_true(err == 1 || err == -EBADMSG);
			if (err == 1) {
				assert_true(json_is_object(message));
				json_decref(message);
			}
		}
		assert_true(decoder.capacity <= 4096);
	}
	control_decoder_free(&decoder);
}

static void encoding_ends_with_nul_and_respects_the_limit(void **state)
{
	json_t *message = json_pack("{s:s}", "a", "\xc3\xa9");
	size_t length = 77;
	char *text = NULL;

	(void)state;
	assert_int_equal(control_encode(message, 9, &text, &length), -EMSGSIZE);
	assert_null(text);
	assert_int_equal(length, 77);
	assert_int_equal(control_encode(message, 10, &text, &length), 0);
	assert_int_equal(length, 11);
	assert_memory_equal(text, "{\"a\":\"\xc3\xa9\"}", 11);
	free(text);
	json_decref(message);
}

/* ---- envelopes ---- */

static void a_request_is_judged_as_it_was_made(void **state)
{
	json_t *message = control_request("PoolList", json_pack("{s:s}", "name", "web"));
	const json_t *parameters = NULL;
	enum control_error error;
	const char *method = NULL;

	(void)state;
	assert_int_equal(control_request_parse(message, &method, &parameters, &error, why), 0);
	assert_string_equal(method, "PoolList");
	assert_string_equal(json_string_value(json_object_get(parameters, "name")), "web");
	json_decref(message);

	message = control_request("Status", NULL);
	assert_int_equal(control_request_parse(message, &method, &parameters, &error, why), 0);
	assert_string_equal(method, "Status");
	assert_null(parameters);
	json_decref(message);
}

static void wrong_requests_are_answered_by_kind(void **state)
{
	static const struct {
		const char *text;
		enum control_error error;
		const char *says;
	} cases[] = {
		{"{}", CONTROL_BAD_REQUEST, "method"},
		{"{\"method\": 1, \"version\": 1}", CONTROL_BAD_REQUEST, "method"},
		{"{\"method\": \"shunt.control.Status\"}", CONTROL_BAD_REQUEST, "version"},
		{"{\"method\": \"shunt.control.Status\", \"version\": \"1\"}", CONTROL_BAD_REQUEST, "version"},
		{"{\"method\": \"shunt.control.Status\", \"version\": 1.0}", CONTROL_BAD_REQUEST, "version"},
		{"{\"method\": \"shunt.control.Status\", \"version\": 2}", CONTROL_VERSION_MISMATCH, "version 2"},
		{"{\"method\": \"shunt.control.Status\", \"version\": 4294967297}", CONTROL_VERSION_MISMATCH,
		 "version 4294967297"},
		{"{\"method\": \"shunt.control.Status\", \"version\": 1, \"parameters\": []}", CONTROL_BAD_REQUEST,
		 "parameters"},
		{"{\"method\": \"shunt.control.Status\", \"version\": 1, \"parameters\": null}", CONTROL_BAD_REQUEST,
		 "parameters"},
		{"{\"method\": \"org.varlink.service.GetInfo\", \"version\": 1}", CONTROL_UNKNOWN_METHOD,
		 "org.varlink.service.GetInfo"},
		{"{\"method\": \"Status\", \"version\": 1}", CONTROL_UNKNOWN_METHOD, "Status"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		json_t *message = json_loads(cases[i].text, 0, NULL);
		const json_t *parameters = message;
		enum control_error error = CONTROL_NR_ERRORS;
		const char *method = "untouched";

		assert_int_equal(control_request_parse(message, &method, &parameters, &error, why), -EINVAL);
		assert_int_equal(error, cases[i].error);
		assert_non_null(strstr(why, cases[i].says));
		assert_string_equal(method, "untouched");
		assert_ptr_equal(parameters, message);
		json_decref(message);
	}
}

static void a_version_mismatch_names_both_numbers(void **state)
{
	json_t *message = json_pack("{s:s, s:i}", "method", "shunt.control.Status", "version", 41);
	const json_t *parameters;
	enum control_error error;
	const char *method;
	char ours[16];

	(void)state;
	snprintf(ours, sizeof(ours), "version %d", CONTROL_VERSION);
	assert_int_equal(control_request_parse(message, &method, &parameters, &error, why), -EINVAL);
	assert_non_null(strstr(why, "version 41"));
	assert_non_null(strstr(why, ours));
	json_decref(message);
}

static void replies_are_judged_as_they_were_made(void **state)
{
	const json_t *parameters = NULL;
	const char *error = NULL;
	json_t *message;

	(void)state;
	message = control_reply(json_pack("{s:b}", "changed", 1));
	assert_int_equal(control_reply_parse(message, &error, &parameters, why), 0);
	assert_true(json_is_true(json_object_get(parameters, "changed")));
	json_decref(message);
	message = control_reply(NULL);
	assert_int_equal(control_reply_parse(message, &error, &parameters, why), 0);
	assert_int_equal(json_object_size(parameters), 0);
	json_decref(message);
	for (int i = 0; i < CONTROL_NR_ERRORS; i++) {
		message = control_error_reply((enum control_error)i, "no", NULL);
		assert_int_equal(control_reply_parse(message, &error, &parameters, why), 1);
		assert_string_equal(error, control_error_name((enum control_error)i));
		assert_string_equal(json_string_value(json_object_get(parameters, "message")), "no");
		assert_int_equal(json_array_size(json_object_get(parameters, "entries")), 0);
		json_decref(message);
	}
}

static void an_error_reply_carries_the_report(void **state)
{
	const json_t *parameters = NULL, *entry;
	struct report report = {};
	const char *error = NULL;
	json_t *message;

	(void)state;
	report_add(&report, REPORT_WARNING, 4, 1, "odd");
	report_add(&report, REPORT_ERROR, 3, 9, "no pool \"%s\"", "web\xff");
	message = control_error_reply(CONTROL_INVALID, "not a text: \xc3", control_entries(&report));
	assert_int_equal(control_reply_parse(message, &error, &parameters, why), 1);
	assert_string_equal(json_string_value(json_object_get(parameters, "message")), "not a text: ?");
	assert_int_equal(json_array_size(json_object_get(parameters, "entries")), 2);
	entry = json_array_get(json_object_get(parameters, "entries"), 0);
	assert_string_equal(json_string_value(json_object_get(entry, "level")), "error");
	assert_string_equal(json_string_value(json_object_get(entry, "text")), "no pool \"web?\"");
	assert_int_equal(json_integer_value(json_object_get(entry, "line")), 3);
	assert_int_equal(json_integer_value(json_object_get(entry, "column")), 9);
	entry = json_array_get(json_object_get(parameters, "entries"), 1);
	assert_string_equal(json_string_value(json_object_get(entry, "level")), "warning");
	json_decref(message);
	report_free(&report);
}

static void replies_of_others_are_no_replies(void **state)
{
	static const char *const bad[] = {
		"{}",
		"{\"parameters\": null}",
		"{\"parameters\": []}",
		"{\"error\": \"shunt.control.Invalid\"}",
		"{\"error\": \"org.varlink.service.MethodNotFound\", \"parameters\": {}}",
		"{\"error\": 7, \"parameters\": {}}",
		"{\"error\": null, \"parameters\": {}}",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		json_t *message = json_loads(bad[i], 0, NULL);
		const json_t *parameters = NULL;
		const char *error = NULL;

		assert_int_equal(control_reply_parse(message, &error, &parameters, why), -EPROTO);
		assert_null(parameters);
		assert_null(error);
		json_decref(message);
	}
}

/* ---- client, against a server in a child process ---- */

struct server {
	char dir[32], path[64];
	int listener;
	pid_t child;
};

/* The child accepts one connection, reads a request (unless answer is NULL), writes the answer, waits, closes. */
static void serve(struct server *server, const char *answer, size_t length, size_t piece, unsigned int wait_ms)
{
	char bytes[4096];
	int fd = accept(server->listener, NULL, NULL);

	if (answer && read(fd, bytes, sizeof(bytes)) <= 0)
		_exit(1);
	for (size_t at = 0; answer && at < length; at += piece) {
		if (send(fd, answer + at, piece < length - at ? piece : length - at, MSG_NOSIGNAL) < 0)
			break;
		if (piece == 1)
			usleep(20000);
	}
	usleep(wait_ms * 1000);
	_exit(0);
}

static void start(struct server *server, const char *answer, size_t length, size_t piece, unsigned int wait_ms)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};

	strcpy(server->dir, "/tmp/control-XXXXXX");
	assert_non_null(mkdtemp(server->dir));
	snprintf(server->path, sizeof(server->path), "%s/sock", server->dir);
	strcpy(address.sun_path, server->path);
	server->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(server->listener, (struct sockaddr *)&address, sizeof(address)), 0);
	assert_int_equal(listen(server->listener, 1), 0);
	server->child = fork();
	assert_true(server->child >= 0);
	if (!server->child)
		serve(server, answer, length, piece, wait_ms);
}

static void stop(struct server *server)
{
	close(server->listener);
	assert_int_equal(waitpid(server->child, NULL, 0), server->child);
	unlink(server->path);
	rmdir(server->dir);
}

static int64_t milliseconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Calls and expects `err` with a sentence that has `says`. */
static void call_fails(const char *path, unsigned int timeout_ms, int err, const char *says)
{
	json_t *request = control_request("Status", NULL), *reply = NULL;
	struct report report = {};
	int64_t before = milliseconds();

	assert_int_equal(control_call(path, request, timeout_ms, &reply, &report), err);
	assert_true(milliseconds() - before < timeout_ms + 2000);
	assert_null(reply);
	assert_int_equal(report.errors, 1);
	assert_non_null(strstr(report.entries[0].text, says));
	json_decref(request);
	report_free(&report);
}

static void a_call_brings_the_reply(void **state)
{
	static const char answer[] = "{\"parameters\": {\"pid\": 7}}";
	struct server server;
	json_t *request = control_request("Status", NULL), *reply = NULL;
	const json_t *parameters = NULL;
	const char *error = NULL;

	(void)state;
	start(&server, answer, sizeof(answer), 5, 0);
	assert_int_equal(control_call(server.path, request, 5000, &reply, NULL), 0);
	assert_int_equal(control_reply_parse(reply, &error, &parameters, why), 0);
	assert_int_equal(json_integer_value(json_object_get(parameters, "pid")), 7);
	json_decref(reply);
	json_decref(request);
	stop(&server);
}

static void a_daemon_that_is_not_there(void **state)
{
	struct server server;

	(void)state;
	call_fails("/run/shunt/none-such/control.sock", 1000, -ENOTCONN, "no shuntd listens");
	/* A socket that a killed daemon left behind. */
	start(&server, NULL, 0, 1, 0);
	close(server.listener);
	call_fails(server.path, 1000, -ECONNRESET, "without an answer");
	assert_int_equal(waitpid(server.child, NULL, 0), server.child);
	call_fails(server.path, 1000, -ENOTCONN, "no shuntd listens");
	unlink(server.path);
	rmdir(server.dir);
}

static void a_daemon_that_hangs(void **state)
{
	struct server server;

	(void)state;
	/* It accepts and says nothing. */
	start(&server, NULL, 0, 1, 700);
	call_fails(server.path, 300, -ETIMEDOUT, "does not answer");
	stop(&server);
	/* It does not even accept: the backlog fills up. */
	start(&server, NULL, 0, 1, 0);
	assert_int_equal(waitpid(server.child, NULL, WNOHANG), 0);
	call_fails(server.path, 1000, -ECONNRESET, "without an answer");
	for (int i = 0; i < 4; i++)
		call_fails(server.path, 100, -ETIMEDOUT, "does not answer");
	stop(&server);
}

static void a_daemon_that_drips(void **state)
{
	static const char answer[] = "{\"parameters\": {\"a\": \"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\"}}";
	struct server server;

	(void)state;
	start(&server, answer, sizeof(answer), 1, 0);
	call_fails(server.path, 300, -ETIMEDOUT, "does not answer");
	stop(&server);
}

static void something_that_is_no_daemon(void **state)
{
	static const char http[] = "HTTP/1.1 400 Bad Request\r\n\r\n";
	struct server server;

	(void)state;
	start(&server, http, sizeof(http), sizeof(http), 0);
	call_fails(server.path, 5000, -EPROTO, "not JSON");
	stop(&server);
	start(&server, http, sizeof(http) - 1, sizeof(http), 0);
	call_fails(server.path, 5000, -ECONNRESET, "without an answer");
	stop(&server);
}

static void a_request_above_the_limit_is_not_sent(void **state)
{
	char *text = malloc(CONTROL_ADMIN_REQUEST_MAX + 1);
	json_t *request, *reply = NULL;
	struct report report = {};

	(void)state;
	memset(text, 'x', CONTROL_ADMIN_REQUEST_MAX);
	text[CONTROL_ADMIN_REQUEST_MAX] = '\0';
	request = control_request("ServiceAdd", json_pack("{s:s}", "name", text));
	assert_int_equal(control_call("/nowhere", request, 1000, &reply, &report), -EMSGSIZE);
	assert_int_equal(report.errors, 1);
	assert_null(reply);
	report_free(&report);
	json_decref(request);
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_path_names_the_instance),
		cmocka_unit_test(messages_come_out_whatever_the_pieces),
		cmocka_unit_test(half_a_message_is_no_message),
		cmocka_unit_test(the_limit_counts_the_message_alone),
		cmocka_unit_test(an_endless_message_is_refused_before_it_ends),
		cmocka_unit_test(what_is_no_object_is_refused_and_skipped),
		cmocka_unit_test(random_bytes_break_nothing),
		cmocka_unit_test(encoding_ends_with_nul_and_respects_the_limit),
		cmocka_unit_test(a_request_is_judged_as_it_was_made),
		cmocka_unit_test(wrong_requests_are_answered_by_kind),
		cmocka_unit_test(a_version_mismatch_names_both_numbers),
		cmocka_unit_test(replies_are_judged_as_they_were_made),
		cmocka_unit_test(an_error_reply_carries_the_report),
		cmocka_unit_test(replies_of_others_are_no_replies),
		cmocka_unit_test(a_call_brings_the_reply),
		cmocka_unit_test(a_daemon_that_is_not_there),
		cmocka_unit_test(a_daemon_that_hangs),
		cmocka_unit_test(a_daemon_that_drips),
		cmocka_unit_test(something_that_is_no_daemon),
		cmocka_unit_test(a_request_above_the_limit_is_not_sent),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
