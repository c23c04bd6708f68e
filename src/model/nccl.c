// SPDX-License-Identifier: Apache-2.0
#include "model/nccl.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/macro.h"

enum bus { BUS_ONE, BUS_PART, BUS_TWICE };

static const struct {
	const char *name;
	bool per_rank;
	enum bus bus;
} operations[NCCL_OPERATIONS] = {
#define NCCL_OPERATION(id_, name_, per_rank_, bus_) [NCCL_##id_] = { name_, per_rank_, BUS_##bus_ },
#include "model/nccl_operations.def"
#undef NCCL_OPERATION
};

/* As ncclDataType_t in nccl.h has them. */
static const struct {
	const char *name;
	uint32_t bytes;
} types[] = {
	{ "int8", 1 },    { "uint8", 1 },    { "int32", 4 },      { "uint32", 4 },
	{ "int64", 8 },   { "uint64", 8 },   { "float16", 2 },    { "float32", 4 },
	{ "float64", 8 }, { "bfloat16", 2 }, { "float8e4m3", 1 }, { "float8e5m2", 1 },
};

#define ROUNDED(size_) (((size_) + _Alignof(max_align_t) - 1) / _Alignof(max_align_t) * _Alignof(max_align_t))

struct nccl_view *nccl_view_new(uint32_t processes, uint32_t rows, uint32_t communicators, uint32_t totals)
{
	size_t head = ROUNDED(sizeof(struct nccl_view)),
	       processes_size = ROUNDED(processes * sizeof(struct nccl_process)),
	       rows_size = ROUNDED(rows * sizeof(struct nccl_row)),
	       communicators_size = ROUNDED(communicators * sizeof(struct nccl_communicator));
	char *memory = calloc(1, head + processes_size + rows_size + communicators_size +
					 totals * sizeof(struct nccl_row));
	struct nccl_view *view = (struct nccl_view *)(void *)memory;

	if (!view)
		return NULL;
	view->processes = (void *)(memory + head);
	view->rows = (void *)(memory + head + processes_size);
	view->communicators = (void *)(memory + head + processes_size + rows_size);
	view->totals = (void *)(memory + head + processes_size + rows_size + communicators_size);
	return view;
}

const char *nccl_operation_name(enum nccl_operation operation)
{
	return (unsigned)operation < NCCL_OPERATIONS ? operations[operation].name : "";
}

bool nccl_operation_is_per_rank(enum nccl_operation operation)
{
	return (unsigned)operation < NCCL_OPERATIONS && operations[operation].per_rank;
}

double nccl_bus_factor(enum nccl_operation operation, uint32_t ranks)
{
	double part = ranks > 0 ? (double)(ranks - 1) / ranks : 0;

	if ((unsigned)operation >= NCCL_OPERATIONS || operations[operation].bus == BUS_ONE)
		return 1;
	return operations[operation].bus == BUS_TWICE ? 2 * part : part;
}

void nccl_size_text(uint32_t ranks, char buf[static NCCL_SIZE_TEXT])
{
	if (ranks == NCCL_RANKS_UNKNOWN)
		snprintf(buf, NCCL_SIZE_TEXT, "unknown");
	else if (ranks == NCCL_RANKS_OTHER)
		snprintf(buf, NCCL_SIZE_TEXT, "other");
	else
		snprintf(buf, NCCL_SIZE_TEXT, "%u", ranks);
}

uint32_t nccl_type_bytes(uint32_t type)
{
	return type < ARRAY_SIZE(types) ? types[type].bytes : 0;
}

const char *nccl_type_name(uint32_t type)
{
	return type < ARRAY_SIZE(types) ? types[type].name : NULL;
}

const char *nccl_reduction_name(uint32_t reduction)
{
	static const char *const names[] = { "sum", "prod", "max", "min", "avg" };

	return reduction < ARRAY_SIZE(names) ? names[reduction] : NULL;
}

const char *nccl_error_words(int32_t code)
{
	static const char *const words[] = {
		[1] = "unhandled CUDA error", [2] = "unhandled system error",
		[3] = "internal error",       [4] = "invalid argument",
		[5] = "invalid usage",        [6] = "remote process error",
		[7] = "in progress",          [8] = "timed out",
	};

	return code >= 0 && (size_t)code < ARRAY_SIZE(words) ? words[code] : NULL;
}
