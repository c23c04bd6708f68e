// SPDX-License-Identifier: Apache-2.0
#include "blas/blas.h"

#include <stdlib.h>
#include <string.h>

#include "activity/incarnations.h"
#include "activity/users.h"
#include "base/macro.h"
#include "base/saturated.h"
#include "blas/layouts.h"

struct blas_traced {
	uint32_t tgid, user;
	uint64_t incarnation; /* 0: not known */
	uint64_t first_ns; /* end of its first call */
	bool over, has_series;
	struct layouts layouts;
	struct hashmap handles, shapes; /* math mode; index of rows */
	uint32_t handles_n, rows_room;
	struct blas_row *rows;
	struct blas_process shown; /* without rows_first, comm */
};

struct blas {
	uint32_t series, series_used, shapes;
	bool keep;
	struct incarnations incarnations;
	struct traced_users *users; /* borrowed; NULL: all processes are one user's */
	struct blas_traced *processes[BLAS_PROCESSES_MAX];
	uint32_t processes_n;
	struct hashmap by_tgid; /* index of those that run */
	struct blas_sum totals[BLAS_PRECISIONS];
	uint64_t unsized, beyond;
};

/* ---- processes ---- */

static void traced_free(struct blas_traced *p)
{
	layouts_done(&p->layouts);
	hashmap_done(&p->handles);
	hashmap_done(&p->shapes);
	free(p->rows);
	free(p);
}

static struct blas_traced *traced_find(const struct blas *blas, uint32_t tgid)
{
	uint32_t i;

	return hashmap_get(&blas->by_tgid, tgid, &i) ? blas->processes[i] : NULL;
}

static struct blas_traced *traced_get(struct blas *blas, const struct trace_call *call)
{
	struct blas_traced *p = traced_find(blas, call->header.tgid);
	uint32_t user;

	if (p || blas->processes_n == BLAS_PROCESSES_MAX ||
	    traced_users_enter(blas->users, TRACED_TABLE_BLAS, call->header.tgid, &user) < 0)
		return p;
	p = calloc(1, sizeof(*p));
	if (!p || hashmap_put(&blas->by_tgid, call->header.tgid, blas->processes_n) < 0) {
		traced_users_give(blas->users, TRACED_TABLE_BLAS, user, 1);
		free(p);
		return NULL;
	}
	p->user = user;
	p->tgid = call->header.tgid;
	p->incarnation = incarnations_of(&blas->incarnations, p->tgid);
	p->first_ns = add_saturated(call->header.time_ns, call->duration_ns);
	p->has_series = blas->series_used < blas->series;
	blas->series_used += p->has_series;
	blas->processes[blas->processes_n++] = p;
	return p;
}

static void traced_end(struct blas *blas, struct blas_traced *p)
{
	p->over = true;
	hashmap_del(&blas->by_tgid, p->tgid);
}

static void forget(struct blas *blas, uint32_t i)
{
	blas->series_used -= blas->processes[i]->has_series;
	traced_users_give(blas->users, TRACED_TABLE_BLAS, blas->processes[i]->user, 1);
	traced_free(blas->processes[i]);
	blas->processes[i] = blas->processes[--blas->processes_n];
}

/* The processes have other places now. The map has room for them: it had them before. */
static void index_again(struct blas *blas)
{
	hashmap_clear(&blas->by_tgid);
	for (uint32_t i = 0; i < blas->processes_n; i++)
		if (!blas->processes[i]->over)
			hashmap_put(&blas->by_tgid, blas->processes[i]->tgid, i);
}

void blas_process_over(struct blas *blas, uint32_t tgid, uint64_t incarnation)
{
	struct blas_traced *p = traced_find(blas, tgid);

	if (p && incarnation_is(p->incarnation, incarnation))
		traced_end(blas, p);
}

static void on_process(struct blas *blas, const struct trace_header *event, uint32_t size)
{
	struct blas_traced *p = traced_find(blas, event->tgid);

	incarnations_event(&blas->incarnations, event, size);
	if (p && incarnation_ends(&p->incarnation, p->first_ns, event, size))
		traced_end(blas, p);
}

/* ---- shapes ---- */

static int64_t math_of(const struct blas_traced *p, uint64_t handle)
{
	uint32_t math;

	return handle && p && hashmap_get(&p->handles, handle, &math) ? (int64_t)math : -1;
}

static bool gemm_shape(const struct blas_traced *p, const struct trace_call *call, struct blas_shape *shape)
{
	*shape = (struct blas_shape){
		.m = call->addr, .n = call->other, .k = call->stream, .batch = call->size
	};
	for (unsigned i = 0; i < BLAS_OPERANDS; i++)
		shape->types[i] = (uint8_t)(call->kind >> i * 8);
	shape->precision = (uint8_t)blas_precision_of(shape->types[BLAS_A], shape->types[BLAS_COMPUTE],
						      math_of(p, call->handle));
	return call->other != UINT32_MAX && !(call->header.flags & TRACE_FLAG_UNREAD);
}

