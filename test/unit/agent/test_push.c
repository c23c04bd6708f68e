// SPDX-License-Identifier: Apache-2.0
#include "needs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "agent/outputs/push.h"
#include "base/clock.h"

#define PATIENCE_NS (20 * NSEC_PER_SEC)

static sd_event *event;
static struct model *model;
static struct publisher *publisher;
static struct push *push;
static double up, sent, queued, torn, bytes, lost, lost_logs,
	lost_events; /* as of the newest snapshot; -1: absent */

static int begin(void **state)
{
	(void)state;
	setenv("API_KEY", "secret", 1);
	if (sd_event_new(&event) < 0 || publisher_new(&publisher) < 0)
		return -1;
	return model_new(&(struct model_limits){ 16, 16, 16, 16 }, &model);
}

static int end(void **state)
{
	(void)state;
	push_free(push);
	push = NULL;
	model_free(model);
	publisher_free(publisher);
	event = sd_event_unref(event);
	return 0;
}

static void start_kind(enum push_kind_id kind, const char *how, const char *key_file)
{
	char program[4096];
	struct push_config config = { .program = program,
				      .key = { .file = key_file, .variable = "API_KEY" },
				      .interval_ns = NSEC_PER_SEC };

	need_programs();
	config.settings.kind = kind;
	strcpy(config.settings.folder, "/kept"); /* so that XIDs from before are told, too */
	snprintf(program, sizeof(program), "%s/test/unit/agent/fake_push", test_build_root());
	snprintf(config.settings.cluster, sizeof(config.settings.cluster), "%s", how);
	assert_int_equal(push_new(event, model, &config, &push), 0);
}

static void start(const char *how, const char *key_file)
{
	start_kind(PUSH_ROWS, how, key_file);
}

static double figure(const struct snapshot *s, enum agent_metric metric)
{
	return presence_is(s->agent_p[metric]) ? s->agent[metric] : -1;
}

static void turn(void)
{
	struct snapshot *snapshot;

	assert_int_equal(model_publish(model, publisher), 0);
	snapshot = publisher_get(publisher);
	snapshot->fresh = true; /* there are no GPUs here */
	push_tick(push, snapshot);
	assert_true(sd_event_run(event, 100000) >= 0);
	up = figure(snapshot, AGENT_PUSH_UP_ROWS);
	sent = figure(snapshot, AGENT_PUSH_SENT_ROWS);
	queued = figure(snapshot, AGENT_PUSH_QUEUED_ROWS);
	torn = figure(snapshot, AGENT_PUSH_LOST_TORN_ROWS);
	bytes = figure(snapshot, AGENT_PUSH_QUEUE_BYTES_ROWS);
	lost = figure(snapshot, AGENT_PUSH_LOST_UNKEPT_ROWS + PUSH_REMOTE_WRITE);
	lost_logs = figure(snapshot, AGENT_PUSH_LOST_UNKEPT_ROWS + PUSH_OTLP_LOGS);
	lost_events = figure(snapshot, AGENT_DROPPED_PUSH_EVENTS);
	snapshot_unref(snapshot);
}

static void wait_up(double wanted)
{
	int64_t until_ns = clock_mono_ns() + PATIENCE_NS;

	do {
		assert_true(clock_mono_ns() < until_ns);
		turn();
	} while (up != wanted);
}

static void tells_what_it_is_told(void **state)
{
	(void)state;
	start("well", NULL);
	wait_up(1);
	assert_string_equal(push_error(push), "");
	assert_true(sent == 0); /* no GPU: no rows */
	assert_true(queued >= 1); /* it has the key */
	assert_true(torn >= 2);
	assert_true(bytes == 12288);
	assert_true(push_pid(push) > 0);
}

static void bounds_errors(void **state)
{
	(void)state;
	start("fails", NULL);
	wait_up(0);
	assert_int_equal(strlen(push_error(push)), sizeof(((struct push_end *)NULL)->error) - 1);
	assert_int_equal(push_error(push)[0], '?');
}

static void a_process_that_lies_is_replaced(void **state)
{
	static const char *const lies[] = { "strange outcome", "ends", "short", "twice" };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(lies); i++) {
		start(lies[i], NULL);
		wait_up(0);
		if (!strstr(push_error(push), "gpusonde-push, ended"))
			fail_msg("%s: %s", lies[i], push_error(push));
		push_free(push);
		push = NULL;
		model_free(model);
		assert_int_equal(model_new(&(struct model_limits){ 16, 16, 16, 16 }, &model), 0);
	}
}

