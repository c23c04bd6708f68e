// SPDX-License-Identifier: Apache-2.0
/* The real helpers, on this machine's files; what hostile ones answer; what a list of sites must be. */
#include "needs.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "proc/maps.h"
#include "trace/engine.h"
#include "trace/reader_sites.h"
#include "trace/readers.h"

#define PATIENCE_NS (30 * NSEC_PER_SEC)

static struct fixture {
	sd_event *event;
	struct readers *readers;
	unsigned looked, opened, areas;
	bool saw_library;
	struct reader_result result;
	uint32_t sites_n, chosen_n;
	struct stat st;
} f;

static char program[4096], library[4096];
static struct site_query query = { .libraries = { [PROBE_CUDA] = true } };

static void on_looked(const struct reader_file *file, enum reader_outcome outcome, int error,
		      const void *message, size_t n, void *userdata)
{
	struct files_area area;
	const char *path;
	size_t at = 0;

	assert_ptr_equal(userdata, &f);
	f.looked++;
	f.result.outcome = outcome;
	f.result.error = error;
	while (message && files_areas_next(message, n, &at, &area, &path)) {
		f.areas++;
		f.saw_library |= file->pid == getpid() && area.path_n == strlen(library) &&
				 memcmp(path, library, area.path_n) == 0;
	}
}

static void on_opened(const struct reader_file *file, struct reader_result *result, void *userdata)
{
	assert_ptr_equal(userdata, &f);
	assert_ptr_equal(file->data, &f);
	f.opened++;
	f.result = *result;
	f.sites_n = result->sites ? result->sites->n : 0;
	for (uint32_t i = 0; i < f.sites_n; i++)
		f.chosen_n += (result->sites->at[i].flags & SITE_ENTRY_CHOSEN) != 0;
	if (result->fd >= 0)
		assert_int_equal(fstat(result->fd, &f.st), 0);
}

static void begin_with(const char *path)
{
	static const struct readers_ops ops = { on_looked, on_opened };
	const struct readers_config config = {
		.program = program, .trust = "", .roles = LIBRARY_BIT(PROBE_CUDA), .query = &query
	};

	need_programs();
	snprintf(program, sizeof(program), "%s", path);
	snprintf(library, sizeof(library), "%s/sim/cuda/libcuda.so.1", test_build_root());
	site_rules_default(62, &query.rules);
#if defined(__aarch64__)
	site_rules_default(183, &query.rules);
#endif
	assert_true(sd_event_new(&f.event) >= 0);
	assert_int_equal(readers_new(f.event, &config, &ops, &f, &f.readers), 0);
}

static int begin(void **state)
{
	char path[4096];

	(void)state;
	snprintf(path, sizeof(path), "%s/gpusonde-reader", test_build_root());
	begin_with(path);
	return 0;
}

static int end(void **state)
{
	(void)state;
	readers_free(f.readers);
	sd_event_unref(f.event);
	memset(&f, 0, sizeof(f));
	return 0;
}

