// SPDX-License-Identifier: Apache-2.0
#include "test.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/macro.h"
#include "lab.h"

#define BUS "00000000:01:00.0"

static char folder[64], path[96];

static int setup(void **state)
{
	snprintf(folder, sizeof(folder), "/tmp/gpusonde-test-XXXXXX");
	assert_non_null(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/xids", folder);
	return lab_setup(state);
}

static int teardown(void **state)
{
	char bad[128];

	snprintf(bad, sizeof(bad), "%s.bad", path);
	unlink(bad);
	unlink(path);
	assert_int_equal(rmdir(folder), 0); /* nothing else was left there */
	return lab_teardown(state);
}

static void write_text(const char *text)
{
	assert_int_equal(write_file_atomic(path, text, strlen(text), 0600), 0);
}

static const struct xid *find(struct lab *lab, uint32_t code)
{
	lab_wait(lab, 0);
	for (uint32_t i = 0; i < lab->s->xids_n; i++)
		if (lab->s->xids[i].code == code)
			return &lab->s->xids[i];
	return NULL;
}

static void counts_survive_a_restart(void **state)
{
	struct lab *lab = *state, *next = lab_new(NULL);

	assert_false(model_xids_dirty(lab->model));
	for (uint64_t sequence = 10; sequence < 13; sequence++)
		lab_kmsg(lab->model, BUS, 79, clock_boot_ns(), sequence);
	lab_kmsg(lab->model, "0000000A:02:00.0", 31, clock_boot_ns(), 20);
	assert_true(model_xids_dirty(lab->model));
	assert_int_equal(model_xids_save(lab->model, path), 0);
	assert_false(model_xids_dirty(lab->model));

	assert_int_equal(model_xids_load(next->model, path), 0);
	assert_false(model_xids_dirty(next->model));
	assert_int_equal(find(next, 79)->count, 3);
	assert_string_equal(find(next, 79)->pci_bus_id, BUS);
	assert_int_equal(find(next, 79)->last_real_ns, find(lab, 79)->last_real_ns);
	/*
	 * The kernel log is read from its beginning again: what is in it was counted, what came later was
	 * not.
	 */
	for (uint64_t sequence = 10; sequence < 13; sequence++)
		lab_kmsg(next->model, BUS, 79, clock_boot_ns(), sequence);
	lab_kmsg(next->model, "0000000A:02:00.0", 31, clock_boot_ns(), 20);
	assert_int_equal(find(next, 79)->count, 3);
	assert_false(model_xids_dirty(next->model));
	lab_kmsg(next->model, BUS, 79, clock_boot_ns(), 21);
	assert_int_equal(find(next, 79)->count, 4);
	lab_free(next);
}

static void no_file_is_no_error(void **state)
{
	struct lab *lab = *state;

	assert_int_equal(model_xids_load(lab->model, path), 0);
	assert_null(find(lab, 79));
}

static void counts_of_another_boot_are_forgotten(void **state)
{
	struct lab *lab = *state;

	write_text("gpusonde-xids 1\nboot 00000000-0000-0000-0000-000000000000\nkmsg 99\nxid " BUS
		   " 79 3 5\nend\n");
	assert_int_equal(model_xids_load(lab->model, path), 0);
	assert_null(find(lab, 79));
	lab_kmsg(lab->model, BUS, 79, clock_boot_ns(), 5);
	assert_int_equal(find(lab, 79)->count, 1);
}

static void a_file_of_this_boot(char *text, size_t size, const char *rest)
{
	char boot[64];

	assert_int_equal(read_file("/proc/sys/kernel/random/boot_id", boot, sizeof(boot), NULL), 0);
	snprintf(text, size, "gpusonde-xids 1\nboot %s%s", boot, rest);
}

static void a_damaged_file_is_set_aside(void **state)
{
	static const char *const damaged[] = {
		"kmsg 5\n",
		"kmsg 5\nxid " BUS " 79 3 5\n", /* no end */
		"kmsg 5\nxid " BUS " 79 3 5\nend", /* cut */
		"kmsg 5\nxid " BUS " 79 3 5\nend\nmore\n", /* too long */
		"kmsg -5\nend\n",
		"kmsg 5 6\nend\n",
		"kmsg 5\nxid nowhere 79 3 5\nend\n",
		"kmsg 5\nxid " BUS " 79 3\nend\n",
		"kmsg 5\nxid " BUS " 79 0 5\nend\n",
		"kmsg 5\nxid " BUS " 4294967296 1 5\nend\n",
		"kmsg 5\nxid " BUS " 79 99999999999999999999 5\nend\n",
		"kmsg 5\nxid " BUS " 79 1 18446744073709551615\nend\n",
		"kmsg 5\nxid " BUS " 79 1 5\nxid " BUS " 79 1 5\nend\n",
	};
	struct lab *lab = *state;
	char text[512], bad[128];

	snprintf(bad, sizeof(bad), "%s.bad", path);
	for (unsigned i = 0; i < ARRAY_SIZE(damaged); i++) {
		a_file_of_this_boot(text, sizeof(text), damaged[i]);
		write_text(text);
		assert_int_equal(model_xids_load(lab->model, path), -EBADMSG);
		assert_null(find(lab, 79));
		assert_int_equal(access(path, F_OK), -1);
		assert_int_equal(unlink(bad), 0);
	}
	write_text("something else\n");
	assert_int_equal(model_xids_load(lab->model, path), -EBADMSG);
	/* Counting goes on, and the next save makes a good file. */
	lab_kmsg(lab->model, BUS, 79, clock_boot_ns(), 5);
	assert_int_equal(model_xids_save(lab->model, path), 0);
	assert_int_equal(model_xids_load(lab->model, path), 0);
	assert_int_equal(find(lab, 79)->count, 1);
}

static void a_huge_file_is_refused(void **state)
{
	struct lab *lab = *state;
	char *text = malloc(300000);

	memset(text, 'x', 300000);
	assert_int_equal(write_file_atomic(path, text, 300000, 0600), 0);
	assert_int_equal(model_xids_load(lab->model, path), -EBADMSG);
	free(text);
}

static void the_most_there_can_be_fits(void **state)
{
	struct lab *lab = *state, *next = lab_new(NULL);

	for (unsigned gpu = 0; gpu < 16; gpu++)
		for (uint32_t code = 0; code < 64; code++) {
			char bus[32];

			snprintf(bus, sizeof(bus), "FFFFFFFF:%02X:1F.7", 0xf0 + gpu);
			lab_kmsg(lab->model, bus, 4294967200u + code, clock_boot_ns(), UINT64_MAX);
		}
	lab_wait(lab, 0);
	assert_int_equal(lab->s->xids_n, 1024);
	assert_int_equal(model_xids_save(lab->model, path), 0);
	assert_int_equal(model_xids_load(next->model, path), 0);
	lab_wait(next, 0);
	assert_int_equal(next->s->xids_n, 1024);
	lab_free(next);
}

static void a_run_that_could_not_read_the_log_is_not_counted_twice(void **state)
{
	struct lab *lab = *state, *next = lab_new(NULL);

	/* The first run knows the error from the driver alone. */
	lab_event(lab, lab_gpu(lab, 0), 79);
	lab_step(lab, NSEC_PER_SEC);
	assert_int_equal(model_xids_save(lab->model, path), 0);
	clock_advance(10 * NSEC_PER_SEC);
	/* The next may read the log, where it is on record. */
	assert_int_equal(model_xids_load(next->model, path), 0);
	lab_kmsg(next->model, BUS, 79, clock_boot_ns() - 10 * NSEC_PER_SEC, 400);
	assert_int_equal(find(next, 79)->count, 1);
	lab_kmsg(next->model, BUS, 79, clock_boot_ns(), 401);
	assert_int_equal(find(next, 79)->count, 2);
	lab_free(next);
}

static void a_folder_that_is_not_there_is_an_error(void **state)
{
	struct lab *lab = *state;

	assert_int_equal(model_xids_save(lab->model, "/nowhere/at/all"), -ENOENT);
}

int main(void)
{
#define CASE(name_) cmocka_unit_test_setup_teardown(name_, setup, teardown)
	const struct CMUnitTest tests[] = {
		CASE(counts_survive_a_restart),
		CASE(no_file_is_no_error),
		CASE(counts_of_another_boot_are_forgotten),
		CASE(a_damaged_file_is_set_aside),
		CASE(a_huge_file_is_refused),
		CASE(the_most_there_can_be_fits),
		CASE(a_run_that_could_not_read_the_log_is_not_counted_twice),
		CASE(a_folder_that_is_not_there_is_an_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
