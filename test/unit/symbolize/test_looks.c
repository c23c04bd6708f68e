// SPDX-License-Identifier: Apache-2.0
/* Processes that are looked at while they live, and asked about when they are gone. */
#include "needs.h"
#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "symbolize/house.h"
#include "proc/maps.h"
#include "proc/proc.h"

/*
 * What is not found is looked for again, soon: what is known of processes that have ended does not come
 * later.
 */
enum { AGAIN_NS = 1 };

static bool skipped;

static int open_all(void **state)
{
	skipped = !house_has_nvcc();
	if (house_open(state) < 0)
		return -1;
	if (skipped)
		return 0;
	compile("plain", "-arch=sm_90 -O2");
	compile("plain.so", "-arch=sm_90 -DLIBRARY -shared -Xcompiler -fPIC");
	return 0;
}

#define NEEDS_NVCC                                                                  \
	do {                                                                        \
		if (skipped)                                                        \
			need_unmet("nvcc is not on PATH, no program is looked at"); \
	} while (0)

struct scene {
	struct symbolizer *symbolizer;
	struct program program;
	uint64_t start_boot_ns;
	char path[128];
	int fd; /* of the library */
	struct proc_map code; /* of the library, in the program; no path */
};

static uint64_t start_of(pid_t pid)
{
	struct process_id id;

	assert_int_equal(proc_process_id("/proc", (uint32_t)pid, &id), 0);
	return (uint64_t)process_boot_ns(id.start_ticks);
}

static void find_code(struct scene *s)
{
	_cleanup_(proc_maps_done) struct proc_maps maps;
	struct proc_map map;
	bool found = false;

	assert_int_equal(proc_maps_open("/proc", s->program.pid, &maps), 0);
	while (!found && proc_maps_next(&maps, &map) > 0)
		found = map.executable && map.path_n == strlen(s->path) &&
			memcmp(map.path, s->path, map.path_n) == 0;
	assert_true(found);
	s->code = map;
}

static void begin(struct scene *s)
{
	static const struct symbolizer_config config = { .read_memory = true, .again_ns = AGAIN_NS };

	*s = (struct scene){ 0 };
	s->symbolizer = patient_symbolizer(&config);
	snprintf(s->path, sizeof(s->path), "%s/plain.so", house_dir);
	s->fd = open(s->path, O_RDONLY | O_CLOEXEC);
	assert_true(s->fd >= 0);
	start(&s->program, "./plain", NULL);
	s->program.incarnation = incarnation();
	s->start_boot_ns = start_of(s->program.pid);
	order(&s->program, "open ./plain.so");
	find_code(s);
}

static void end(struct scene *s)
{
	symbolizer_free(s->symbolizer);
	close(s->fd);
}

/* @mapping without process and file. */
static int look(struct scene *s, struct symbolizer_mapping mapping)
{
	mapping.pid = s->program.pid;
	mapping.fd = s->fd;
	mapping.path = s->path;
	return symbolizer_look(s->symbolizer, &mapping);
}

static void expect(struct scene *s, uint64_t address, uint64_t since, uint64_t start_boot_ns,
		   const char *name)
{
	struct symbolizer_question q = question_of(&s->program, address);
	struct kernel *kernel;

	q.incarnation = since;
	q.process.start_ticks = process_ticks(start_boot_ns);
	kernel = ask(s->symbolizer, q);
	if (name)
		assert_string_equal(kernel->symbol, name);
	assert_int_equal(kernel->source == KERNEL_SOURCE_UNRESOLVED, name == NULL);
	kernel_unref(kernel);
}