static void what_a_process_takes_with_it_is_counted(void **state)
{
	int64_t until_ns = clock_mono_ns() + PATIENCE_NS;

	(void)state;
	start_kind(PUSH_REMOTE_WRITE, "ends", NULL);
	do {
		assert_true(clock_mono_ns() < until_ns);
		turn();
	} while (lost < 1);
	assert_true(lost == 1);
}

/* Each is an event, told at once. */
static void add_xids(unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		model_kmsg_xid(model, &(struct xid_record){ .pci_bus_id = "00000000:3B:00.0",
							    .code = 31,
							    .gi = UINT32_MAX,
							    .ci = UINT32_MAX,
							    .boot_ns = clock_boot_ns(),
							    .text = "pid=1" });
}

static void events_that_a_process_takes_with_it_are_counted(void **state)
{
	int64_t until_ns = clock_mono_ns() + PATIENCE_NS;

	(void)state;
	start_kind(PUSH_OTLP_LOGS, "ends", NULL);
	add_xids(3);
	do {
		assert_true(clock_mono_ns() < until_ns);
		turn();
	} while (lost_logs < 1);
	turn();
	assert_true(lost_logs == 1);
	assert_true(lost_events == 3);
}

static void limit_files(rlim_t n)
{
	struct rlimit limit;

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	limit.rlim_cur = MIN(n, limit.rlim_max);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

static void events_wait_for_a_file_in_memory(void **state)
{
	(void)state;
	start_kind(PUSH_OTLP_LOGS, "well", NULL);
	for (int64_t until_ns = clock_mono_ns() + PATIENCE_NS; push_pid(push) == 0;) {
		assert_true(clock_mono_ns() < until_ns);
		turn();
	}
	add_xids(3);
	limit_files(3);
	for (int64_t until_ns = clock_mono_ns() + PATIENCE_NS; !strstr(push_error(push), "open files");) {
		assert_true(clock_mono_ns() < until_ns);
		turn();
	}
	turn();
	assert_true(lost_logs == 0);
	/* There is no later. */
	push_leave(push, NULL);
	limit_files(1024);
	turn();
	assert_true(lost_logs == 0);
	assert_true(lost_events == 3);
}

static void write_key(const char *path, const char *text)
{
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	fputs(text, f);
	fclose(f);
}

static void reads_the_key_again(void **state)
{
	/* It is read once more when the push is freed. */
	static char path[] = "/tmp/gpusonde-test-push-XXXXXX";
	int fd = mkstemp(path);

	(void)state;
	assert_true(fd >= 0);
	close(fd);
	start("well", path);
	wait_up(0);
	assert_non_null(strstr(push_error(push), "there is no key in /tmp/"));
	assert_true(queued == 0);
	write_key(path, "two words\n");
	while (!strstr(push_error(push), "printable"))
		turn();
	assert_null(strstr(push_error(push), "words"));
	write_key(path, "right\n");
	wait_up(1);
	while (queued == 0)
		turn();
	unlink(path);
	while (!strstr(push_error(push), "cannot be read"))
		turn();
}

static int configure_kind(enum push_kind_id kind, const char *yaml, struct push_config *config, char why[300])
{
	static struct options options; /* what is configured borrows from it */
	struct strbuf errors;

	options_done(&options);
	strbuf_init(&errors, 0);
	assert_int_equal(options_init(&options), 0);
	assert_int_equal(options_from_yaml(&options, "t.yaml", yaml, strlen(yaml), &errors), 0);
	assert_string_equal(errors.data, "");
	strbuf_done(&errors);
	return push_configure(&options, kind, config, why, 300);
}

static int configure(const char *yaml, struct push_config *config, char why[300])
{
	return configure_kind(PUSH_ROWS, yaml, config, why);
}

static void a_part_is_an_error(void **state)
{
	static struct push_config config;
	char why[300];

	(void)state;
	assert_int_equal(configure("", &config, why), -ENOENT); /* API_KEY alone */
	assert_int_equal(configure("push: {url: 'https://a'}", &config, why), -EINVAL);
	assert_non_null(strstr(why, "push.cluster (CLUSTER_ID)"));
	assert_null(strstr(why, "CAST_API"));
	assert_int_equal(configure("push: {cluster: c}", &config, why), -EINVAL);
	assert_non_null(strstr(why, "push.url (CAST_API)"));
	assert_int_equal(configure("push: {key_file: /k}", &config, why), -EINVAL);
	unsetenv("API_KEY");
	assert_int_equal(configure("push: {url: 'https://a', cluster: c}", &config, why), -EINVAL);
	assert_non_null(strstr(why, "API_KEY"));
	assert_int_equal(configure("push: {url: 'https://a', cluster: c, key_file: /k}", &config, why), 0);
}

static void addresses_are_looked_at(void **state)
{
	static const char *const bad[] = { "ftp://a", "a", "https://u:p@a", "https:///x", "https://a?b" };
	static struct push_config config;
	char why[300], yaml[200];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		snprintf(yaml, sizeof(yaml), "push: {url: '%s', cluster: c}", bad[i]);
		assert_int_equal(configure(yaml, &config, why), -EINVAL);
		assert_non_null(strstr(why, "push.url"));
	}
	assert_int_equal(configure("push: {url: 'https://a', cluster: '..'}", &config, why), -EINVAL);
	assert_int_equal(configure("push: {url: 'https://a', cluster: 'x/y'}", &config, why), -EINVAL);
	setenv("HTTPS_PROXY", "http://proxy:3128", 1);
	setenv("no_proxy", "b", 1);
	assert_int_equal(configure("push: {url: 'https://a/x/', cluster: c}", &config, why), 0);
	assert_string_equal(config.settings.url, "https://a/x");
	assert_string_equal(config.settings.proxy, "http://proxy:3128");
	assert_string_equal(config.settings.no_proxy, "b");
	assert_int_equal(configure("push: {url: 'http://a', cluster: c}", &config, why), 0);
	assert_string_equal(config.settings.proxy, "");
}

