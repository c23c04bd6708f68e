// SPDX-License-Identifier: Apache-2.0
#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"

static int real_stderr = -1;
static int reader = -1;

/* stderr becomes a pipe whose other end the tests read. */
static int capture(_unused_ void **state)
{
	int ends[2];

	real_stderr = dup(STDERR_FILENO);
	if (real_stderr < 0 || pipe2(ends, O_CLOEXEC) < 0 || dup2(ends[1], STDERR_FILENO) < 0)
		return -1;
	close(ends[1]);
	reader = ends[0];
	unsetenv("JOURNAL_STREAM");
	log_set_minute(0); /* no limit */
	return fd_nonblock(reader);
}

static int release(_unused_ void **state)
{
	dup2(real_stderr, STDERR_FILENO);
	close(real_stderr);
	close(reader);
	return 0;
}

static const char *logged(void)
{
	static char buf[1 << 17];
	ssize_t n = read(reader, buf, sizeof(buf) - 1);

	buf[n > 0 ? n : 0] = '\0';
	return buf;
}

static void levels_decide(_unused_ void **state)
{
	log_setup(LOG_TARGET_STDERR, LOG_NOTICE, "tester");
	assert_int_equal(log_max_level(), LOG_NOTICE);
	log_info("too quiet");
	log_debug("quieter");
	assert_string_equal(logged(), "");
	log_notice("heard %d", 1);
	log_error("too");
	assert_string_equal(logged(), "tester: heard 1\ntester: too\n");
}

static void one_call_is_one_line(_unused_ void **state)
{
	static char huge[5000];

	log_setup(LOG_TARGET_STDERR, LOG_INFO, "tester");
	log_info("comm=%s", "evil\ntester: forged\033[31m\x7f \xc3\xa9");
	assert_string_equal(logged(), "tester: comm=evil?tester: forged?[31m? \xc3\xa9\n");
	memset(huge, 'x', sizeof(huge) - 1);
	log_info("%s", huge);
	assert_in_range(strlen(logged()), 1000, 1100);
}

static void errno_is_usable_and_kept(_unused_ void **state)
{
	log_setup(LOG_TARGET_STDERR, LOG_INFO, "tester");
	errno = ENOENT;
	log_info("open: %m");
	assert_int_equal(errno, ENOENT);
	assert_string_equal(logged(), "tester: open: No such file or directory\n");
}

static void journal_gets_priorities(_unused_ void **state)
{
	char stream[64];
	struct stat st;

	assert_int_equal(fstat(STDERR_FILENO, &st), 0);
	snprintf(stream, sizeof(stream), "%ju:%ju", (uintmax_t)st.st_dev, (uintmax_t)st.st_ino);
	setenv("JOURNAL_STREAM", stream, 1);
	log_setup(LOG_TARGET_STDERR, LOG_INFO, "tester");
	log_warning("careful");
	assert_string_equal(logged(), "<4>careful\n");
	setenv("JOURNAL_STREAM", "1:2", 1);
	log_setup(LOG_TARGET_STDERR, LOG_INFO, "tester");
	log_warning("careful");
	assert_string_equal(logged(), "tester: careful\n");
	unsetenv("JOURNAL_STREAM");
}

static void a_stalled_reader_costs_lines_that_are_told(_unused_ void **state)
{
	static char filler[900];
	const char *text;
	unsigned lost = 0;

	log_setup(LOG_TARGET_STDERR, LOG_INFO, "tester");
	memset(filler, 'f', sizeof(filler) - 1);
	for (int i = 0; i < 1000; i++)
		log_info("%s", filler);
	logged();
	log_info("back");
	text = strstr(logged(), "tester: back\n");
	assert_non_null(text);
	assert_int_equal(sscanf(text, "tester: back tester: %u log lines were lost", &lost), 1);
	assert_in_range(lost, 900, 999);
	log_info("quiet again");
	assert_string_equal(logged(), "tester: quiet again\n");
}

static char syslog_dir[] = "/tmp/gpusonde-log-XXXXXX";
static char syslog_path[64];

static int listen_like_syslog(void)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	assert_true(fd >= 0);
	unlink(syslog_path);
	strcpy(address.sun_path, syslog_path);
	assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	return fd;
}

static int make_syslog_dir(_unused_ void **state)
{
	if (!mkdtemp(syslog_dir))
		return -1;
	snprintf(syslog_path, sizeof(syslog_path), "%s/log", syslog_dir);
	return 0;
}

static int remove_syslog_dir(_unused_ void **state)
{
	unlink(syslog_path);
	return rmdir(syslog_dir);
}

/* The next datagram, or "". */
static const char *received(int fd)
{
	static char line[2048];
	ssize_t n = recv(fd, line, sizeof(line) - 1, 0);

	line[n > 0 ? n : 0] = '\0';
	return line;
}

static void syslog_gets_daemon_facility(_unused_ void **state)
{
	_cleanup_close_ int fd = listen_like_syslog();
	const char *line;
	char tail[64];

	log_set_syslog_path(syslog_path);
	log_setup(LOG_TARGET_SYSLOG, LOG_INFO, "tester");
	log_error("disk %d", 3);
	line = received(fd);
	assert_memory_equal(line, "<27>", 4); /* daemon is 3, err is 3: 3 * 8 + 3 */
	snprintf(tail, sizeof(tail), " tester[%d]: disk 3", (int)getpid());
	assert_non_null(strstr(line, tail));
	assert_string_equal(logged(), "");
}

