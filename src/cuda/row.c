// SPDX-License-Identifier: Apache-2.0
/*
 * Rows: a kernel's sums on a device. Settled rows are found by symbol and file; two rows of one kernel are
 * merged without losing or duplicating anything. A row that is not settled has never had a series, so its
 * sums were credited to "other".
 */
#include "cuda/private.h"

static bool is_same(const struct kernel_row *row, uint32_t usage, const struct kernel *kernel)
{
	return row->usage == usage &&
	       (row->kernel == kernel ||
		(STRV_EQ(row->kernel->symbol, kernel->symbol) && STRV_EQ(row->kernel->file, kernel->file)));
}

/* Never 0. */
static uint64_t key_of(const struct cuda *cuda, uint32_t usage, const struct kernel *kernel)
{
	uint64_t symbol = hash_bytes(kernel->symbol, strlen(kernel->symbol));
	uint64_t file = hash_bytes(kernel->file, strlen(kernel->file));
	uint64_t key = salted(cuda, symbol ^ (file << 17 | file >> 47) ^ (uint64_t)usage << 57);

	return key ? key : 1;
}

uint32_t row_find(struct cuda *cuda, struct process *p, uint32_t usage, const struct kernel *kernel)
{
	uint32_t index;

	if (!hashmap_get(&p->row_map, key_of(cuda, usage, kernel), &index))
		return NONE;
	return is_same(row_at(p, index), usage, kernel) ? index : NONE;
}

/*
 * Kernels that processes share are counted for each: names are the program's own, and may be of any length.
 */
static uint32_t texts_of(const struct kernel *kernel)
{
	return (uint32_t)MIN(strlen(kernel->symbol) + strlen(kernel->name) + strlen(kernel->brief) +
				     strlen(kernel->file),
			     (size_t)UINT32_MAX);
}

static bool texts_fit(const struct cuda *cuda, const struct process *p, uint32_t bytes)
{
	return cuda->texts_bytes + bytes <= TEXTS_BYTES && p->texts_bytes + bytes <= TEXTS_BYTES_OF_ONE;
}

/* @kernel: a reference of the row's own from now on; NULL: none. */
static void row_hold(struct cuda *cuda, struct process *p, struct kernel_row *row, struct kernel *kernel)
{
	uint32_t bytes = kernel ? texts_of(kernel) : 0;

	cuda->texts_bytes += bytes - (uint64_t)row->texts;
	p->texts_bytes += bytes - (uint64_t)row->texts;
	kernel_unref(row->kernel);
	row->kernel = kernel;
	row->texts = bytes;
}

uint32_t row_new(struct cuda *cuda, struct process *p, uint32_t usage, struct kernel *kernel)
{
	uint32_t index = NONE;

	if (cuda->rows_n < cuda->limits.kernels * ROWS_OF_ALL && texts_fit(cuda, p, texts_of(kernel)))
		index = pool_take(&p->rows, sizeof(struct kernel_row), cuda->limits.kernels);
	if (index == NONE)
		return NONE;
	cuda->rows_n++;
	row_at(p, index)->usage = usage;
	row_hold(cuda, p, row_at(p, index), kernel_ref(kernel));
	return index;
}

/* ---- functions of a row ---- */

void row_link(struct process *p, uint32_t row, uint32_t function)
{
	struct function *f = function_at(p, function);

	f->row = row;
	f->previous = 0;
	f->next = row_at(p, row)->functions;
	if (f->next)
		function_at(p, f->next - 1)->previous = function + 1;
	row_at(p, row)->functions = function + 1;
	row_at(p, row)->wanted |= f->wanted;
}

void row_unlink(struct process *p, uint32_t function)
{
	const struct function *f = function_at(p, function);

	recent_forget(p);
	if (f->previous)
		function_at(p, f->previous - 1)->next = f->next;
	else
		row_at(p, f->row)->functions = f->next;
	if (f->next)
		function_at(p, f->next - 1)->previous = f->previous;
}

/* ---- two become one ---- */

static void add_shape(struct kernel_row *row, const struct shape *shape)
{
	for (unsigned i = 0; i < row->shapes_n; i++) {
		struct shape *s = &row->shapes[i];

		if (memcmp(s->grid, shape->grid, sizeof(s->grid)) == 0 &&
		    memcmp(s->block, shape->block, sizeof(s->block)) == 0 && s->shared == shape->shared) {
			s->launches += shape->launches;
			return;
		}
	}
	if (row->shapes_n < TRACED_SHAPES_MAX)
		row->shapes[row->shapes_n++] = *shape;
	else
		row->other_shapes += shape->launches;
}

static void rows_merge(struct cuda *cuda, struct process *p, uint32_t into, uint32_t from)
{
	struct kernel_row *a = row_at(p, into), *b = row_at(p, from);

	share_add(&a->share, &b->share);
	a->claim.score += b->claim.score;
	a->other_shapes += b->other_shapes;
	for (unsigned i = 0; i < b->shapes_n; i++)
		add_shape(a, &b->shapes[i]);
	while (b->functions) {
		uint32_t function = b->functions - 1;

		row_unlink(p, function);
		row_link(p, into, function);
	}
	row_hold(cuda, p, b, NULL);
	pool_give(&p->rows, from);
	cuda->rows_n--;
}

void row_blend(struct kernel_row *row, const struct kernel *kernel)
{
	struct kernel blend = *row->kernel, *copy;
	bool differs = false;

	if (row->kernel == kernel)
		return;
	for (unsigned i = 0; i < KERNEL_FIGURES; i++) {
		if (blend.figures[i] == kernel->figures[i] || blend.figures[i] < 0)
			continue;
		blend.figures[i] = -1;
		differs = true;
	}
	if (differs && kernel_new(&blend, &copy) == 0) {
		kernel_unref(row->kernel);
		row->kernel = copy;
	}
}

uint32_t row_settle(struct cuda *cuda, struct process *p, uint32_t index, struct kernel *kernel)
{
	struct kernel_row *row = row_at(p, index);
	uint32_t found = row_find(cuda, p, row->usage, kernel), other;

	if (found != NONE && found != index) {
		row_blend(row_at(p, found), kernel);
		rows_merge(cuda, p, found, index);
		return found;
	}
	/* If longer names exceed the limit, the row keeps its present ones. */
	if (texts_fit(cuda, p, texts_of(kernel)))
		row_hold(cuda, p, row, kernel_ref(kernel));
	row->settled = true;
	row->key = key_of(cuda, row->usage, row->kernel);
	/*
	 * If another row has that key, or memory is short, it cannot be found: later launches of the kernel
	 * get another row.
	 */
	if (hashmap_get(&p->row_map, row->key, &other) || hashmap_put(&p->row_map, row->key, index) < 0)
		row->key = 0;
	return index;
}

void row_unsettle(struct cuda *cuda, struct process *p, struct kernel_row *row)
{
	(void)cuda;
	if (row->key)
		hashmap_del(&p->row_map, row->key);
	row->key = 0;
	row->settled = row->claim.has = false;
	row->share.series = (struct launch_sums){ 0 };
}

void rows_done(struct cuda *cuda, struct process *p)
{
	for (uint32_t i = 0; i < p->rows.n; i++)
		row_hold(cuda, p, row_at(p, i), NULL);
	cuda->rows_n -= p->rows.used;
	pool_done(&p->rows);
	hashmap_done(&p->row_map);
}
