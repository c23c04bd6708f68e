// SPDX-License-Identifier: Apache-2.0
#include "base/process_id.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/hashmap.h"

/* Fields of /proc/PID/stat, numbered as in proc_pid_stat(5). */
enum {
	STAT_STATE = 3,
	STAT_PARENT,
	STAT_UTIME = 14,
	STAT_STIME,
	STAT_THREADS = 20,
	STAT_START = 22,
	STAT_RESIDENT = 24,
	STAT_ENV_START = 50,
	STAT_ENV_END,
};

/* Nanoseconds of a clock tick. _SC_CLK_TCK is part of the kernel's interface, 100 on our machines. */
static uint64_t tick_ns(void)
{
	long hertz = sysconf(_SC_CLK_TCK);

	return (uint64_t)NSEC_PER_SEC / (hertz > 0 ? (uint64_t)hertz : 100);
}

bool process_id_equal(struct process_id a, struct process_id b)
{
	return a.start_ticks != 0 && a.start_ticks == b.start_ticks && a.pid == b.pid;
}

bool process_id_may_equal(struct process_id a, struct process_id b)
{
	return a.pid == b.pid && (a.start_ticks == 0 || b.start_ticks == 0 || a.start_ticks == b.start_ticks);
}

uint64_t process_id_hash(struct process_id id)
{
	const uint64_t words[2] = { id.pid, id.start_ticks }; /* the structure has padding */

	return hash_bytes(words, sizeof(words));
}

uint64_t process_ticks(uint64_t start_boot_ns)
{
	return start_boot_ns / tick_ns();
}

int64_t process_boot_ns(uint64_t start_ticks)
{
	uint64_t ns;

	if (__builtin_mul_overflow(start_ticks, tick_ns(), &ns) || ns > INT64_MAX)
		return INT64_MAX;
	return (int64_t)ns;
}

/* Reads a field and the blank or line end behind it: a field at the end of the text may be truncated. */
static int stat_field(struct cursor *c, struct cursor *ret_field)
{
	if (cursor_until(c, ' ', ret_field) < 0 && cursor_until(c, '\n', ret_field) < 0)
		return -EBADMSG;
	return cursor_eof(ret_field) || memchr(ret_field->p, '\n', cursor_left(ret_field)) ? -EBADMSG : 0;
}

static int stat_number(struct cursor field, uint64_t *ret_value)
{
	uint64_t value;

	if (cursor_u64(&field, &value) < 0 || !cursor_eof(&field))
		return -EBADMSG;
	*ret_value = value;
	return 0;
}

/* Where to store field @number; NULL: not needed. */
static uint64_t *stat_wanted(struct process_stat *stat, unsigned number)
{
	switch (number) {
	case STAT_PARENT:
		return &stat->parent;
	case STAT_UTIME:
		return &stat->user_ticks;
	case STAT_STIME:
		return &stat->kernel_ticks;
	case STAT_RESIDENT:
		return &stat->resident_pages;
	case STAT_THREADS:
		return &stat->threads;
	case STAT_START:
		return &stat->start_ticks;
	case STAT_ENV_START:
		return &stat->env_start;
	case STAT_ENV_END:
		return &stat->env_end;
	default:
		return NULL;
	}
}

/* "pid (name) state ...": the name may contain anything, so it ends at the last parenthesis of the text. */
int process_stat_parse(const char *text, size_t length, struct process_stat *ret_stat)
{
	const char *first = memchr(text, '(', length), *last = memrchr(text, ')', length);
	struct process_stat stat = { 0 };
	struct cursor c, field;

	if (!first || !last || last < first)
		return -EBADMSG;
	stat.comm = (struct cursor){ .p = first + 1, .end = last };
	c = (struct cursor){ .p = last + 1, .end = text + length };
	cursor_skip_space(&c);
	for (unsigned number = STAT_STATE; number <= STAT_ENV_END; number++) {
		uint64_t *wanted = stat_wanted(&stat, number);
		int r = stat_field(&c, &field);

		if (r == 0 && number == STAT_STATE)
			stat.state = *field.p;
		else if (r == 0 && wanted)
			r = stat_number(field, wanted);
		if (r < 0 && number <= STAT_START)
			return r;
		if (r < 0)
			break;
	}
	*ret_stat = stat;
	return 0;
}
