// SPDX-License-Identifier: Apache-2.0
/* What a support archive does not say, and the archive itself. */
#include "test.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/doctor/archive.h"
#include "cmd/doctor/redact.h"

static struct redactor *redactor;
static struct strbuf got;
static unsigned redacted[REDACT_KINDS];

static int setup(_unused_ void **state)
{
	memset(redacted, 0, sizeof(redacted));
	strbuf_init(&got, 0);
	return redactor_new(false, &redactor);
}

static int teardown(_unused_ void **state)
{
	redactor_free(redactor);
	strbuf_done(&got);
	return 0;
}

static void expect_text(const char *text, const char *wanted)
{
	strbuf_reset(&got);
	redact_text(redactor, text, &got, redacted);
	assert_string_equal(got.data, wanted);
}

static void secrets_are_found_by_what_surrounds_them(_unused_ void **state)
{
	expect_text("to https://me:hidden@host/x?key=hidden&y=1",
		    "to https://<secret>@host/x?key=<secret>&y=1");
	expect_text("Authorization: Basic aGlkZGVu\nnext", "Authorization: <secret>\nnext");
	expect_text("Bearer hiddenhidden, bearer of news", "Bearer <secret>, bearer of news");
	expect_text("password=\"hidden\" token: hidden", "password=\"<secret>\" token: <secret>");
	expect_text("{'passwd': 'hidden'}", "{'passwd': '<secret>'}");
	expect_text("hash $2y$05$abcdefghijklmnopqrstuu.x end", "hash <secret> end");
	expect_text("x eyJhbGciOiJIUzI1NiJ9.eyJzdWIi.abc y", "x <secret> y");
	expect_text("hf_abcdefghijklmnopqrstuvwx", "<secret>");
	assert_int_equal(redacted[REDACT_SECRET], 10);
	expect_text("key_file: /etc/key\ntokens: none\n", "key_file: /etc/key\ntokens: none\n");
}

static void secrets_in_unusual_places(_unused_ void **state)
{
	expect_text("https_proxy=http://me:p@ss/word@proxy:3128 x",
		    "https_proxy=http://<secret>@proxy:3128 x");
	expect_text("  headers: X-Tenant=hidden, X-Team=hidden # file", "  headers: <secret> # file");
	expect_text("  headers: \"\" # default", "  headers: \"\" # default");
	expect_text("Cookie: a=hidden; b=hidden", "Cookie: <secret>");
	expect_text("password: \"two hidden words\"", "password: \"<secret>\"");
	expect_text("pass: 'two hidden words' MYSQL_PWD=hidden", "pass: '<secret>' MYSQL_PWD=<secret>");
	expect_text("train --api-token hidden --max-tokens 100",
		    "train --api-token <secret> --max-tokens 100");
	expect_text("signing_key=hidden DD-API-KEY: hidden", "signing_key=<secret> DD-API-KEY: <secret>");
	expect_text("password=<hidden", "password=<secret>");
	expect_text("key_file: /etc/key --password-file /etc/x", "key_file: /etc/key --password-file /etc/x");
}

static void keys_go_whole(_unused_ void **state)
{
	expect_text("a\n-----BEGIN PRIVATE KEY-----\nMIIEhidden\n-----END PRIVATE KEY-----\nb\n",
		    "a\n<secret>\nb\n");
	expect_text("-----BEGIN CERTIFICATE-----\nMIIE\n-----END CERTIFICATE-----\n",
		    "-----BEGIN CERTIFICATE-----\nMIIE\n-----END CERTIFICATE-----\n");
	expect_text("-----BEGIN RSA PRIVATE KEY----- hidden", "<secret>");
}

static void secrets_of_files_are_nowhere(_unused_ void **state)
{
	redactor_secrets(redactor, "hidden-one\n");
	redactor_secrets(redactor, "users: short\n key: hidden-longer-than-16\n");
	redactor_secrets(redactor, "");
	redactor_secrets(redactor, " tiny ");
	expect_text("xhidden-oney hidden-longer-than-16 short tiny", "x<secret>y <secret> short tiny");
}

