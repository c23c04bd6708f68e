// SPDX-License-Identifier: Apache-2.0
/* What the agent makes of a helper's answers: those of one that is honest, lies, hangs, or never ends. */
#include "test.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "fake_helper.h"
#include "unwind/names.h"

enum { INO = 5 };

struct fixture {
	sd_event *event;
	struct unwind *u;
	struct unwind_names *names;
	pid_t other; /* another process */
};

static void readable(const char *symbol, char *buf, size_t size)
{
	snprintf(buf, size, "%s", symbol);
}

static struct unwind_names *names_new(void)
{
	static const struct unwind_names_limits limits = { 1024, 1 << 20 };
	struct unwind_names *names;

	assert_int_equal(unwind_names_new(readable, &limits, &names), 0);
	return names;
}

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	assert_true(sd_event_new(&f->event) >= 0);
	clock_freeze(true);
	f->u = fake_start(f->event, 16);
	f->names = names_new();
	unwind_set_names(f->u, f->names);
	f->other = fork();
	if (f->other == 0) {
		pause();
		_exit(0);
	}
	*state = f;
	return f->other < 0 ? -1 : 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	unwind_free(f->u);
	unwind_names_free(f->names);
	sd_event_unref(f->event);
	clock_freeze(false);
	kill(f->other, SIGKILL);
	waitpid(f->other, NULL, 0);
	free(f);
	return 0;
}

/* ---- answers ---- */

static void tell_end(int error)
{
	fake_tell(UNWIND_TOLD_END, error, 0, NULL, 0, -1);
}

/* The process of @pid maps one file, INO. */
static void list(struct fixture *f, pid_t pid)
{
	const struct unwind_told_area area = { .start = 0x1000, .end = 0x9000, .dev = 1, .ino = INO };

	assert_int_equal(unwind_mapped(f->u, pid), 0);
	assert_int_equal(fake.asked.op, UNWIND_ASK_LIST);
	assert_int_equal(fake.asked.pid, pid);
	fake_tell(UNWIND_TOLD_AREAS, 0, 1, &area, sizeof(area), -1);
	tell_end(0);
}

static int null_fd(void)
{
	int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

	assert_true(fd >= 0);
	return fd;
}

static void tell_file(uint32_t rows, uint32_t rules)
{
	const struct unwind_told_file file = { .rows = rows, .rules = rules, .name = "libx.so" };

	assert_int_equal(fake.asked.op, UNWIND_ASK_FILE);
	assert_int_equal(fake.asked.ino, INO);
	fake_tell(UNWIND_TOLD_FILE, 0, 1, &file, sizeof(file), null_fd());
}

static const struct unwind_rule rules[] = { { .kind = UNWIND_NONE }, { .kind = UNWIND_SP, .cfa = 16 } };

/* The whole answer about INO: one row. */
static void answer_file(void)
{
	const struct unwind_row row = { 0, 1 };

	tell_file(1, 2);
	fake_tell(UNWIND_TOLD_RULES, 0, 2, rules, sizeof(rules), -1);
	fake_tell(UNWIND_TOLD_ROWS, 0, 1, &row, sizeof(row), -1);
	tell_end(0);
}

static const struct unwind_area *area(const struct fixture *f)
{
	return &f->u->areas[f->u->spaces[0].first];
}

/* ---- tests ---- */

static void a_file_has_its_rows(void **state)
{
	struct fixture *f = *state;

	list(f, getpid());
	assert_int_equal(area(f)->none, TRACE_NATIVE_PENDING);
	answer_file();
	assert_int_equal(area(f)->rows, 1);
	assert_int_equal(fake.rejected, 0);
}

/* They had to make room for others', and are told again: neither the helper nor its user has done wrong. */
static void rows_that_made_room_are_told_again(void **state)
{
	struct fixture *f = *state;

	list(f, getpid());
	answer_file();
	rows_give(f->u, &f->u->files[1]);
	f->u->files[1].state = FILE_QUEUED;
	remote_pump(f->u);
	answer_file();
	assert_int_equal(fake.rejected, 0);
	assert_int_equal(area(f)->rows, 1);
	assert_true(f->u->files[1].fd >= 0);
}