/* Its library is gone as well by then. */
static void what_was_looked_at_is_known_after_the_end(_unused_ void **state)
{
	struct scene s;

	NEEDS_NVCC;
	begin(&s);
	assert_int_equal(look(&s, (struct symbolizer_mapping){ 0 }), 0);
	stop(&s.program);
	command("mv plain.so gone.so");
	expect(&s, told(&s.program, "twin"), s.program.incarnation, s.start_boot_ns, "twin");
	symbolizer_forget(s.symbolizer, s.program.pid, s.program.incarnation);
	expect(&s, told(&s.program, "twin"), s.program.incarnation, s.start_boot_ns, NULL);
	command("mv gone.so plain.so");
	assert_int_equal(look(&s, (struct symbolizer_mapping){ 0 }), -ESRCH);
	end(&s);
}

/* Of the same PID, but begun at another time, or one does not know when. */
static void another_process_is_not_taken_for_it(_unused_ void **state)
{
	struct scene s;
	uint64_t tick = (uint64_t)(NSEC_PER_SEC / sysconf(_SC_CLK_TCK));

	NEEDS_NVCC;
	begin(&s);
	assert_int_equal(look(&s, (struct symbolizer_mapping){ 0 }), 0);
	stop(&s.program);
	expect(&s, told(&s.program, "twin"), incarnation(), s.start_boot_ns + tick, NULL);
	expect(&s, told(&s.program, "twin"), incarnation(), s.start_boot_ns - tick, NULL);
	expect(&s, told(&s.program, "twin"), incarnation(), 0, NULL);
	expect(&s, told(&s.program, "twin"), s.program.incarnation, s.start_boot_ns, "twin");
	end(&s);
}

/* It is not there yet, and is never seen there: the process ends. It takes a part of what lies there. */
static void what_is_about_to_be_mapped_counts(_unused_ void **state)
{
	struct scene s;
	uint64_t there = UINT64_C(0x10000000000), n, into;

	NEEDS_NVCC;
	begin(&s);
	n = s.code.end - s.code.start;
	into = told(&s.program, "twin") - s.code.start;
	assert_int_equal(look(&s, (struct symbolizer_mapping){ .address = there,
							       .length = n - 1, /* whole pages */
							       .offset = s.code.offset }),
			 0);
	stop(&s.program);
	expect(&s, there + into, s.program.incarnation, s.start_boot_ns, "twin");
	expect(&s, told(&s.program, "twin"), s.program.incarnation, s.start_boot_ns, "twin");
	end(&s);
	/* Over itself, one page further: what is before it stays, what was there is gone. */
	begin(&s);
	assert_int_equal(look(&s, (struct symbolizer_mapping){ .address = s.code.start + 4096,
							       .length = n,
							       .offset = s.code.offset }),
			 0);
	stop(&s.program);
	expect(&s, told(&s.program, "twin") + 4096, s.program.incarnation, s.start_boot_ns, "twin");
	end(&s);
	/* Nothing that could be. */
	begin(&s);
	assert_int_equal(
		look(&s, (struct symbolizer_mapping){ .address = UINT64_MAX - 4095, .length = 8192 }), 0);
	assert_int_equal(look(&s, (struct symbolizer_mapping){ .address = 4096, .length = UINT64_MAX }), 0);
	stop(&s.program);
	expect(&s, told(&s.program, "twin"), s.program.incarnation, s.start_boot_ns, "twin");
	end(&s);
}

/* What it was before is its own; what it is after has nothing of that. */
static void becoming_another_program_ends_what_was_seen(_unused_ void **state)
{
	struct scene s;
	uint64_t after;

	NEEDS_NVCC;
	begin(&s);
	assert_int_equal(look(&s, (struct symbolizer_mapping){ 0 }), 0);
	assert_int_equal(look(&s, (struct symbolizer_mapping){ .execution = true }), 0);
	assert_int_equal(look(&s, (struct symbolizer_mapping){ .execution = true }), 0); /* its interpreter */
	after = incarnation();
	stop(&s.program);
	expect(&s, told(&s.program, "twin"), after, s.start_boot_ns, NULL);
	expect(&s, told(&s.program, "twin"), s.program.incarnation, s.start_boot_ns, "twin");
	end(&s);
}

