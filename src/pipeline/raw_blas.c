// SPDX-License-Identifier: Apache-2.0
#include "pipeline/raw_blas.h"

static void number_add(struct raw_event *raw, const char *name, uint64_t value, const char *text)
{
	if (raw->fields.n < RAW_FIELDS_MAX)
		raw->fields.at[raw->fields.n++] = (struct raw_field){
			.name = name, .number = RAW_UNSIGNED, .value = value, .text = text
		};
}

static void add_shape(struct raw_event *raw, const struct blas_shape *shape)
{
	static const char *const operands[] = { "a", "b", "c" };

	number_add(raw, "m", shape->m, NULL);
	number_add(raw, "n", shape->n, NULL);
	number_add(raw, "k", shape->k, NULL);
	number_add(raw, "batch", shape->batch, NULL);
	for (unsigned i = 0; i < BLAS_COMPUTE; i++)
		number_add(raw, operands[i], shape->types[i], blas_type_name(shape->types[i]));
	number_add(raw, "precision", shape->precision,
		   blas_precision_name((enum blas_precision)shape->precision));
}

void raw_blas(const struct blas *blas, const struct trace_call *call, struct raw_event *raw)
{
	struct blas_shape shape;

	raw->type = RAW_FIELDS;
	switch (call->header.op) {
	case TRACE_OP_BLAS_GEMM:
	case TRACE_OP_BLAS_MATMUL:
		if (blas && blas_shape_of(blas, call, &shape))
			add_shape(raw, &shape);
		else
			number_add(raw, "size", 0, "unknown");
		break;
	case TRACE_OP_BLAS_LAYOUT:
		number_add(raw, "rows", call->addr, NULL);
		number_add(raw, "cols", call->stream, NULL);
		number_add(raw, "data_type", call->kind, blas_type_name(call->kind));
		break;
	case TRACE_OP_BLAS_LAYOUT_SET:
		number_add(raw, "attribute", call->kind, NULL);
		number_add(raw, "value", call->stream < 8 ? (uint32_t)call->size : call->size, NULL);
		break;
	case TRACE_OP_BLAS_DESC:
		number_add(raw, "compute", call->kind, blas_compute_name(call->kind));
		break;
	case TRACE_OP_BLAS_MATH:
		number_add(raw, "math", call->kind, NULL);
		break;
	}
}