/* All begins anew while names are being read: what comes of the old ones is nothing to be blamed for. */
static void names_that_are_no_more(void **state)
{
	struct fixture *f = *state;
	struct unwind_names *before = f->names;
	struct unwind_place place = { 1, 0x1234 };
	const char *file;
	uint32_t name;

	list(f, getpid());
	answer_file();
	assert_int_equal(unwind_names_add(f->names, &place, 0, &name), 0);
	unwind_work(f->u);
	assert_int_equal(fake.asked.op, UNWIND_ASK_NAMES);
	f->names = names_new();
	unwind_set_names(f->u, f->names);
	unwind_names_free(before);
	assert_int_equal(unwind_names_add(f->names, &place, 0, &name), 0);
	fake_tell(UNWIND_TOLD_NAME, 0, 0, "old", sizeof("old"), -1);
	tell_end(0);
	assert_int_equal(fake.rejected, 0);
	/* And the new ones are asked for. */
	assert_int_equal(fake.asked.op, UNWIND_ASK_NAMES);
	fake_tell(UNWIND_TOLD_NAME, 0, 0, "new", sizeof("new"), -1);
	tell_end(0);
	assert_string_equal(unwind_names_text(f->names, name, &file), "new");
}

/* Its only process has another file in its place: it waits for no one, until another process maps it. */
static void a_file_that_nobody_has(void **state)
{
	struct fixture *f = *state;
	unsigned questions;

	list(f, getpid());
	tell_end(-ESTALE);
	assert_int_equal(area(f)->none, TRACE_NATIVE_NO_FILE);
	questions = fake.questions;
	remote_pump(f->u);
	assert_int_equal(fake.questions, questions);
	list(f, f->other);
	assert_int_equal(fake.asked.pid, f->other);
	answer_file();
	assert_int_equal(area(f)->rows, 1);
}

/* It has rules, of which the helper was lost over: nothing is guessed. */
static void a_file_that_is_cut(void **state)
{
	struct fixture *f = *state;

	list(f, getpid());
	tell_file(1, 2);
	fake.ops.lost(false, fake.userdata);
	assert_int_equal(area(f)->rows, 0);
	assert_int_equal(area(f)->none, TRACE_NATIVE_FULL);
}

static void who_makes_it_hang_waits(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(unwind_mapped(f->u, getpid()), 0);
	fake.ops.lost(true, fake.userdata);
	assert_int_equal(unwind_mapped(f->u, getpid()), 0);
	clock_advance(PENALTY_NS - NSEC_PER_SEC);
	assert_int_equal(unwind_mapped(f->u, getpid()), 0);
	assert_int_equal(fake.questions, 1);
	clock_advance(2 * NSEC_PER_SEC);
	assert_int_equal(unwind_mapped(f->u, getpid()), 0);
	assert_int_equal(fake.questions, 2);
}

static void an_answer_ends(void **state)
{
	struct fixture *f = *state;

	list(f, getpid());
	clock_advance(ANSWER_NS);
	fake_tell(UNWIND_TOLD_ALIVE, 0, 0, NULL, 0, -1);
	assert_int_equal(fake.rejected, 0);
	clock_advance(1);
	fake_tell(UNWIND_TOLD_ALIVE, 0, 0, NULL, 0, -1);
	assert_int_equal(fake.rejected, 1);
}

static void an_answer_has_so_many_messages(void **state)
{
	struct fixture *f = *state;

	list(f, getpid());
	for (unsigned i = 0; i < MESSAGES; i++)
		fake_tell(UNWIND_TOLD_ALIVE, 0, 0, NULL, 0, -1);
	assert_int_equal(fake.rejected, 0);
	fake_tell(UNWIND_TOLD_ALIVE, 0, 0, NULL, 0, -1);
	assert_int_equal(fake.rejected, 1);
}

static void rules_are_known_ones(void **state)
{
	static const struct unwind_rule bad[] = {
		{ .kind = UNWIND_SIGNAL + 1 },
		{ .kind = UNWIND_SP, .fp_saved = UNWIND_AT_FP + 1 },
		{ .kind = UNWIND_SP, .ra_saved = UNWIND_AT_FP + 1 },
		{ .kind = UNWIND_SP, .pad = 1 },
	};
	struct fixture *f = *state;

	for (unsigned i = 0; i < ARRAY_SIZE(bad); i++) {
		clock_advance(PENALTY_NS + SLOWER * CREDIT_NS);
		f->u->files[1].state = FILE_QUEUED;
		f->u->files[1].mapped_by = getpid();
		if (i == 0)
			list(f, getpid());
		else
			remote_pump(f->u);
		tell_file(1, 1);
		fake_tell(UNWIND_TOLD_RULES, 0, 1, &bad[i], sizeof(bad[i]), -1);
		assert_int_equal(fake.rejected, i + 1);
	}
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_file_has_its_rows),
		TEST(rows_that_made_room_are_told_again),
		TEST(names_that_are_no_more),
		TEST(a_file_that_nobody_has),
		TEST(a_file_that_is_cut),
		TEST(who_makes_it_hang_waits),
		TEST(an_answer_ends),
		TEST(an_answer_has_so_many_messages),
		TEST(rules_are_known_ones),
	};

	return cmocka_run_group_tests_name("remote", tests, NULL, NULL);
}