#define WAIT_FOR(condition_)                                            \
	do {                                                            \
		int64_t until = clock_mono_ns() + PATIENCE_NS;          \
                                                                        \
		while (!(condition_)) {                                 \
			if (clock_mono_ns() > until)                    \
				fail_msg("in vain: %s", #condition_);   \
			assert_true(sd_event_run(f.event, 50000) >= 0); \
		}                                                       \
	} while (0)

static void an_expected_file_is_opened_and_listed(void **state)
{
	const struct reader_file file = { .path = library, .path_n = strlen(library), .data = &f };
	struct stat st;

	(void)state;
	assert_int_equal(readers_open(f.readers, &file), 0);
	WAIT_FOR(f.opened == 1);
	assert_int_equal(f.result.error, 0);
	assert_true(f.result.allowed);
	assert_int_equal(stat(library, &st), 0);
	assert_int_equal(f.st.st_ino, st.st_ino);
	assert_int_equal(f.result.size, st.st_size);
	assert_true(f.sites_n > 50);
	assert_true(f.chosen_n > 0);
}

static void a_mapped_file_is_found_and_opened(void **state)
{
	struct reader_file file = { .pid = getpid(), .path = library, .path_n = strlen(library), .data = &f };
	int fd = open(library, O_RDONLY | O_CLOEXEC);
	struct proc_maps maps;
	struct proc_map map;

	(void)state;
	assert_true(fd >= 0);
	assert_true(mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0) != MAP_FAILED);
	close(fd);
	assert_int_equal(readers_look(f.readers, getpid(), 0), 0);
	WAIT_FOR(f.looked == 1);
	assert_int_equal(f.result.error, 0);
	assert_true(f.saw_library);
	assert_int_equal(proc_maps_open("/proc", getpid(), &maps), 0);
	while (proc_maps_next(&maps, &map) > 0)
		if (map.executable && map.path_n == strlen(library) &&
		    memcmp(map.path, library, map.path_n) == 0) {
			file.start = map.start;
			file.end = map.end;
			file.dev = map.dev;
			file.ino = map.ino;
		}
	proc_maps_done(&maps);
	assert_int_not_equal(file.ino, 0);
	assert_int_equal(readers_open(f.readers, &file), 0);
	WAIT_FOR(f.opened == 1);
	assert_int_equal(f.result.error, 0);
	assert_int_equal(f.st.st_ino, file.ino);
	assert_true(f.sites_n > 50);
	/* Another file than the mapped one is not opened in its place. */
	file.ino++;
	assert_int_equal(readers_open(f.readers, &file), 0);
	WAIT_FOR(f.opened == 2);
	assert_true(f.result.error < 0);
	assert_int_equal(f.result.fd, -1);
}

static void what_cannot_be_opened_is_said(void **state)
{
	struct reader_file file = { .path = "/nonexistent/libcuda.so.1", .path_n = 25, .data = &f };

	(void)state;
	assert_int_equal(readers_open(f.readers, &file), 0);
	WAIT_FOR(f.opened == 1);
	assert_int_equal(f.result.error, -2);
	file.path = "/dev/null";
	file.path_n = strlen(file.path);
	assert_int_equal(readers_open(f.readers, &file), 0);
	WAIT_FOR(f.opened == 2);
	assert_true(f.result.error < 0 || !f.result.allowed);
	assert_int_equal(f.result.fd, -1);
	file.path = "/proc/self/maps";
	file.path_n = strlen(file.path);
	assert_int_equal(readers_open(f.readers, &file), 0);
	WAIT_FOR(f.opened == 3);
	assert_false(f.result.allowed);
	assert_string_equal(f.result.type, "proc");
}

static void too_many_requests_are_refused(void **state)
{
	struct readers_stats stats;
	unsigned taken = 0;

	(void)state;
	while (readers_look(f.readers, getpid(), 0) == 0)
		taken++;
	assert_int_equal(taken, READER_REQUESTS_MAX);
	readers_stats(f.readers, &stats);
	assert_int_equal(stats.refused, 1);
	WAIT_FOR(f.looked == taken);
	assert_int_equal(readers_look(f.readers, getpid(), 0), 0);
}

/* A copy of the library that belongs to a user. */
static void copy_for_user(char folder[], char *path, size_t size)
{
	char command[9000];

	assert_non_null(mkdtemp(folder));
	assert_int_equal(chmod(folder, 0755), 0);
	snprintf(path, size, "%s/libcuda.so.1", folder);
	snprintf(command, sizeof(command), "cp -L %s %s && chmod 666 %s", library, path, path);
	assert_int_equal(system(command), 0);
}

