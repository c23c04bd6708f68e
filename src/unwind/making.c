// SPDX-License-Identifier: Apache-2.0
/* A file's rows: its functions are found, sorted, and then told row by row, a part of them at a time. */
#include "unwind/private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/hashmap.h"
#include "base/macro.h"
#include "elf/elf.h"

enum {
	STEP = 64, /* entries or functions: each may have 65,536 instructions */
	GAP = 16, /* bytes between functions that hold no instruction, but fill up */
};

int rules_add(struct rules *rules, const struct unwind_rule *rule, uint32_t *ret_index)
{
	uint64_t key = hash_bytes_secret(rule, sizeof(*rule));
	int r;

	if (hashmap_get(&rules->by, key, ret_index) &&
	    memcmp(&rules->rules[*ret_index], rule, sizeof(*rule)) == 0)
		return 0;
	if (rules->n == UNWIND_RULES)
		return -ENOBUFS;
	r = hashmap_put(&rules->by, key, rules->n);
	if (r < 0)
		return r;
	rules->rules[rules->n] = *rule;
	*ret_index = rules->n++;
	return 0;
}

void making_done(struct making *making)
{
	free(making->bytes);
	free(making->functions);
	free(making->rows);
	*making = (struct making){ 0 };
}

static int making_read_section(struct making *making, struct elf_file *elf)
{
	uint64_t offset, size, address;
	size_t n = 0;
	int r = elf_section(elf, ".eh_frame", &offset, &size);

	if (r == 0)
		r = elf_address(elf, offset, &address);
	if (r < 0)
		return r;
	if (size > EH_FRAME_BYTES_MAX)
		return -EFBIG;
	making->bytes = malloc(size + 1);
	if (!making->bytes)
		return -ENOMEM;
	r = elf_data(elf, address, making->bytes, size, &n);
	if (r < 0)
		return r;
	making->frame = (struct eh_frame){
		.data = making->bytes,
		.n = n,
		.address = address,
		.machine = elf_machine(elf),
	};
	return 0;
}

/* -ENOENT: the file has no such section. */
int making_begin(struct making *making, int fd)
{
	_cleanup_(elf_closep) struct elf_file *elf = NULL;
	int r = elf_open(fd, &elf);

	*making = (struct making){ 0 };
	if (r == 0)
		r = making_read_section(making, elf);
	if (r < 0)
		making_done(making);
	return r;
}

static int array_room(void **array, uint32_t *cap, uint32_t n, uint32_t max, size_t size)
{
	uint32_t wanted = *cap ? 2 * *cap : 1024;
	void *grown;

	if (n < *cap)
		return 0;
	if (n >= max)
		return -ENOBUFS;
	grown = reallocarray(*array, wanted, size);
	if (!grown)
		return -ENOMEM;
	*array = grown;
	*cap = wanted;
	return 0;
}

static int by_start(const void *a, const void *b)
{
	const struct eh_function *one = a, *other = b;

	return one->start < other->start ? -1 : one->start > other->start;
}

static int find_functions(struct making *making)
{
	for (unsigned i = 0; i < STEP; i++) {
		struct eh_function function;
		int r = eh_frame_next(&making->frame, &making->at, &function);

		if (r == -ENODATA) {
			qsort(making->functions, making->functions_n, sizeof(*making->functions), by_start);
			making->base = making->functions_n ? making->functions[0].start : 0;
			making->end = making->base;
			making->sorted = true;
			making->at = 0;
			return 1;
		}
		if (r == 0)
			continue;
		r = array_room((void **)&making->functions, &making->functions_cap, making->functions_n,
			       EH_FUNCTIONS_MAX, sizeof(*making->functions));
		if (r < 0)
			return r;
		making->functions[making->functions_n++] = function;
	}
	return 1;
}

struct adding {
	struct making *making;
	struct rules *rules;
};

static int making_add_row(uint64_t pc, const struct unwind_rule *rule, void *userdata)
{
	const struct adding *adding = userdata;
	struct making *m = adding->making;
	uint32_t index = 0;
	int r;

	if (pc - m->base > UINT32_MAX)
		return -ERANGE;
	/* Without room for the rule the row says that none is known. */
	if (rule->kind != UNWIND_NONE && rules_add(adding->rules, rule, &index) == -ENOMEM)
		return -ENOMEM;
	if (m->rows_n > 0 && m->rows[m->rows_n - 1].rule == index)
		return 0;
	if (m->rows_n > 0 && m->rows[m->rows_n - 1].pc == pc - m->base) {
		m->rows[m->rows_n - 1].rule = index;
		return 0;
	}
	r = array_room((void **)&m->rows, &m->rows_cap, m->rows_n, UNWIND_ROWS, sizeof(*m->rows));
	if (r < 0)
		return r;
	m->rows[m->rows_n++] = (struct unwind_row){ (uint32_t)(pc - m->base), index };
	return 0;
}

static int add_functions(struct making *making, struct rules *rules)
{
	static const struct unwind_rule none = { .kind = UNWIND_NONE };
	struct adding adding = { making, rules };

	for (unsigned i = 0; i < STEP && making->at < making->functions_n; i++) {
		const struct eh_function *function = &making->functions[making->at++];
		int r = 0;

		if (function->start < making->end)
			continue; /* within the one before it */
		if (function->start - making->end >= GAP)
			r = making_add_row(making->end, &none, &adding);
		if (r == 0)
			r = eh_rows(&making->frame, function, making_add_row, &adding);
		if (r == -ERANGE)
			continue;
		if (r < 0)
			return r;
		making->end = function->end;
	}
	if (making->at < making->functions_n)
		return 1;
	return making->functions_n ? MIN(making_add_row(making->end, &none, &adding), 0) : 0;
}

int making_step(struct making *making, struct rules *rules)
{
	int64_t begin_ns = clock_thread_cpu_ns();
	int r = making->sorted ? add_functions(making, rules) : find_functions(making);

	making->cpu_ns += clock_thread_cpu_ns() - begin_ns;
	return r > 0 && making->cpu_ns >= MAKING_CPU_NS ? -ETIME : r;
}