/* D is m times n, A is m times k or, transposed, k times m, and B is k times n or n times k. */
static bool sizes_of(const struct layout *a, const struct layout *b, const struct layout *d,
		     struct blas_shape *shape)
{
	if (!a || !b || !d)
		return false;
	shape->m = d->rows;
	shape->n = d->cols;
	shape->k = a->rows == d->rows ? a->cols : a->rows;
	shape->batch = d->batch;
	return (a->rows == d->rows || a->cols == d->rows) &&
	       ((b->rows == shape->k && b->cols == d->cols) || (b->rows == d->cols && b->cols == shape->k));
}

static bool matmul_shape(const struct blas_traced *p, const struct trace_call *call, struct blas_shape *shape)
{
	const struct layout *a, *b, *d;

	*shape = (struct blas_shape){ 0 };
	if (!p)
		return false;
	a = layouts_find(&p->layouts, call->handle);
	b = layouts_find(&p->layouts, call->size);
	d = layouts_find(&p->layouts, call->stream);
	if (!sizes_of(a, b, d, shape))
		return false;
	shape->types[BLAS_A] = a->type;
	shape->types[BLAS_B] = b->type;
	shape->types[BLAS_C] = d->type;
	shape->types[BLAS_COMPUTE] = layouts_compute(&p->layouts, call->addr);
	shape->precision = (uint8_t)blas_precision_of(a->type, shape->types[BLAS_COMPUTE], 0);
	return true;
}

static bool shape_of(const struct blas_traced *p, const struct trace_call *call, struct blas_shape *ret_shape)
{
	if (call->header.op == TRACE_OP_BLAS_GEMM)
		return gemm_shape(p, call, ret_shape);
	return call->header.op == TRACE_OP_BLAS_MATMUL && matmul_shape(p, call, ret_shape);
}

bool blas_shape_of(const struct blas *blas, const struct trace_call *call, struct blas_shape *ret_shape)
{
	return shape_of(traced_find(blas, call->header.tgid), call, ret_shape);
}

/* ---- sums ---- */

static void sum_add(struct blas_sum *sum, double flop)
{
	sum->calls++;
	sum->flop += flop;
}

/* NULL: there is no room for a further shape. */
static struct blas_row *row_get(const struct blas *blas, struct blas_traced *p,
				const struct blas_shape *shape)
{
	uint64_t key = hash_bytes_secret(shape, sizeof(*shape));
	uint32_t i, room = p->rows_room ? p->rows_room * 2 : 8;
	struct blas_row *rows;

	if (hashmap_get(&p->shapes, key, &i))
		return memcmp(&p->rows[i].shape, shape, sizeof(*shape)) == 0 ? &p->rows[i] : NULL;
	if (p->shown.rows_n == blas->shapes)
		return NULL;
	if (p->shown.rows_n == p->rows_room) {
		rows = reallocarray(p->rows, room, sizeof(*rows));
		if (!rows)
			return NULL;
		p->rows = rows;
		p->rows_room = room;
	}
	if (hashmap_put(&p->shapes, key, p->shown.rows_n) < 0)
		return NULL;
	p->rows[p->shown.rows_n] = (struct blas_row){ .shape = *shape };
	return &p->rows[p->shown.rows_n++];
}

static void on_multiplication(struct blas *blas, struct blas_traced *p, const struct trace_call *call)
{
	struct blas_shape shape;
	bool sized = shape_of(p, call, &shape);
	struct blas_row *row;
	double flop;

	blas->beyond += p == NULL;
	if (call->result != 0) {
		if (p)
			p->shown.failed++;
		return;
	}
	if (!sized) {
		blas->unsized++;
		if (p)
			p->shown.unsized++;
		return;
	}
	flop = blas_flop(&shape);
	sum_add(&blas->totals[shape.precision], flop);
	if (!p)
		return;
	sum_add(&p->shown.by_precision[shape.precision], flop);
	row = row_get(blas, p, &shape);
	sum_add(row ? &row->sum : &p->shown.others, flop);
}

static void on_math(struct blas_traced *p, const struct trace_call *call)
{
	uint32_t known;
	bool is_new = !hashmap_get(&p->handles, call->handle, &known);

	if (!call->handle)
		return;
	if (is_new && p->handles_n == BLAS_HANDLES_MAX) {
		hashmap_clear(&p->handles); /* what is forgotten is not known */
		p->handles_n = 0;
	}
	if (hashmap_put(&p->handles, call->handle, call->kind & 0xff) == 0)
		p->handles_n += is_new;
}

/* Layouts, descriptors and handles; calls whose outcome is not known teach nothing. */
static void on_setup(struct blas_traced *p, const struct trace_call *call)
{
	const struct layout layout = { .digest = call->handle,
				       .rows = call->addr,
				       .cols = call->stream,
				       .batch = 1,
				       .type = (uint8_t)MIN(call->kind, (uint32_t)BLAS_TYPE_UNKNOWN) };

	if (!p || call->result != 0 || call->header.flags & (TRACE_FLAG_NO_RESULT | TRACE_FLAG_UNREAD))
		return;
	switch (call->header.op) {
	case TRACE_OP_BLAS_MATH:
		on_math(p, call);
		break;
	case TRACE_OP_BLAS_LAYOUT:
		layouts_made(&p->layouts, &layout);
		break;
	case TRACE_OP_BLAS_LAYOUT_SET:
		layouts_set(&p->layouts, call->addr, call->handle, call->kind, call->size, call->stream);
		break;
	case TRACE_OP_BLAS_DESC:
		layouts_described(&p->layouts, call->handle, call->kind);
		break;
	}
}