static void remote_write_is_checked(void **state)
{
	static const char *const bad[] = {
		"url: 'ftp://a'",
		"url: 'http://a', protocol: '3.0'",
		"url: 'http://a', labels: 'a'",
		"url: 'http://a', labels: '=b'",
		"url: 'http://a', labels: '0a=b'",
		"url: 'http://a', labels: '__name__=b'",
		"url: 'http://a', headers: 'X'",
		"url: 'http://a', headers: 'X='",
		"url: 'http://a', headers: 'X Y=a'",
		"url: 'http://a', username: u",
		"url: 'http://a', password_file: /p",
		"url: 'http://a', username: u, password_file: /p, token_file: /t",
		"url: 'http://a', certificate_file: /c",
	};
	static struct push_config config;
	char why[300], yaml[300];

	(void)state;
	assert_int_equal(configure_kind(PUSH_REMOTE_WRITE, "push: {url: 'http://a'}", &config, why), -ENOENT);
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		snprintf(yaml, sizeof(yaml), "remote_write: {%s}", bad[i]);
		why[0] = '\0';
		if (configure_kind(PUSH_REMOTE_WRITE, yaml, &config, why) != -EINVAL ||
		    !strstr(why, "remote_write."))
			fail_msg("%s: %s", bad[i], why);
	}
	assert_int_equal(
		configure_kind(PUSH_REMOTE_WRITE,
			       "remote_write: {url: 'https://a/api/', instance: i, labels: 'a=b,c=d=e', "
			       "headers: 'X-Scope-OrgID=t', protocol: '2.0'}",
			       &config, why),
		0);
	assert_string_equal(config.settings.url, "https://a/api/");
	assert_string_equal(config.settings.labels, "job=gpusonde\ninstance=i\na=b\nc=d=e\n");
	assert_string_equal(config.settings.headers, "X-Scope-OrgID: t\n");
	assert_int_equal(config.settings.protocol, 2);
	assert_int_equal(config.settings.kind, PUSH_REMOTE_WRITE);
}

static void events_have_an_endpoint_of_their_own(void **state)
{
	static struct push_config config;
	char why[300];

	(void)state;
	assert_int_equal(configure_kind(PUSH_OTLP_LOGS, "otlp: {endpoint: 'http://a'}", &config, why),
			 -ENOENT);
	assert_int_equal(configure_kind(PUSH_OTLP_LOGS, "otlp: {logs_endpoint: 'a'}", &config, why), -EINVAL);
	assert_non_null(strstr(why, "otlp.logs_endpoint"));
	assert_int_equal(configure_kind(PUSH_OTLP_LOGS,
					"otlp: {logs_endpoint: 'https://a/', username: u, key_file: /k}",
					&config, why),
			 -EINVAL);
	assert_non_null(strstr(why, "otlp.username and otlp.password_file belong together"));
	assert_int_equal(
		configure_kind(PUSH_OTLP_LOGS,
			       "otlp: {logs_endpoint: 'https://a/x/', username: u, password_file: /p, "
			       "certificate_file: /c, key_file: /k, headers_file: /h}",
			       &config, why),
		0);
	assert_string_equal(config.settings.url, "https://a/x");
	assert_string_equal(config.key.certificate_key_file, "/k");
	assert_string_equal(config.key.headers_file, "/h");
	assert_int_equal(config.settings.kind, PUSH_OTLP_LOGS);
}

