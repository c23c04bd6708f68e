// SPDX-License-Identifier: Apache-2.0
#include "devcgroup/rules.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/xattr.h>

#include "base/cursor.h"

/* The extended attribute of a cgroup's directory, which the kernel keeps for as long as the cgroup. */
#define ADDED "trusted.gpusonde.devices"

struct rule {
	char type; /* 'a', 'b', 'c' */
	bool any_major, any_minor;
	uint64_t major, minor;
	unsigned access;
};

static int parse_number(struct cursor *c, uint64_t *ret_number, bool *ret_any)
{
	*ret_any = cursor_literal(c, "*");
	return *ret_any ? 0 : cursor_u64(c, ret_number);
}

/* "c 195:* rwm" */
static int parse_rule(struct cursor c, struct rule *ret_rule)
{
	struct rule rule = { 0 };

	if (cursor_left(&c) < 2)
		return -EBADMSG;
	rule.type = *c.p++;
	cursor_skip_space(&c);
	if (parse_number(&c, &rule.major, &rule.any_major) < 0 || !cursor_literal(&c, ":") ||
	    parse_number(&c, &rule.minor, &rule.any_minor) < 0)
		return -EBADMSG;
	for (cursor_skip_space(&c); !cursor_eof(&c); c.p++)
		rule.access |= *c.p == 'r' ? ACCESS_READ :
			       *c.p == 'w' ? ACCESS_WRITE :
			       *c.p == 'm' ? ACCESS_MKNOD :
					     0U;
	*ret_rule = rule;
	return 0;
}

static bool next_rule(struct cursor *c, struct rule *ret_rule)
{
	while (!cursor_eof(c)) {
		struct cursor line = *c;

		if (cursor_until(c, '\n', &line) < 0)
			c->p = c->end;
		if (parse_rule(line, ret_rule) == 0)
			return true;
	}
	return false;
}

bool rules_allow(const char *list, uint32_t major, uint32_t minor, unsigned access)
{
	struct cursor c = cursor_over(list, strlen(list));
	struct rule rule;

	while (next_rule(&c, &rule))
		if (rule.type != 'b' && (rule.any_major || rule.major == major) &&
		    (rule.any_minor || rule.minor == minor) && (access & ~rule.access) == 0)
			return true;
	return false;
}

unsigned rules_of_device(const char *list, uint32_t major, uint32_t minor)
{
	struct cursor c = cursor_over(list, strlen(list));
	unsigned access = 0;
	struct rule rule;

	while (next_rule(&c, &rule))
		if (rule.type == 'c' && !rule.any_major && rule.major == major &&
		    (minor == UINT32_MAX ? rule.any_minor : !rule.any_minor && rule.minor == minor))
			access |= rule.access;
	return access;
}

bool rules_allow_all(const char *list)
{
	return *list == 'a';
}

int rules_read(int cgroup, char *buf, size_t size)
{
	return read_file_at(cgroup, "devices.list", buf, size, NULL);
}

void rule_write(uint32_t major, uint32_t minor, unsigned access, char *buf, size_t size)
{
	char number[16] = "*";

	if (minor != UINT32_MAX)
		snprintf(number, sizeof(number), "%u", minor);
	snprintf(buf, size, "c %u:%s %s%s%s", major, number, access & ACCESS_READ ? "r" : "",
		 access & ACCESS_WRITE ? "w" : "", access & ACCESS_MKNOD ? "m" : "");
}

int rule_apply(int cgroup, const char *file, const char *rule)
{
	_cleanup_close_ int fd = openat(cgroup, file, O_WRONLY | O_CLOEXEC | O_NOFOLLOW);
	ssize_t n;

	if (fd < 0)
		return -errno;
	n = write(fd, rule, strlen(rule));
	return n < 0 ? -errno : 0;
}

int rules_added(int cgroup, char *buf, size_t size)
{
	ssize_t n = fgetxattr(cgroup, ADDED, buf, size - 1);

	if (n < 0)
		return -errno;
	buf[n] = 0;
	return n > 0 ? 0 : -ENODATA;
}

int rules_set_added(int cgroup, const char *text)
{
	int r = *text ? fsetxattr(cgroup, ADDED, text, strlen(text), 0) : fremovexattr(cgroup, ADDED);

	return r < 0 && (*text || errno != ENODATA) ? -errno : 0;
}
