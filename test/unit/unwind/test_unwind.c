// SPDX-License-Identifier: Apache-2.0
/* Lists of this process's own mappings, in files in place of the kernel side's arrays. */
#include <bpf/bpf.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/macro.h"
#include "bpf/unwind.h"
#include "unwind/unwind.h"

struct fixture {
	struct unwind_maps maps;
	struct unwind *unwind;
	struct unwind_area *areas;
};

static int sparse(size_t n)
{
	int fd = memfd_create("array", MFD_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, (off_t)n), 0);
	return fd;
}

static void start(struct fixture *f, uint32_t files)
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
	f->maps.files = files;
	f->areas = mmap(NULL, UNWIND_AREAS * sizeof(*f->areas), PROT_READ, MAP_SHARED, f->maps.areas, 0);
	assert_true(f->areas != MAP_FAILED);
	assert_int_equal(unwind_new(&f->maps, &f->unwind), 0);
}

static void end(struct fixture *f)
{
	unwind_free(f->unwind);
	munmap(f->areas, UNWIND_AREAS * sizeof(*f->areas));
	close(f->maps.spaces);
	close(f->maps.areas);
	close(f->maps.rows);
	close(f->maps.rules);
}

static struct unwind_space listed(const struct fixture *f)
{
	uint32_t tgid = (uint32_t)getpid();
	struct unwind_space space = { .n = 0 };

	assert_int_equal(bpf_map_lookup_elem(f->maps.spaces, &tgid, &space), 0);
	return space;
}

/* The area of @pc in the newest list. */
static const struct unwind_area *area_of(const struct fixture *f, const void *pc)
{
	struct unwind_space space = listed(f);

	for (uint32_t i = space.first; i < space.first + space.n; i++)
		if ((uintptr_t)pc >= f->areas[i].start && (uintptr_t)pc < f->areas[i].end)
			return &f->areas[i];
	fail();
	return NULL;
}

/* A page of code of the file @fd from @offset on. */
static void *map_code(int fd, off_t offset)
{
	void *page =
		mmap(NULL, (size_t)sysconf(_SC_PAGESIZE), PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, offset);

	assert_true(page != MAP_FAILED);
	return page;
}

static void unmap(void *page)
{
	munmap(page, (size_t)sysconf(_SC_PAGESIZE));
}

static void work(struct fixture *f)
{
	while (unwind_work(f->unwind))
		;
}

static void test_lists(void **state)
{
	struct fixture f = { .unwind = NULL };
	struct unwind_space first, second;
	struct unwind_place place;
	void *page;
	int fd = sparse(1 << 16), own;

	(void)state;
	start(&f, 0);
	assert_int_equal(unwind_mapped(f.unwind, getpid()), 0);
	work(&f);
	first = listed(&f);
	assert_true(area_of(&f, (void *)(uintptr_t)test_lists)->rows > 0);
	assert_int_equal(unwind_find(f.unwind, first.space, (uintptr_t)test_lists, &place), 0);
	assert_non_null(unwind_path(f.unwind, place.file, &own));
	/* The list is the same. */
	assert_int_equal(unwind_mapped(f.unwind, getpid()), 0);
	assert_int_equal(listed(&f).space, first.space);
	/* Of a file that is none of ours nothing is said but its addresses. */
	page = map_code(fd, 0);
	assert_int_equal(unwind_mapped(f.unwind, getpid()), 0);
	second = listed(&f);
	assert_true(second.space != first.space);
	assert_int_equal(area_of(&f, page)->none, TRACE_NATIVE_NO_FILE);
	assert_int_equal(unwind_find(f.unwind, second.space, (uintptr_t)page, &place), 0);
	assert_int_equal(place.file, 0);
	assert_int_equal(place.address, (uintptr_t)page);
	unmap(page);
	close(fd);
	end(&f);
}