static void names_are_the_same_everywhere(_unused_ void **state)
{
	json_t *json =
		json_pack("{s:s, s:[{s:s, s:{s:s, s:s}}], s:s, s:s, s:s}", "hostname", "node7", "processes",
			  "comm", "train.py", "batch_job", "name", "big run", "user", "alice", "user", "root",
			  "title", "alice waits for train.py on node7.", "name", "big run");
	char *text;

	redactor_learn_json(redactor, json);
	redactor_learn_labels(redactor, "x{comm=\"train.py\",pod=\"a\\\"b\"} 1\n");
	assert_int_equal(redact_json(redactor, json, redacted), 0);
	text = json_dumps(json, JSON_COMPACT | JSON_SORT_KEYS);
	assert_string_equal(text,
			    "{\"hostname\":\"<host-1>\",\"name\":\"big run\",\"processes\":[{\"batch_job\":"
			    "{\"name\":\"<job-1>\",\"user\":\"<user-1>\"},\"comm\":\"<process-1>\"}],"
			    "\"title\":\"<user-1> waits for <process-1> on <host-1>.\",\"user\":\"root\"}");
	free(text);
	json_decref(json);
	expect_text("alice, malice and alice.", "<user-1>, malice and <user-1>.");
	expect_text("/home/alice/x /home/bob/y", "/home/<user-1>/x /home/<user-2>/y");
	strbuf_reset(&got);
	redact_labels(redactor, "# HELP x comm=\"\nx{comm=\"train.py\",pod=\"a\\\"b\",gpu=\"0\"} 1\ny 2\n",
		      &got, redacted);
	assert_string_equal(got.data,
			    "# HELP x comm=\"\nx{comm=\"<process-1>\",pod=\"<pod-1>\",gpu=\"0\"} 1\ny 2\n");
	/* A line ends a label, whatever is before its end. */
	strbuf_reset(&got);
	redact_labels(redactor, "x{pod=\"a\\\nb\"} 1\n", &got, redacted);
	assert_string_equal(got.data, "x{pod=\"<pod-2>\nb\"} 1\n");
}

static void names_stay_if_wanted(_unused_ void **state)
{
	redactor_free(redactor);
	assert_int_equal(redactor_new(true, &redactor), 0);
	redactor_learn_labels(redactor, "x{comm=\"train.py\"} 1\n");
	expect_text("train.py of /home/alice: password=hidden", "train.py of /home/alice: password=<secret>");
	strbuf_reset(&got);
	redact_labels(redactor, "x{comm=\"train.py\",token=\"hidden\"} 1\n", &got, redacted);
	assert_string_equal(got.data, "x{comm=\"train.py\",token=\"<secret>\"} 1\n");
}

static void names_without_number(_unused_ void **state)
{
	for (unsigned i = 0; i < 5000; i++) {
		char line[64];

		snprintf(line, sizeof(line), "x{user=\"name%u\"} 1\n", i);
		redactor_learn_labels(redactor, line);
	}
	strbuf_reset(&got);
	redact_labels(redactor, "x{user=\"name4999\"} 1\nx{user=\"name0\"} 1\n", &got, redacted);
	assert_string_equal(got.data, "x{user=\"<user>\"} 1\nx{user=\"<user-1>\"} 1\n");
}

static void archives_are_bounded(_unused_ void **state)
{
	char name[200];

	memset(name, 'x', sizeof(name));
	name[100] = 0;
	assert_int_equal(archive_add(&got, name, "", 0, 0), -ENAMETOOLONG);
	name[99] = 0;
	assert_int_equal(archive_add(&got, name, "data", 4, 1), 0);
	assert_int_equal(archive_end(&got), 0);
	assert_int_equal(got.len, 512 * 4);
	assert_string_equal(got.data + 124, "00000000004");
	strbuf_done(&got);
	strbuf_init(&got, 600);
	assert_int_equal(archive_add(&got, "a", "data", 4, 1), -ENOMEM);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(secrets_are_found_by_what_surrounds_them, setup, teardown),
		cmocka_unit_test_setup_teardown(secrets_in_unusual_places, setup, teardown),
		cmocka_unit_test_setup_teardown(keys_go_whole, setup, teardown),
		cmocka_unit_test_setup_teardown(secrets_of_files_are_nowhere, setup, teardown),
		cmocka_unit_test_setup_teardown(names_are_the_same_everywhere, setup, teardown),
		cmocka_unit_test_setup_teardown(names_stay_if_wanted, setup, teardown),
		cmocka_unit_test_setup_teardown(names_without_number, setup, teardown),
		cmocka_unit_test_setup_teardown(archives_are_bounded, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
