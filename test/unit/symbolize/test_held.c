// SPDX-License-Identifier: Apache-2.0
/*
 * Variables that hold handles, ours in place of a program's: whose a handle is, and when that cannot be told.
 */
#include "needs.h"

#include <errno.h>
#include <unistd.h>

#include "symbolize/file.h"
#include "symbolize/process.h"
#include "symbolize/stubs.h"
#include "symbolize/worker.h"

static uint64_t variables[3];

struct scene {
	struct symbolizer symbolizer;
	struct file file;
	struct mapped mapped;
	struct area area;
	struct process process;
	struct stub_entry entries[3];
	uint32_t by_handle[3];
	struct stub_table table;
};

/* The file as linked lies where it is mapped. */
static void begin(struct scene *s)
{
	*s = (struct scene){ .symbolizer.config = { .read_memory = true, .limits.bytes = 1 << 20 } };
	pthread_mutex_init(&s->symbolizer.lock, NULL);
	s->file.loads_n = 1;
	s->file.loads[0] = (struct elf_range){ .size = 1 << 20, .executable = true };
	s->mapped = (struct mapped){ .path = (char *)"file", .file = &s->file, .executable = true };
	s->area = (struct area){ .start = 4096, .end = 8192, .offset = 4096, .executable = true };
	s->process = (struct process){ .id.pid = (uint32_t)getpid(),
				       .mapped = &s->mapped,
				       .mapped_n = 1,
				       .areas = &s->area,
				       .areas_n = 1 };
	for (uint32_t i = 0; i < ARRAY_SIZE(variables); i++) {
		variables[i] = 0x1000 + i;
		s->entries[i] = (struct stub_entry){ .address = i,
						     .handle_address = (uintptr_t)&variables[i],
						     .hash = i + 1 };
		s->by_handle[i] = i;
	}
	s->table = (struct stub_table){
		.n = 3, .handles_n = 3, .entries = s->entries, .by_handle = s->by_handle
	};
}

static void end(struct scene *s)
{
	free(s->area.held);
	pthread_mutex_destroy(&s->symbolizer.lock);
}

static void check(struct scene *s, uint64_t handle, int r, uint32_t stub)
{
	const struct stub_entry *entry = NULL;

	s->area.held_ns = 0;
	assert_int_equal(area_handle(&s->symbolizer, &s->process, &s->area, &s->table, 1, handle, &entry), r);
	assert_ptr_equal(entry, r == 0 ? &s->entries[stub] : NULL);
}

static void one_holds_it(_unused_ void **state)
{
	struct scene s;

	NEED_CALL(process_vm_readv);
	begin(&s);
	check(&s, 0x1001, 0, 1);
	check(&s, 0x2000, -ENOENT, 0);
	end(&s);
}

static void two_hold_it(_unused_ void **state)
{
	struct scene s;

	NEED_CALL(process_vm_readv);
	begin(&s);
	variables[2] = variables[1];
	check(&s, 0x1001, -ENOTUNIQ, 0);
	/* Of one that is several kernels' it says nothing. */
	s.entries[2].ambiguous = true;
	check(&s, 0x1001, 0, 1);
	s.entries[1].ambiguous = true;
	check(&s, 0x1001, -ENOENT, 0);
	end(&s);
}

static void others_may_hold_it(_unused_ void **state)
{
	struct scene s;

	begin(&s);
	s.table.cut = true;
	check(&s, 0x1001, -ENOENT, 0);
	end(&s);
}

static void memory_is_not_read(_unused_ void **state)
{
	struct scene s;

	begin(&s);
	s.symbolizer.config.read_memory = false;
	check(&s, 0x1001, -ENOENT, 0);
	assert_int_equal(s.area.held_n, 0);
	end(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_holds_it),
		cmocka_unit_test(two_hold_it),
		cmocka_unit_test(others_may_hold_it),
		cmocka_unit_test(memory_is_not_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
