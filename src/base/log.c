// SPDX-License-Identifier: Apache-2.0
#include "base/log.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"

enum {
	LINE_MAX_BYTES = 1024, /* below PIPE_BUF: a pipe takes a line whole or not at all */
	PATIENCE_MS = 20, /* how long to wait for a reader that has stalled; further lines do not wait */
};

static enum log_target target = LOG_TARGET_STDERR;
static int max_level = LOG_INFO;
static const char *ident;
static const char *syslog_path = "/dev/log";
static int syslog_fd = -1;
static bool stderr_is_journal;
static atomic_bool stalled;
static atomic_uint lost;
/* The current minute, and the lines in it. */
static int64_t minute_length_ns = 60 * NSEC_PER_SEC;
static _Atomic int64_t minute_ns;
static atomic_uint minute_lines, suppressed;

/* systemd passes device and inode of the journal's stream; they no longer match if stderr was redirected. */
static bool is_journal_stream(int fd)
{
	const char *named = getenv("JOURNAL_STREAM");
	char actual[64];
	struct stat st;

	if (!named || fstat(fd, &st) < 0)
		return false;
	snprintf(actual, sizeof(actual), "%ju:%ju", (uintmax_t)st.st_dev, (uintmax_t)st.st_ino);
	return STRV_EQ(named, actual);
}

/* Reconnects after a restart of the daemon; the descriptor number remains, so other threads can use it. */
static int connect_syslog(int fd)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };

	if (strlen(syslog_path) >= sizeof(address.sun_path))
		return -ENAMETOOLONG;
	memcpy(address.sun_path, syslog_path, strlen(syslog_path) + 1);
	return connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0 ? -errno : 0;
}

void log_setup(enum log_target new_target, int new_max_level, const char *new_ident)
{
	target = new_target;
	max_level = new_max_level;
	ident = new_ident;
	stderr_is_journal = is_journal_stream(STDERR_FILENO);
	minute_ns = 0;
	minute_lines = 0;
	closep(&syslog_fd);
	syslog_fd = target == LOG_TARGET_SYSLOG ?
			    socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0) :
			    -1;
}

int log_max_level(void)
{
	return max_level;
}

void log_set_minute(int64_t ns)
{
	minute_length_ns = ns;
}

void log_set_syslog_path(const char *path)
{
	syslog_path = path;
}

/* One call must result in one line, even if it contains a workload's name with control characters. */
static void defuse(char *line)
{
	for (char *at = line; *at; at++) {
		if ((unsigned char)*at < ' ' || *at == 0x7f)
			*at = '?';
	}
}

/* RFC 3164's header, which every syslog daemon reads. */
static void syslog_header(int level, char *buf, size_t cap)
{
	time_t now = (time_t)(clock_real_ns() / NSEC_PER_SEC);
	char when[32];
	struct tm tm;

	localtime_r(&now, &tm);
	strftime(when, sizeof(when), "%b %e %H:%M:%S", &tm);
	snprintf(buf, cap, "<%d>%s %s[%d]: ", LOG_DAEMON | level, when, ident, (int)getpid());
}

static int to_syslog(int level, const char *message)
{
	char line[LINE_MAX_BYTES + 128];
	char header[128];
	size_t len;

	syslog_header(level, header, sizeof(header));
	len = (size_t)snprintf(line, sizeof(line), "%s%s", header, message);
	if (send(syslog_fd, line, len, MSG_NOSIGNAL) >= 0)
		return 0;
	if (errno != EAGAIN && connect_syslog(syslog_fd) == 0 &&
	    send(syslog_fd, line, len, MSG_NOSIGNAL) >= 0)
		return 0;
	return -errno;
}

static bool to_stderr(int level, const char *message)
{
	struct pollfd reader = { .fd = STDERR_FILENO, .events = POLLOUT };
	char line[LINE_MAX_BYTES + 128];
	int n;

	if (stderr_is_journal)
		n = snprintf(line, sizeof(line), "<%d>%s\n", level, message);
	else
		n = snprintf(line, sizeof(line), "%s: %s\n", ident ? ident : program_invocation_short_name,
			     message);
	if ((size_t)n >= sizeof(line))
		n = (int)sizeof(line) - 1;
	/* Files are always ready; a pipe is if PIPE_BUF bytes fit, so the write below does not block. */
	if (poll(&reader, 1, stalled ? 0 : PATIENCE_MS) <= 0 || !(reader.revents & POLLOUT)) {
		stalled = true;
		return false;
	}
	stalled = false;
	return write(STDERR_FILENO, line, (size_t)n) == n;
}

static void emit(int level, const char *message)
{
	int r = target == LOG_TARGET_SYSLOG ? to_syslog(level, message) : -ENOTCONN;

	/* -EAGAIN is a slow reader; after any other failure there is none, so write to stderr. */
	if (r == -EAGAIN || (r < 0 && !to_stderr(level, message)))
		lost++;
}

/*
 * Whether another line may be written in this minute. Without a limit, users of the control socket, or of any
 * other input that is logged, could fill the disk. Debugging is exempt.
 */
static bool take_line(int level)
{
	int64_t now = clock_mono_ns(), begin = minute_ns;

	if (level >= LOG_DEBUG)
		return true;
	if ((begin == 0 || now - begin >= minute_length_ns) &&
	    atomic_compare_exchange_strong(&minute_ns, &begin, now))
		minute_lines = 0;
	if (atomic_fetch_add(&minute_lines, 1) < LOG_LINES_A_MINUTE)
		return true;
	suppressed++;
	return false;
}

static void report_suppressed(void)
{
	unsigned n = atomic_exchange(&suppressed, 0);
	char message[128];

	if (n == 0)
		return;
	snprintf(message, sizeof(message), "%u log lines were suppressed: more than %u in a minute", n,
		 (unsigned)LOG_LINES_A_MINUTE);
	emit(LOG_WARNING, message);
}

void log_at(int level, const char *fmt, ...)
{
	char message[LINE_MAX_BYTES];
	int saved = errno;
	unsigned missed;
	va_list ap;

	if (level > max_level || !take_line(level))
		return;
	report_suppressed();
	va_start(ap, fmt);
	vsnprintf(message, sizeof(message), fmt, ap);
	va_end(ap);
	defuse(message);
	missed = atomic_exchange(&lost, 0);
	emit(level, message);
	if (missed > 0 && lost == 0) {
		snprintf(message, sizeof(message), "%u log lines were lost: the log's reader did not keep up",
			 missed);
		emit(LOG_WARNING, message);
	} else {
		lost += missed;
	}
	errno = saved;
}

bool log_limit_allow(struct log_limit *limit)
{
	int64_t now = clock_mono_ns();

	if (!limit->begun || now - limit->begin_ns >= limit->interval_ns) {
		if (limit->suppressed > 0)
			log_notice("%u further lines about %s were suppressed", limit->suppressed,
				   limit->what ? limit->what : "the same");
		limit->begun = true;
		limit->begin_ns = now;
		limit->allowed = 0;
		limit->suppressed = 0;
	}
	if (limit->allowed < limit->burst) {
		limit->allowed++;
		return true;
	}
	limit->suppressed++;
	return false;
}

void log_lines(int level, const char *text)
{
	for (size_t n; *text; text += n + (text[n] == '\n')) {
		n = strcspn(text, "\n");
		log_at(level, "%.*s", (int)n, text);
	}
}
