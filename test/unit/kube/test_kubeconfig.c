// SPDX-License-Identifier: Apache-2.0
#include "test.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "kube/kubeconfig.h"

static struct access access_read;
static char error[256];

#define CONFIG                                                                                           \
	"apiVersion: v1\nkind: Config\ncurrent-context: one\n"                                           \
	"clusters:\n"                                                                                    \
	"- name: c1\n  cluster: {server: 'https://[::1]:6443/', certificate-authority-data: aGVsbG8=}\n" \
	"- name: c2\n  cluster: {server: 'http://127.0.0.1:8001', insecure-skip-tls-verify: true, "      \
	"tls-server-name: kube, proxy-url: 'http://p:1', certificate-authority: ca.crt}\n"               \
	"contexts:\n"                                                                                    \
	"- name: one\n  context: {cluster: c1, user: u1, namespace: x}\n"                                \
	"- {name: two, context: {cluster: c2, user: u2}}\n"                                              \
	"- {name: three, context: {cluster: c1, user: u3}}\n"                                            \
	"- {name: four, context: {cluster: c1, user: u4}}\n"                                             \
	"- {name: nobody, context: {cluster: c1}}\n"                                                     \
	"- {name: no-cluster, context: {cluster: c9}}\n"                                                 \
	"- {name: no-user, context: {cluster: c1, user: u9}}\n"                                          \
	"users:\n"                                                                                       \
	"- {name: u1, user: {token: secret, tokenFile: /abs/token}}\n"                                   \
	"- {name: u2, user: {client-certificate: sub/c.crt, client-key-data: a2V5}}\n"                   \
	"- name: u3\n  user:\n    exec: {command: aws, args: [a, b]}\n"                                  \
	"- {name: u4, user: {token: only}}\n"

static int parse(const char *text, const char *context)
{
	access_done(&access_read);
	memset(&access_read, 0, sizeof(access_read));
	error[0] = '\0';
	return kubeconfig_parse("/etc/kube/config", text, strlen(text), context, &access_read, error,
				sizeof(error));
}

static int end(void **state)
{
	(void)state;
	access_done(&access_read);
	return 0;
}

static void contexts(void **state)
{
	(void)state;
	assert_int_equal(parse(CONFIG, ""), 0);
	assert_string_equal(access_read.server, "https://[::1]:6443/");
	assert_string_equal(access_read.ca.data, "hello");
	assert_string_equal(access_read.token.path, "/abs/token");
	assert_null(access_read.token.data);
	assert_int_equal(parse(CONFIG, "two"), 0);
	assert_string_equal(access_read.server, "http://127.0.0.1:8001");
	assert_true(access_read.insecure);
	assert_string_equal(access_read.tls_name, "kube");
	assert_string_equal(access_read.proxy, "http://p:1");
	assert_string_equal(access_read.ca.path, "/etc/kube/ca.crt");
	assert_string_equal(access_read.certificate.path, "/etc/kube/sub/c.crt");
	assert_string_equal(access_read.key.data, "key");
	assert_int_equal(parse(CONFIG, "four"), 0);
	assert_string_equal(access_read.token.data, "only");
	assert_int_equal(access_read.token.n, 4);
	assert_int_equal(parse(CONFIG, "nobody"), 0);
	assert_null(access_read.token.data);
}

static void expect_refused(const char *text, const char *context, int wanted, const char *words)
{
	assert_int_equal(parse(text, context), wanted);
	if (!strstr(error, words))
		fail_msg("\"%s\" does not say \"%s\"", error, words);
}

static void a_file_that_is_not_there(void **state)
{
	(void)state;
	access_done(&access_read);
	memset(&access_read, 0, sizeof(access_read));
	assert_int_equal(kubeconfig_read("/nonexistent", "", &access_read, error, sizeof(error)), -ENOENT);
	assert_string_equal(error, "/nonexistent: cannot be read: No such file or directory; check the path "
				   "and its permissions");
}

static void what_is_refused(void **state)
{
	(void)state;
	expect_refused(CONFIG, "three", -EOPNOTSUPP, "needs a program to be run (exec)");
	expect_refused(CONFIG, "five", -EINVAL, "no context \"five\"");
	expect_refused(CONFIG, "no-cluster", -EINVAL, "the cluster of context");
	expect_refused(CONFIG, "no-user", -EINVAL, "the user of context");
	expect_refused("a: b\n", "", -EINVAL, "no current-context");
	expect_refused("a: [\n", "", -EINVAL, "line ");
	expect_refused("clusters: [{name: c, cluster: {}}]\ncontexts: [{name: x, context: {cluster: c}}]\n",
		       "x", -EINVAL, "has no server");
	expect_refused("clusters: [{name: c, cluster: {server: s, certificate-authority-data: '!'}}]\n"
		       "contexts: [{name: x, context: {cluster: c}}]\n",
		       "x", -EINVAL, "is not base64");
	for (unsigned i = 0; i < 4; i++) {
		static const char *const keys[] = { "auth-provider: {name: gcp}", "username: u",
						    "password: p", "as: root" };
		char text[256];

		snprintf(text, sizeof(text),
			 "clusters: [{name: c, cluster: {server: s}}]\n"
			 "contexts: [{name: x, context: {cluster: c, user: u}}]\n"
			 "users: [{name: u, user: {%s}}]\n",
			 keys[i]);
		expect_refused(text, "x", -EOPNOTSUPP, "user");
	}
}

static void base64(void **state)
{
	static const char *const good[][2] = {
		{ "", "" }, { "YQ==", "a" }, { "YWI", "ab" }, { "YW\nJj", "abc" }
	};
	static const char *const bad[] = { "Y", "YQ==x", "Y-Q=", "YWJjZ" };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
		size_t n;
		_cleanup_free_ char *data = base64_decode(good[i][0], &n);

		assert_non_null(data);
		assert_string_equal(data, good[i][1]);
		assert_int_equal(n, strlen(good[i][1]));
	}
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		size_t n;

		assert_null(base64_decode(bad[i], &n));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(contexts, end),
		cmocka_unit_test_teardown(what_is_refused, end),
		cmocka_unit_test_teardown(a_file_that_is_not_there, end),
		cmocka_unit_test(base64),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
