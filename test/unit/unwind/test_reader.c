// SPDX-License-Identifier: Apache-2.0
/* The helper reads what this process maps, and names its functions; and what one that lies or hangs costs. */
#include "test.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <systemd/sd-event.h>

#include "base/clock.h"
#include "base/macro.h"
#include "helper/helper.h"
#include "unwind/names.h"
#include "unwind/private.h"
#include "unwind/reader.h"

static char reader[PATH_MAX], lying[PATH_MAX];

struct fixture {
	struct unwind_maps maps;
	struct unwind *unwind;
	struct unwind_area *areas;
	sd_event *event;
};

static int sparse(size_t n)
{
	int fd = memfd_create("array", MFD_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, (off_t)n), 0);
	return fd;
}

static void start(struct fixture *f, const char *program)
{
	f->maps.spaces = bpf_map_create(BPF_MAP_TYPE_HASH, "spaces", sizeof(uint32_t),
					sizeof(struct unwind_space), 16, NULL);
	if (f->maps.spaces < 0) {
		print_message("# SKIP no map can be made: %s\n", strerror(errno));
		skip();
	}
	f->maps.areas = sparse(UNWIND_AREAS * sizeof(struct unwind_area));
	f->maps.rows = sparse(UNWIND_ROWS * sizeof(struct unwind_row));
	f->maps.rules = sparse(UNWIND_RULES * sizeof(struct unwind_rule));
	f->areas = mmap(NULL, UNWIND_AREAS * sizeof(*f->areas), PROT_READ, MAP_SHARED, f->maps.areas, 0);
	assert_true(f->areas != MAP_FAILED);
	assert_true(sd_event_new(&f->event) >= 0);
	assert_int_equal(unwind_new(&f->maps, &f->unwind), 0);
	assert_int_equal(unwind_set_reader(f->unwind, f->event, program), 0);
}

static void end(struct fixture *f)
{
	unwind_free(f->unwind);
	sd_event_unref(f->event);
	munmap(f->areas, UNWIND_AREAS * sizeof(*f->areas));
	close(f->maps.spaces);
	close(f->maps.areas);
	close(f->maps.rows);
	close(f->maps.rules);
}

/* The area of @pc in the newest list. NULL: there is none. */
static const struct unwind_area *area_of(const struct fixture *f, const void *pc, uint32_t *ret_space)
{
	uint32_t tgid = (uint32_t)getpid();
	struct unwind_space space;

	if (bpf_map_lookup_elem(f->maps.spaces, &tgid, &space) < 0)
		return NULL;
	*ret_space = space.space;
	for (uint32_t i = space.first; i < space.first + space.n; i++)
		if ((uintptr_t)pc >= f->areas[i].start && (uintptr_t)pc < f->areas[i].end)
			return &f->areas[i];
	return NULL;
}

static void readable(const char *symbol, char *buf, size_t size)
{
	snprintf(buf, size, "%s", symbol);
}

static bool is_named(const struct unwind_names *names, uint32_t name)
{
	const char *file;

	return strcmp(unwind_names_text(names, name, &file), "[not named yet]") != 0;
}

static void reads_and_names(void **state)
{
	static const struct unwind_names_limits limits = { 1024, 1 << 20 };
	_cleanup_(unwind_names_freep) struct unwind_names *names = NULL;
	struct user_shares shares = { .room = { [1] = 1 << 20 } };
	const struct unwind_area *area = NULL;
	struct fixture f = { .unwind = NULL };
	uint32_t space = 0, user = user_shares_user(&shares, getuid()), name, unknown, same;
	struct unwind_place place;
	const char *file;

	(void)state;
	start(&f, reader);
	assert_int_equal(unwind_names_new(readable, &limits, &names), 0);
	unwind_names_share(names, &shares, 1);
	unwind_set_names(f.unwind, names);
	assert_int_equal(unwind_mapped(f.unwind, getpid()), 0);
	for (unsigned turns = 0; turns < 600 && !(area && area->rows > 0); turns++) {
		sd_event_run(f.event, 100 * 1000);
		area = area_of(&f, (void *)(uintptr_t)reads_and_names, &space);
	}
	assert_true(area && area->rows > 0);
	/* The same as what this process itself would read. */
	assert_int_equal(unwind_find(f.unwind, space, (uintptr_t)reads_and_names + 1, &place), 0);
	assert_int_equal(unwind_names_add(names, &place, user, &name), 0);
	assert_int_equal(unwind_names_add(names, &place, user, &same), 0);
	assert_int_equal(name, same);
	place.address = 1;
	assert_int_equal(unwind_names_add(names, &place, user, &unknown), 0);
	unwind_work(f.unwind);
	for (unsigned turns = 0; turns < 600 && !(is_named(names, name) && is_named(names, unknown)); turns++)
		sd_event_run(f.event, 100 * 1000);
	assert_string_equal(unwind_names_text(names, name, &file), "reads_and_names");
	assert_string_equal(file, "test_unwind_reader");
	assert_string_equal(unwind_names_text(names, unknown, &file), "test_unwind_reader+0x1");
	assert_true(shares.users[user].used[1] >=
		    sizeof("reads_and_names") + 2 * sizeof("test_unwind_reader"));
	assert_int_equal(unwind_crowded(f.unwind), 0);
	end(&f);
}

/* Who says what nobody asked for is killed and not believed, and the user of the process waits. */
static void who_lies_is_not_believed(void **state)
{
	struct fixture f = { .unwind = NULL };
	struct helper_stats stats = { .crashes = 0 };
	uint32_t space;

	(void)state;
	start(&f, lying);
	assert_int_equal(unwind_mapped(f.unwind, getpid()), 0);
	for (unsigned turns = 0; turns < 600 && stats.crashes == 0; turns++) {
		sd_event_run(f.event, 100 * 1000);
		unwind_reader_stats(f.unwind, &stats);
	}
	assert_int_equal(stats.crashes, 1);
	assert_null(area_of(&f, (void *)(uintptr_t)who_lies_is_not_believed, &space));
	/* Not again at once, also when one may be started again. */
	clock_advance(30 * NSEC_PER_SEC);
	assert_int_equal(unwind_mapped(f.unwind, getpid()), 0);
	unwind_reader_stats(f.unwind, &stats);
	assert_int_equal(stats.starts, 1);
	clock_advance(600 * NSEC_PER_SEC);
	assert_int_equal(unwind_mapped(f.unwind, getpid()), 0);
	unwind_reader_stats(f.unwind, &stats);
	assert_int_equal(stats.starts, 2);
	end(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_and_names),
		cmocka_unit_test(who_lies_is_not_believed),
	};
	const char *build = getenv("GPUSONDE_TEST_BUILD");

	snprintf(lying, sizeof(lying), "%s/test/unit/helper/fake_reader", build);
	snprintf(reader, sizeof(reader), "%s/gpusonde-reader", build);
	return cmocka_run_group_tests_name("reader", tests, NULL, NULL);
}