static void a_file_of_users_has_no_hold_of_the_next(void **state)
{
	char folder[] = "/var/tmp/gpusonde-test-readers-XXXXXX", path[128];
	struct reader_file file = { .path = library, .path_n = strlen(library), .data = &f };
	struct readers_stats stats;

	(void)state;
	if (geteuid() != 0)
		need_unmet("not root: the files of this folder are a user's");
	copy_for_user(folder, path, sizeof(path));
	assert_int_equal(readers_open(f.readers, &file), 0);
	WAIT_FOR(f.opened == 1);
	assert_int_equal(readers_open(f.readers, &file), 0);
	WAIT_FOR(f.opened == 2);
	readers_stats(f.readers, &stats);
	assert_int_equal(stats.sites.starts, 1);
	file.path = path;
	file.path_n = strlen(path);
	assert_int_equal(readers_open(f.readers, &file), 0);
	WAIT_FOR(f.opened == 3);
	assert_true(f.result.allowed);
	assert_true(f.result.by_users);
	file.asker = 7;
	for (unsigned i = 0; i < 20; i++) {
		assert_int_equal(readers_open(f.readers, &file), 0);
		WAIT_FOR(f.opened == 4 + i);
		assert_int_equal(f.result.outcome, READER_ANSWERED);
		assert_int_equal(f.result.error, 0);
	}
	readers_stats(f.readers, &stats);
	assert_int_equal(stats.sites.starts, 21);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(rmdir(folder), 0);
}

/*
 * A program that stops itself, before it reads a question, while the file "hold" is beside it; then it is
 * the helper.
 */
