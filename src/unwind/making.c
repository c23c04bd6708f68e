// SPDX-License-Identifier: Apache-2.0
/* A file's rows: its functions are found, sorted, and then told row by row, a part of them at a time. */
#include "unwind/private.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/hashmap.h"
#include "base/macro.h"
#include "elf/elf.h"

enum {
	STEP = 64, /* entries or functions: each may have 65,536 instructions */
	GAP = 16, /* fewer bytes between functions may only fill up */
};

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

/* Of this file alone. */
static int making_add_rule(struct making *m, const struct unwind_rule *rule, uint32_t *ret_index)
{
	uint64_t key = hash_bytes_secret(rule, sizeof(*rule));
	int r;

	if (hashmap_get(&m->rule_by, key, ret_index) &&
	    memcmp(&m->rules[*ret_index], rule, sizeof(*rule)) == 0)
		return 0;
	r = array_room((void **)&m->rules, &m->rules_cap, m->rules_n, UNWIND_RULES, sizeof(*m->rules));
	if (r == 0)
		r = hashmap_put(&m->rule_by, key, m->rules_n);
	if (r < 0)
		return r;
	m->rules[m->rules_n] = *rule;
	*ret_index = m->rules_n++;
	return 0;
}

void making_done(struct making *making)
{
	elf_close(making->elf);
	hashmap_done(&making->rule_by);
	free(making->bytes);
	free(making->functions);
	free(making->rules);
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

int making_begin(struct making *making, int fd)
{
	static const struct unwind_rule none = { .kind = UNWIND_NONE };
	uint32_t zero;
	int r;

	*making = (struct making){ 0 };
	r = elf_open(fd, &making->elf);
	if (r == 0)
		r = making_read_section(making, making->elf);
	if (r == 0)
		r = making_add_rule(making, &none, &zero);
	if (r < 0)
		making_done(making);
	return r;
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

static int making_add_row(uint64_t pc, const struct unwind_rule *rule, void *userdata)
{
	struct making *m = userdata;
	uint32_t index = 0;
	int r;

	if (pc - m->base > UINT32_MAX)
		return -ERANGE;
	/* Without room for the rule the row says that none is known. */
	if (rule->kind != UNWIND_NONE && making_add_rule(m, rule, &index) == -ENOMEM)
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

/* Bytes of a nop, as compilers fill space with; 0: it is something else. */
static size_t nop_x86(const uint8_t *code, size_t n)
{
	static const uint8_t displacement[] = { 0, 1, 4 };
	size_t at = 0, mod;

	while (at < n && (code[at] == 0x66 || code[at] == 0x2e))
		at++;
	if (at < n && code[at] == 0x90)
		return at + 1;
	if (at + 2 >= n || code[at] != 0x0f || code[at + 1] != 0x1f)
		return 0;
	/* With a memory operand, which it does not read. */
	mod = code[at + 2] >> 6;
	if (mod == 3)
		return 0;
	at += 3 + ((code[at + 2] & 7) == 4) + displacement[mod];
	return at <= n ? at : 0;
}

bool is_padding(uint16_t machine, const uint8_t *code, size_t n)
{
	static const uint8_t nop_arm64[] = { 0x1f, 0x20, 0x03, 0xd5 };
	size_t step;

	for (size_t at = 0; at < n; at += step) {
		if (machine == EM_AARCH64)
			step = n - at >= 4 && memcmp(code + at, nop_arm64, 4) == 0 ? 4 : 0;
		else
			step = code[at] == 0xcc ? 1 : nop_x86(code + at, n - at); /* 0xcc: int3 */
		if (step == 0 && code[at] == 0)
			step = 1; /* no compiler's function begins so */
		if (step == 0)
			return false;
	}
	return true;
}

/* Whether what lies between the last function and @start may hold code, whose rules are not known. */
static bool is_gap(struct making *making, uint64_t start)
{
	uint8_t code[GAP];
	size_t n = (size_t)(start - making->end), got;

	if (n == 0 || n >= GAP)
		return n > 0;
	return elf_data(making->elf, making->end, code, n, &got) < 0 || got < n ||
	       !is_padding(making->frame.machine, code, n);
}

static int add_functions(struct making *making)
{
	static const struct unwind_rule none = { .kind = UNWIND_NONE };

	for (unsigned i = 0; i < STEP && making->at < making->functions_n; i++) {
		const struct eh_function *function = &making->functions[making->at++];
		int r = 0;

		if (function->start < making->end)
			continue; /* within the one before it */
		if (is_gap(making, function->start))
			r = making_add_row(making->end, &none, making);
		if (r == 0)
			r = eh_rows(&making->frame, function, making_add_row, making);
		if (r == -ERANGE)
			continue;
		if (r < 0)
			return r;
		making->end = function->end;
	}
	if (making->at < making->functions_n)
		return 1;
	return making->functions_n ? MIN(making_add_row(making->end, &none, making), 0) : 0;
}

int making_step(struct making *making)
{
	int64_t begin_ns = clock_thread_cpu_ns();
	int r = making->sorted ? add_functions(making) : find_functions(making);

	making->cpu_ns += clock_thread_cpu_ns() - begin_ns;
	return r > 0 && making->cpu_ns >= MAKING_CPU_NS ? -ETIME : r;
}
