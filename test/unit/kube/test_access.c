// SPDX-License-Identifier: Apache-2.0
/* A service account's folder as kubelet makes it: files are links into a folder that a link leads to. */
#include "test.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "kube/access.h"

/* The beginning of a certificate is all that is looked at. */
#define CERTIFICATE(letter_)                                                           \
	"-----BEGIN CERTIFICATE-----\n"                                                \
	"MIIB" letter_ "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA\n" \
	"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA\n"           \
	"-----END CERTIFICATE-----\n"

static char folder[64], error[256];
static struct access now;

static void write_in(const char *version, const char *name, const char *text)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/%s", folder, version);
	mkdir(path, 0755);
	snprintf(path, sizeof(path), "%s/%s/%s", folder, version, name);
	assert_int_equal(write_file_atomic(path, text, strlen(text), 0600), 0);
}

/* As kubelet's AtomicWriter does. */
static void swap_to(const char *version)
{
	char new[128], data[128];

	snprintf(new, sizeof(new), "%s/..data_tmp", folder);
	snprintf(data, sizeof(data), "%s/..data", folder);
	assert_int_equal(symlink(version, new), 0);
	assert_int_equal(rename(new, data), 0);
}

static int begin(void **state)
{
	char path[128];

	(void)state;
	clock_freeze(true);
	strcpy(folder, "/tmp/gpusonde-access-XXXXXX");
	if (!mkdtemp(folder))
		return -1;
	for (unsigned i = 0; i < 2; i++) {
		static const char *const names[] = { "token", "ca.crt" };
		char target[64];

		snprintf(path, sizeof(path), "%s/%s", folder, names[i]);
		snprintf(target, sizeof(target), "..data/%s", names[i]);
		if (symlink(target, path) < 0)
			return -1;
	}
	write_in("..1", "token", "one\n");
	write_in("..1", "ca.crt", CERTIFICATE("a"));
	swap_to("..1");
	return 0;
}

static int end(void **state)
{
	char command[128];

	(void)state;
	access_done(&now);
	clock_freeze(false);
	snprintf(command, sizeof(command), "rm -rf %s", folder);
	return system(command);
}

static int load(const char *host, const char *port)
{
	const struct access_config config = {
		.server = "", .kubeconfig = "", .context = "", .account = folder, .host = host, .port = port
	};

	error[0] = '\0';
	return access_load(&config, &now, error, sizeof(error));
}

static void the_address_of_a_pod(void **state)
{
	(void)state;
	assert_int_equal(load("10.0.0.1", "443"), 0);
	assert_string_equal(now.server, "https://10.0.0.1:443");
	assert_string_equal(now.token.data, "one");
	access_done(&now);
	assert_int_equal(load("fd00::1", "6443"), 0);
	assert_string_equal(now.server, "https://[fd00::1]:6443");
	access_done(&now);
	assert_int_equal(load("", ""), -ENOENT);
	assert_non_null(strstr(error, "KUBERNETES_SERVICE_HOST"));
}

static void a_token_is_read_each_minute(void **state)
{
	(void)state;
	assert_int_equal(load("h", ""), 0);
	write_in("..2", "token", "two");
	write_in("..2", "ca.crt", CERTIFICATE("a"));
	swap_to("..2");
	clock_advance(59 * NSEC_PER_SEC);
	access_refresh(&now, clock_mono_ns(), false);
	assert_string_equal(now.token.data, "one");
	clock_advance(NSEC_PER_SEC);
	/* Connections go on with another token. */
	assert_int_equal(access_refresh(&now, clock_mono_ns(), false), ACCESS_NEW_TOKEN);
	assert_string_equal(now.token.data, "two");
}

/* Whether @text stands in what malloc() has given, or has been given back. */
static bool is_in_the_heap(const char *text)
{
	char line[256], name[64] = "";
	unsigned long begin = 0, end = 0;
	size_t n = strlen(text);
	FILE *maps = fopen("/proc/self/maps", "re");
	bool found = false;

	while (fgets(line, sizeof(line), maps) && strcmp(name, "[heap]") != 0) {
		name[0] = '\0';
		(void)sscanf(line, "%lx-%lx %*s %*s %*s %*s %63s", &begin, &end, name);
	}
	fclose(maps);
	/* Through the kernel, since most of it is nobody's now. */
	maps = fopen("/proc/self/mem", "re");
	if (strcmp(name, "[heap]") == 0 && fseeko(maps, (off_t)begin, SEEK_SET) == 0) {
		static char heap[64 << 20];
		size_t got = fread(heap, 1, MIN(sizeof(heap), end - begin), maps);

		found = memmem(heap, got, text, n) != NULL;
		explicit_bzero(heap, got);
	}
	fclose(maps);
	return found;
}