/* ---- events ---- */

bool blas_is_event(const struct trace_header *event)
{
	return event->type == TRACE_EVENT_CALL && event->op >= TRACE_OP_BLAS_GEMM &&
	       event->op <= TRACE_OP_BLAS_UNKNOWN;
}

static void on_call(struct blas *blas, const struct trace_call *call)
{
	struct blas_traced *p = traced_get(blas, call);

	switch (call->header.op) {
	case TRACE_OP_BLAS_GEMM:
	case TRACE_OP_BLAS_MATMUL:
	case TRACE_OP_BLAS_UNKNOWN:
		on_multiplication(blas, p, call);
		break;
	default:
		on_setup(p, call);
	}
}

void blas_event(struct blas *blas, const struct trace_header *event, uint32_t size)
{
	if (blas_is_event(event) && size >= sizeof(struct trace_call))
		on_call(blas, (const struct trace_call *)event);
	else if (event->type == TRACE_EVENT_PROCESS || event->type == TRACE_EVENT_EXEC ||
		 event->type == TRACE_EVENT_EXIT)
		on_process(blas, event, size);
}

void blas_lost(struct blas *blas)
{
	for (uint32_t i = 0; i < blas->processes_n; i++) {
		hashmap_clear(&blas->processes[i]->handles);
		blas->processes[i]->handles_n = 0;
	}
}

void blas_share(struct blas *blas, struct traced_users *users)
{
	blas->users = users;
	traced_users_room(users, TRACED_TABLE_BLAS, BLAS_PROCESSES_MAX);
}

struct blas *blas_new(uint32_t series, uint32_t shapes, bool keep)
{
	struct blas *blas = calloc(1, sizeof(*blas));

	if (!blas)
		return NULL;
	blas->series = series;
	blas->shapes = shapes;
	blas->keep = keep;
	return blas;
}

void blas_free(struct blas *blas)
{
	for (uint32_t i = 0; blas && i < blas->processes_n; i++)
		traced_free(blas->processes[i]);
	if (blas)
		hashmap_done(&blas->by_tgid);
	free(blas);
}

/* ---- figures ---- */

/* Of those with one PID, the youngest last. */
static int by_tgid(const void *a, const void *b)
{
	const struct blas_traced *x = *(const struct blas_traced *const *)a,
				 *y = *(const struct blas_traced *const *)b;

	if (x->tgid != y->tgid)
		return x->tgid < y->tgid ? -1 : 1;
	return x->first_ns < y->first_ns ? -1 : x->first_ns > y->first_ns;
}

static int by_flop(const void *a, const void *b)
{
	const struct blas_row *x = a, *y = b;

	if (x->sum.flop != y->sum.flop)
		return x->sum.flop > y->sum.flop ? -1 : 1;
	return memcmp(&x->shape, &y->shape, sizeof(x->shape));
}

/* A process of which nothing but layouts were seen is not shown. */
static bool has_figures(const struct blas_traced *p)
{
	return p->shown.rows_n > 0 || p->shown.others.calls > 0 || p->shown.unsized > 0 ||
	       p->shown.failed > 0;
}

static void process_fill(const struct blas_traced *p, struct blas_view *view)
{
	struct blas_process *shown = &view->processes[view->processes_n++];

	*shown = p->shown;
	shown->pid = p->tgid;
	shown->exited = p->over;
	shown->has_series = p->has_series;
	shown->peak_share = -1;
	shown->rows_first = view->rows_n;
	if (shown->rows_n == 0)
		return;
	memcpy(&view->rows[view->rows_n], p->rows, shown->rows_n * sizeof(*p->rows));
	qsort(&view->rows[view->rows_n], shown->rows_n, sizeof(*p->rows), by_flop);
	view->rows_n += shown->rows_n;
}

struct blas_view *blas_window(struct blas *blas)
{
	uint32_t rows = 0;
	struct blas_view *view;

	for (uint32_t i = 0; i < blas->processes_n; i++)
		rows += blas->processes[i]->shown.rows_n;
	view = blas_view_new(blas->processes_n, rows);
	if (!view)
		return NULL;
	qsort(blas->processes, blas->processes_n, sizeof(blas->processes[0]), by_tgid);
	for (uint32_t i = 0; i < blas->processes_n; i++)
		if (has_figures(blas->processes[i]))
			process_fill(blas->processes[i], view);
	for (uint32_t i = blas->processes_n; !blas->keep && i-- > 0;)
		if (blas->processes[i]->over)
			forget(blas, i);
	index_again(blas);
	memcpy(view->totals, blas->totals, sizeof(view->totals));
	view->unsized = blas->unsized;
	view->beyond = blas->beyond;
	return view;
}