static void a_restarted_syslog_is_found_again(_unused_ void **state)
{
	int fd = listen_like_syslog();

	log_set_syslog_path(syslog_path);
	log_setup(LOG_TARGET_SYSLOG, LOG_INFO, "tester");
	log_info("one");
	close(fd);
	log_info("two");
	assert_string_equal(logged(), "tester: two\n");
	fd = listen_like_syslog();
	log_info("three");
	assert_non_null(strstr(received(fd), "]: three"));
	assert_string_equal(logged(), "");
	close(fd);
}

static void a_full_syslog_costs_lines_that_are_told(_unused_ void **state)
{
	_cleanup_close_ int fd = listen_like_syslog();
	const char *last = "";
	unsigned lost = 0, got = 0;

	log_set_syslog_path(syslog_path);
	log_setup(LOG_TARGET_SYSLOG, LOG_INFO, "tester");
	for (int i = 0; i < 5000; i++)
		log_info("line %d", i);
	while (received(fd)[0] != '\0')
		got++;
	log_info("back");
	assert_non_null(strstr(received(fd), "]: back"));
	last = strstr(received(fd), "]: ");
	assert_non_null(last);
	assert_int_equal(sscanf(last, "]: %u log lines were lost", &lost), 1);
	assert_int_equal(got + lost, 5000);
	assert_string_equal(logged(), "");
}

static void without_syslog_stderr_gets_it(_unused_ void **state)
{
	log_set_syslog_path("/nonexistent/gpusonde/log");
	log_setup(LOG_TARGET_SYSLOG, LOG_INFO, "tester");
	log_error("nobody there");
	assert_string_equal(logged(), "tester: nobody there\n");
}

static void limit_counts_and_tells(_unused_ void **state)
{
	struct log_limit limit = { .burst = 2, .interval_ns = 60 * NSEC_PER_SEC, .what = "bad clients" };

	log_setup(LOG_TARGET_STDERR, LOG_INFO, "tester");
	clock_freeze(true);
	assert_true(log_limit_allow(&limit));
	assert_true(log_limit_allow(&limit));
	assert_false(log_limit_allow(&limit));
	clock_advance(59 * NSEC_PER_SEC);
	assert_false(log_limit_allow(&limit));
	assert_string_equal(logged(), "");
	clock_advance(NSEC_PER_SEC);
	assert_true(log_limit_allow(&limit));
	assert_string_equal(logged(), "tester: 2 further lines about bad clients were suppressed\n");
	clock_advance(60 * NSEC_PER_SEC);
	assert_true(log_limit_allow(&limit));
	assert_string_equal(logged(), "");
	clock_freeze(false);
}

static unsigned count_lines(const char *text)
{
	unsigned n = 0;

	for (; *text; text++)
		n += *text == '\n';
	return n;
}

static void a_flood_is_limited_and_counted(_unused_ void **state)
{
	const char *text;

	log_set_minute(60 * NSEC_PER_SEC);
	log_setup(LOG_TARGET_STDERR, LOG_INFO, "tester");
	for (unsigned i = 0; i < LOG_LINES_A_MINUTE + 100; i++)
		log_info("line %u", i);
	assert_int_equal(count_lines(logged()), LOG_LINES_A_MINUTE);
	log_error("errors, too");
	assert_string_equal(logged(), "");
	log_set_minute(0);
	log_info("the next minute");
	text = logged();
	log_set_minute(60 * NSEC_PER_SEC);
	assert_string_equal(text, "tester: 101 log lines were suppressed: more than 600 in a minute\n"
				  "tester: the next minute\n");
	log_setup(LOG_TARGET_STDERR, LOG_DEBUG, "tester");
	for (unsigned i = 0; i < LOG_LINES_A_MINUTE + 100; i++)
		log_debug("line %u", i);
	assert_int_equal(count_lines(logged()), LOG_LINES_A_MINUTE + 100);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(levels_decide, capture, release),
		cmocka_unit_test_setup_teardown(one_call_is_one_line, capture, release),
		cmocka_unit_test_setup_teardown(errno_is_usable_and_kept, capture, release),
		cmocka_unit_test_setup_teardown(journal_gets_priorities, capture, release),
		cmocka_unit_test_setup_teardown(a_stalled_reader_costs_lines_that_are_told, capture, release),
		cmocka_unit_test_setup_teardown(syslog_gets_daemon_facility, capture, release),
		cmocka_unit_test_setup_teardown(a_restarted_syslog_is_found_again, capture, release),
		cmocka_unit_test_setup_teardown(a_full_syslog_costs_lines_that_are_told, capture, release),
		cmocka_unit_test_setup_teardown(without_syslog_stderr_gets_it, capture, release),
		cmocka_unit_test_setup_teardown(limit_counts_and_tells, capture, release),
		cmocka_unit_test_setup_teardown(a_flood_is_limited_and_counted, capture, release),
	};

	return cmocka_run_group_tests(tests, make_syslog_dir, remove_syslog_dir);
}