/* One that was asked about before it became another. */
static void an_answer_does_not_come_from_the_next_program(_unused_ void **state)
{
	struct scene s;
	uint64_t after;

	NEEDS_NVCC;
	begin(&s);
	expect(&s, told(&s.program, "twin"), s.program.incarnation, s.start_boot_ns, "twin");
	assert_int_equal(look(&s, (struct symbolizer_mapping){ .execution = true }), 0);
	after = incarnation();
	assert_int_equal(look(&s, (struct symbolizer_mapping){ 0 }), 0);
	order(&s.program, "open ./plain.so");
	stop(&s.program);
	/* it did not: it is still there */
	expect(&s, told(&s.program, "twin"), after, s.start_boot_ns, "twin");
	expect(&s, told(&s.program, "twin"), s.program.incarnation, s.start_boot_ns, "twin");
	symbolizer_forget(s.symbolizer, s.program.pid, after);
	expect(&s, told(&s.program, "twin"), s.program.incarnation, s.start_boot_ns, "twin");
	end(&s);
}

/*
 * A child that was forked maps what its parent does, and is gone before its files could be opened: they are
 * the parent's.
 */
static void files_of_others_are_shared(_unused_ void **state)
{
	char root[96];
	const struct symbolizer_config config = { .proc_root = root, .again_ns = AGAIN_NS };
	struct symbolizer *symbolizer;
	struct scene s;
	pid_t real;

	NEEDS_NVCC;
	begin(&s);
	real = s.program.pid;
	/* Nothing of a process but what it maps: no file can be opened by it. */
	snprintf(root, sizeof(root), "%s/proc", house_dir);
	for (unsigned pid = 1; pid <= 2; pid++)
		command("mkdir -p proc/%u && cat /proc/%d/maps > proc/%u/maps && cat /proc/%d/stat > "
			"proc/%u/stat",
			pid, (int)real, pid, (int)real, pid);
	symbolizer = s.symbolizer;
	s.symbolizer = patient_symbolizer(&config);
	s.program.pid = 1;
	assert_int_equal(look(&s, (struct symbolizer_mapping){ 0 }), 0);
	expect(&s, told(&s.program, "twin"), s.program.incarnation, s.start_boot_ns, "twin");
	s.program.pid = 2;
	expect(&s, told(&s.program, "twin"), s.program.incarnation, s.start_boot_ns, "twin");
	s.program.pid = real;
	stop(&s.program);
	symbolizer_free(symbolizer);
	end(&s);
	command("rm -r proc");
}

/* Of those that nobody ever asks about, only the latest are kept. */
static void memory_has_a_bound(_unused_ void **state)
{
	struct symbolizer_stats stats;
	struct scene s;

	NEEDS_NVCC;
	begin(&s);
	for (unsigned i = 0; i < 2000; i++) {
		/* Each is taken before the next comes, or refused. */
		(void)look(&s, (struct symbolizer_mapping){ .execution = i % 2 });
		if (i % 64 == 0)
			expect(&s, 0x10, incarnation(), 0, NULL);
	}
	expect(&s, 0x10, incarnation(), 0, NULL);
	symbolizer_stats(s.symbolizer, &stats);
	assert_in_range(stats.bytes, 1, 8 << 20);
	stop(&s.program);
	end(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_was_looked_at_is_known_after_the_end),
		cmocka_unit_test(another_process_is_not_taken_for_it),
		cmocka_unit_test(what_is_about_to_be_mapped_counts),
		cmocka_unit_test(becoming_another_program_ends_what_was_seen),
		cmocka_unit_test(an_answer_does_not_come_from_the_next_program),
		cmocka_unit_test(files_of_others_are_shared),
		cmocka_unit_test(memory_has_a_bound),
	};

	return cmocka_run_group_tests(tests, open_all, house_close);
}