/* What the question has, of files that a test writes. */
static void passwords_and_tokens_become_headers(void **state)
{
	static struct push_question question;
	char path[] = "/tmp/gpusonde-test-push-XXXXXX", error[300];
	int fd = mkstemp(path);

	(void)state;
	assert_true(fd >= 0);
	close(fd);
	write_key(path, "open sesame?\n");
	push_key_read(&(struct push_key){ .file = path, .user = "Aladdin" }, &question, error, sizeof(error));
	assert_int_equal(question.waits, 1); /* a blank */
	write_key(path, "opensesame\n");
	push_key_read(&(struct push_key){ .file = path, .user = "Aladdin" }, &question, error, sizeof(error));
	assert_string_equal(question.key, "Basic QWxhZGRpbjpvcGVuc2VzYW1l");
	push_key_read(&(struct push_key){ .file = path, .user = "A" }, &question, error, sizeof(error));
	assert_string_equal(question.key, "Basic QTpvcGVuc2VzYW1l");
	push_key_read(&(struct push_key){ .file = path, .user = "Al" }, &question, error, sizeof(error));
	assert_string_equal(question.key, "Basic QWw6b3BlbnNlc2FtZQ==");
	push_key_read(&(struct push_key){ .file = path, .scheme = "Bearer " }, &question, error,
		      sizeof(error));
	assert_string_equal(question.key, "Bearer opensesame");
	assert_int_equal(question.waits, 0);
	push_key_read(&(struct push_key){ .certificate_file = path }, &question, error, sizeof(error));
	assert_string_equal(question.certificate, "opensesame");
	write_key(path, "X-Tenant: a b \r\n\nAuthorization: Splunk 1\n");
	push_key_read(&(struct push_key){ .headers_file = path }, &question, error, sizeof(error));
	assert_string_equal(question.headers, "X-Tenant: a b\nAuthorization: Splunk 1\n");
	assert_int_equal(question.waits, 0);
	write_key(path, "X-Tenant a\n");
	push_key_read(&(struct push_key){ .headers_file = path }, &question, error, sizeof(error));
	assert_int_equal(question.waits, 1);
	assert_non_null(strstr(error, "NAME: VALUE"));
	write_key(path, "X: a\x01b\n");
	push_key_read(&(struct push_key){ .headers_file = path }, &question, error, sizeof(error));
	assert_int_equal(question.waits, 1);
	static const char *const bad[] = { "X Y: a\n", "X(Y): a\n", "X:\n", "Content-Type: \n", ": a\n" };

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		write_key(path, bad[i]);
		push_key_read(&(struct push_key){ .headers_file = path }, &question, error, sizeof(error));
		if (question.waits != 1 || !strstr(error, "with a value"))
			fail_msg("%s: %s", bad[i], error);
	}
	memset(question.certificate, 'a', sizeof(question.certificate) - 1);
	question.certificate[sizeof(question.certificate) - 1] = '\0';
	write_key(path, question.certificate);
	push_key_read(&(struct push_key){ .headers_file = path }, &question, error, sizeof(error));
	assert_non_null(strstr(error, "has more than 4095 bytes"));
	push_key_read(&(struct push_key){ .file = path }, &question, error, sizeof(error));
	assert_non_null(strstr(error, "at most 4095 bytes"));
	fd = open(path, O_WRONLY | O_TRUNC);
	assert_int_equal(write(fd, "X: a\0b", 6), 6);
	close(fd);
	push_key_read(&(struct push_key){ .headers_file = path }, &question, error, sizeof(error));
	assert_non_null(strstr(error, "has a NUL byte"));
	unlink(path);
	push_key_read(&(struct push_key){ .certificate_key_file = path }, &question, error, sizeof(error));
	assert_int_equal(question.waits, 1);
	assert_non_null(strstr(error, "cannot be read"));
}

#define TEST(name_) cmocka_unit_test_setup_teardown(name_, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(tells_what_it_is_told),
		TEST(bounds_errors),
		TEST(a_process_that_lies_is_replaced),
		TEST(reads_the_key_again),
		TEST(a_part_is_an_error),
		TEST(addresses_are_looked_at),
		TEST(what_a_process_takes_with_it_is_counted),
		TEST(events_that_a_process_takes_with_it_are_counted),
		TEST(events_wait_for_a_file_in_memory),
		TEST(remote_write_is_checked),
		TEST(events_have_an_endpoint_of_their_own),
		TEST(passwords_and_tokens_become_headers),
	};

	unsetenv("HTTPS_PROXY");
	unsetenv("HTTP_PROXY");
	unsetenv("http_proxy");
	unsetenv("https_proxy");
	return cmocka_run_group_tests(tests, NULL, NULL);
}