/* What was freed has no number that the kernel side may still have. */
static void test_freed(void **state)
{
	struct fixture f = { .unwind = NULL };
	struct trace_header over = { .type = TRACE_EVENT_EXIT, .tgid = (uint32_t)getpid() };
	int fd = sparse(1 << 16);
	struct unwind_space first;
	void *page;

	(void)state;
	start(&f, 0);
	assert_int_equal(unwind_mapped(f.unwind, getpid()), 0);
	assert_int_equal(unwind_mapped(f.unwind, getppid()), 0);
	first = listed(&f);
	unwind_event(f.unwind, &over);
	assert_false(unwind_again(f.unwind, getpid(), false));
	assert_int_equal(f.areas[first.first].space, first.space); /* events may still have it */
	clock_advance(3 * NSEC_PER_SEC);
	/* A longer one does not lie in its place. */
	page = map_code(fd, 0);
	assert_int_equal(unwind_mapped(f.unwind, getpid()), 0);
	assert_true(listed(&f).first != first.first);
	for (uint32_t i = first.first; i < first.first + first.n; i++)
		assert_int_equal(f.areas[i].space, 0);
	unmap(page);
	close(fd);
	end(&f);
}

static bool is_due(const struct fixture *f)
{
	return unwind_next_ns(f->unwind) <= clock_mono_ns();
}

/* What changes is read again at once, what does not less and less often. */
static void test_again(void **state)
{
	struct fixture f = { .unwind = NULL };
	struct unwind_space first;
	int fd = sparse(1 << 16);
	void *page;

	(void)state;
	start(&f, 0);
	assert_false(unwind_again(f.unwind, getpid(), false));
	assert_int_equal(unwind_mapped(f.unwind, getpid()), 0);
	first = listed(&f);
	assert_false(is_due(&f));
	page = map_code(fd, 0);
	assert_true(unwind_again(f.unwind, getpid(), false));
	assert_true(is_due(&f));
	work(&f);
	assert_true(listed(&f).space != first.space);
	first = listed(&f);
	clock_freeze(true);
	clock_advance(60 * NSEC_PER_SEC);
	assert_true(unwind_again(f.unwind, getpid(), false));
	work(&f);
	for (int64_t wait = 200; wait <= 1600; wait *= 2) {
		assert_true(unwind_again(f.unwind, getpid(), false));
		clock_advance((wait - 1) * NSEC_PER_MSEC);
		assert_false(is_due(&f));
		clock_advance(NSEC_PER_MSEC);
		assert_true(is_due(&f));
		work(&f);
		assert_int_equal(listed(&f).space, first.space);
		assert_false(is_due(&f));
	}
	clock_freeze(false);
	unmap(page);
	close(fd);
	end(&f);
}

/* A file that nobody maps gives way, unless something in it is to be named; what has no room says so. */
static void test_full(void **state)
{
	struct fixture f = { .unwind = NULL };
	struct unwind_place place;
	void *page;
	int fd = sparse(1 << 16);
	uint32_t files = 0, seen = 0;

	(void)state;
	start(&f, 0);
	assert_int_equal(unwind_mapped(f.unwind, getpid()), 0);
	for (uint32_t i = 0; i < listed(&f).n; i++) {
		assert_int_equal(unwind_find(f.unwind, listed(&f).space, f.areas[i].start, &place), 0);
		files = MAX(files, place.file);
	}
	end(&f);
	start(&f, files);
	assert_int_equal(unwind_mapped(f.unwind, getpid()), 0);
	seen = listed(&f).space;
	assert_int_equal(unwind_crowded(f.unwind), 0);
	/* One more than there is room for. */
	page = map_code(fd, 0);
	assert_int_equal(unwind_mapped(f.unwind, getpid()), 0);
	assert_int_equal(area_of(&f, page)->none, TRACE_NATIVE_CROWDED);
	assert_int_equal(unwind_crowded(f.unwind), 1);
	assert_true(listed(&f).space != seen);
	unmap(page);
	close(fd);
	end(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lists),
		cmocka_unit_test(test_freed),
		cmocka_unit_test(test_again),
		cmocka_unit_test(test_full),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