/* Also what reading it took, and one that is no news. */
static void a_rotated_token_is_wiped(void **state)
{
	static const char token[] = "header.a-token-of-a-service-account-that-was-rotated.signature";

	(void)state;
	write_in("..1", "token", token);
	assert_int_equal(load("h", ""), 0);
	/* An allocator that has no heap has nothing to be looked at. */
	if (!is_in_the_heap(token + 20))
		skip();
	assert_int_equal(access_refresh(&now, clock_mono_ns(), true), 0);
	write_in("..1", "token", "two");
	assert_int_equal(access_refresh(&now, clock_mono_ns(), true), ACCESS_NEW_TOKEN);
	assert_false(is_in_the_heap(token + 20));
}

static void a_refusal_reads_it_at_once(void **state)
{
	(void)state;
	assert_int_equal(load("h", ""), 0);
	write_in("..1", "token", "two");
	access_refresh(&now, clock_mono_ns(), true);
	assert_string_equal(now.token.data, "two");
}

static void what_cannot_be_used_leaves_what_there_was(void **state)
{
	char path[128];

	(void)state;
	assert_int_equal(load("h", ""), 0);
	write_in("..1", "token", " \n");
	write_in("..1", "ca.crt", "no certificate");
	assert_int_equal(access_refresh(&now, clock_mono_ns(), true), 0);
	write_in("..1", "token", "two words");
	write_in("..1", "ca.crt", "");
	assert_int_equal(access_refresh(&now, clock_mono_ns(), true), 0);
	snprintf(path, sizeof(path), "%s/..data", folder);
	unlink(path);
	assert_int_equal(access_refresh(&now, clock_mono_ns(), true), 0);
	assert_string_equal(now.token.data, "one");
	assert_string_equal(now.ca.data, CERTIFICATE("a"));
}

static void certificates_are_compared_every_five_minutes(void **state)
{
	(void)state;
	assert_int_equal(load("h", ""), 0);
	write_in("..1", "ca.crt", CERTIFICATE("a"));
	clock_advance(300 * NSEC_PER_SEC);
	assert_int_equal(access_refresh(&now, clock_mono_ns(), false), 0);
	write_in("..1", "ca.crt", CERTIFICATE("b"));
	clock_advance(299 * NSEC_PER_SEC);
	assert_int_equal(access_refresh(&now, clock_mono_ns(), false), 0);
	clock_advance(NSEC_PER_SEC);
	assert_int_equal(access_refresh(&now, clock_mono_ns(), false), ACCESS_NEW_FILES);
	assert_string_equal(now.ca.data, CERTIFICATE("b"));
}

static void what_is_missing_is_named(void **state)
{
	char path[128];

	(void)state;
	write_in("..1", "ca.crt", "nonsense");
	assert_int_equal(load("h", ""), -EINVAL);
	assert_non_null(strstr(error, "ca.crt: there is no certificate in it"));
	snprintf(path, sizeof(path), "%s/token", folder);
	unlink(path);
	write_in("..1", "ca.crt", CERTIFICATE("a"));
	assert_int_equal(load("h", ""), -ENOENT);
	assert_non_null(strstr(error, "/token"));
}

static void an_address_alone(void **state)
{
	struct access_config config = { .server = "http://127.0.0.1:8001/",
					.kubeconfig = "",
					.context = "",
					.account = folder,
					.host = "h",
					.port = "" };

	(void)state;
	assert_int_equal(access_load(&config, &now, error, sizeof(error)), 0);
	assert_string_equal(now.server, "http://127.0.0.1:8001");
	assert_null(now.token.data);
	access_done(&now);
	config.server = "ftp://x";
	assert_int_equal(access_load(&config, &now, error, sizeof(error)), -EINVAL);
	/* By TLS as the service account. */
	config.server = "https://other:6443";
	assert_int_equal(access_load(&config, &now, error, sizeof(error)), 0);
	assert_string_equal(now.token.data, "one");
	assert_string_equal(now.server, "https://other:6443");
}

#define TEST(name_) cmocka_unit_test_setup_teardown(name_, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(the_address_of_a_pod),
		TEST(a_token_is_read_each_minute),
		TEST(a_rotated_token_is_wiped),
		TEST(a_refusal_reads_it_at_once),
		TEST(what_cannot_be_used_leaves_what_there_was),
		TEST(certificates_are_compared_every_five_minutes),
		TEST(what_is_missing_is_named),
		TEST(an_address_alone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