static void make_holder(char folder[static 64], char holder[static 96], char hold[static 96])
{
	int fd;

	snprintf(folder, 64, "/tmp/gpusonde-test-XXXXXX");
	assert_non_null(mkdtemp(folder));
	snprintf(holder, 96, "%s/holder", folder);
	snprintf(hold, 96, "%s/hold", folder);
	fd = open(holder, O_WRONLY | O_CREAT | O_CLOEXEC, 0700);
	assert_true(dprintf(fd, "#!/bin/sh\n[ ! -e %s ] || kill -STOP $$\nexec %s \"$@\"\n", hold, program) >
		    0);
	close(fd);
	fd = open(hold, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	close(fd);
}

/* Asked in vain, the first time it is asked again, the second is the end of it. */
static void what_helpers_are_lost_over(void **state)
{
	char folder[64], holder[96], hold[96];
	struct readers_stats stats;

	make_holder(folder, holder, hold);
	end(state);
	begin_with(holder);
	assert_int_equal(readers_look(f.readers, getpid(), 7), 0);
	WAIT_FOR(f.looked == 1);
	assert_int_equal(f.result.outcome, READER_LOST);
	assert_int_equal(f.result.error, -110);
	readers_stats(f.readers, &stats);
	assert_int_equal(stats.files.starts, 2);
	assert_int_equal(unlink(hold), 0);
	f.looked = 0;
	assert_int_equal(readers_look(f.readers, getpid(), 7), 0);
	readers_stats(f.readers, &stats);
	assert_int_not_equal(stats.files.pid, 0);
	kill(stats.files.pid, SIGKILL); /* once */
	WAIT_FOR(f.looked == 1);
	assert_int_equal(f.result.outcome, READER_ANSWERED);
	assert_int_equal(unlink(holder), 0);
	assert_int_equal(rmdir(folder), 0);
}

static void no_helper_is_nobodys_fault(void **state)
{
	const struct reader_file file = { .path = library, .path_n = strlen(library), .data = &f };

	end(state);
	begin_with("/nonexistent/gpusonde-reader");
	assert_int_equal(readers_open(f.readers, &file), 0);
	WAIT_FOR(f.opened == 1);
	assert_int_equal(f.result.outcome, READER_UNAVAILABLE);
	assert_int_equal(f.result.error, -2);
}

static void a_list_from_elsewhere_is_checked(void **state)
{
	static const char names[] = "foo\0bar"; /* with the last NUL */
	const size_t list_size = sizeof(struct site_list) + 3 * sizeof(struct site_entry) + sizeof(names);
	const size_t size = sizeof(struct sites_answer) + list_size;
	_cleanup_free_ struct sites_answer *answer = calloc(1, size);
	struct site_list *made = (struct site_list *)answer->part, *list = NULL;
	struct sites_taken taken = { 0 };

	(void)state;
	assert_non_null(answer);
	library_set_user_text("libfoo.so:foo,bar");
	answer->size = (uint32_t)list_size;
	made->n = 3;
	made->names_n = sizeof(names);
	made->at[0].flags = made->at[2].flags = SITE_ENTRY_USER;
	memcpy((char *)&made->at[3], names, sizeof(names));
	made->at[1].call = (uint16_t)(probes_n - 1);
	assert_int_equal(sites_answer_take(&taken, answer, size, &list), 0);
	assert_int_equal(list->n, 3);
	assert_string_equal(site_list_names(list) + 4, "bar");
	free(list);
	assert_int_equal(sites_answer_take(&taken, answer, size - 1, &list), -EAGAIN);
	sites_taken_done(&taken);
	assert_int_equal(sites_answer_take(&taken, answer, 4, &list), -74);
	made->n = UINT32_MAX / 16 + 2;
	assert_int_equal(sites_answer_take(&taken, answer, size, &list), -74);
	made->n = 3;
	made->at[0].flags = 0; /* a name too many */
	assert_int_equal(sites_answer_take(&taken, answer, size, &list), -74);
	made->at[0].flags = made->at[1].flags = SITE_ENTRY_USER; /* too few */
	made->at[1].call = 0;
	assert_int_equal(sites_answer_take(&taken, answer, size, &list), -74);
	made->at[1].flags = 0;
	made->at[0].call = 1; /* the user has one probe */
	assert_int_equal(sites_answer_take(&taken, answer, size, &list), -74);
	made->at[0].call = 0;
	memcpy((char *)&made->at[3], "\0foobar", sizeof(names)); /* a function without a name */
	assert_int_equal(sites_answer_take(&taken, answer, size, &list), -74);
	memcpy((char *)&made->at[3], names, sizeof(names));
	answer->size--;
	assert_int_equal(sites_answer_take(&taken, answer, size, &list), -74);
	answer->size = UINT32_MAX;
	assert_int_equal(sites_answer_take(&taken, answer, size, &list), -74);
	answer->size = (uint32_t)list_size;
	made->at[1].call = probes_n;
	assert_int_equal(sites_answer_take(&taken, answer, size, &list), -74);
	made->at[1].call = 0;
	made->at[1].class = SITE_CLASSES;
	assert_int_equal(sites_answer_take(&taken, answer, size, &list), -74);
	made->at[1].class = SITE_REFUSED;
	assert_int_equal(sites_answer_take(&taken, answer, size, &list), 0);
	free(list);
	made->at[1].flags = SITE_ENTRY_CHOSEN;
	assert_int_equal(sites_answer_take(&taken, answer, size, &list), -74);
	answer->error = 5;
	assert_int_equal(sites_answer_take(&taken, answer, size, &list), -74);
	answer->error = -2;
	assert_int_equal(sites_answer_take(&taken, answer, size, &list), -2);
	library_set_user_text(NULL);
}

/* One entry more than a helper lists of the user's functions, and one name that is too long. */
static void a_list_of_the_users_is_bounded(void **state)
{
	const size_t n = SITE_LIST_USER_MAX + 1, names_n = 2 * n + USER_SYMBOL_MAX;
	_cleanup_free_ struct site_list *made = calloc(1, sizeof(*made) + n * sizeof(made->at[0]) + names_n);
	char *names;

	(void)state;
	assert_non_null(made);
	library_set_user_text("libfoo.so:foo,bar");
	for (unsigned more = 0; more < 2; more++) {
		made->n = SITE_LIST_USER_MAX + more;
		for (size_t i = 0; i < made->n; i++)
			made->at[i] = (struct site_entry){ .flags = SITE_ENTRY_USER };
		made->names_n = 2 * made->n;
		names = (char *)&made->at[made->n];
		for (size_t i = 0; i < made->names_n; i++)
			names[i] = i % 2 ? '\0' : 'a';
		assert_int_equal(site_list_check(made, site_list_size(made)), more ? -74 : 0);
	}
	made->n = 1;
	for (unsigned more = 0; more < 2; more++) {
		made->names_n = USER_SYMBOL_MAX + more;
		names = (char *)&made->at[1];
		memset(names, 'a', made->names_n - 1);
		names[made->names_n - 1] = '\0';
		assert_int_equal(site_list_check(made, site_list_size(made)), more ? -74 : 0);
	}
	library_set_user_text(NULL);
}

/* In parts of any size, as the helper sends a long one. */
static void a_list_comes_in_parts(void **state)
{
	const size_t entries = 5000,
		     list_size = sizeof(struct site_list) + entries * sizeof(struct site_entry);
	_cleanup_free_ struct site_list *made = calloc(1, list_size), *list = NULL;
	struct sites_taken taken = { 0 };
	enum { PART = 1000 };
	_cleanup_free_ struct sites_answer *message = calloc(1, sizeof(*message) + PART);
	size_t at = 0;
	int r;

	(void)state;
	assert_true(made && message);
	message->size = (uint32_t)list_size;
	made->n = (uint32_t)entries;
	made->at[entries - 1].offset = 42;
	do {
		size_t n = MIN(list_size - at, (size_t)PART);

		memcpy(message->part, (const char *)made + at, n);
		r = sites_answer_take(&taken, message, sizeof(*message) + n, &list);
		at += n;
	} while (r == -EAGAIN && at < list_size);
	assert_int_equal(r, 0);
	assert_int_equal(at, list_size);
	assert_int_equal(list->at[entries - 1].offset, 42);
	/* A part without a byte would go on for ever. */
	assert_int_equal(sites_answer_take(&taken, message, sizeof(*message), &(struct site_list *){ NULL }),
			 -74);
	assert_null(taken.list);
}

static void areas_from_elsewhere_are_checked(void **state)
{
	struct {
		struct files_areas header;
		struct files_area area;
		char path[3];
	} __attribute__((packed)) made = { .header.n = 1, .area.path_n = 3, .path = "abc" };
	struct files_area area;
	const char *path;
	size_t at = 0;

	(void)state;
	assert_true(files_areas_next(&made, sizeof(made), &at, &area, &path));
	assert_memory_equal(path, "abc", 3);
	assert_false(files_areas_next(&made, sizeof(made), &at, &area, &path));
	at = 0;
	assert_false(files_areas_next(&made, sizeof(made) - 1, &at, &area, &path));
	made.area.path_n = UINT32_MAX;
	at = 0;
	assert_false(files_areas_next(&made, sizeof(made), &at, &area, &path));
	at = 0;
	assert_false(files_areas_next(&made, 3, &at, &area, &path));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(an_expected_file_is_opened_and_listed, begin, end),
		cmocka_unit_test_setup_teardown(a_mapped_file_is_found_and_opened, begin, end),
		cmocka_unit_test_setup_teardown(what_cannot_be_opened_is_said, begin, end),
		cmocka_unit_test_setup_teardown(too_many_requests_are_refused, begin, end),
		cmocka_unit_test_setup_teardown(a_file_of_users_has_no_hold_of_the_next, begin, end),
		cmocka_unit_test_setup_teardown(what_helpers_are_lost_over, begin, end),
		cmocka_unit_test_setup_teardown(no_helper_is_nobodys_fault, begin, end),
		cmocka_unit_test(a_list_from_elsewhere_is_checked),
		cmocka_unit_test(a_list_of_the_users_is_bounded),
		cmocka_unit_test(a_list_comes_in_parts),
		cmocka_unit_test(areas_from_elsewhere_are_checked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
