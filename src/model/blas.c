// SPDX-License-Identifier: Apache-2.0
#include "model/blas.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/macro.h"

struct blas_peak {
	const char *name;
	double fp64, fp32, tf32, fp16, fp8, int8; /* TFLOP/s */
};

static const struct blas_peak peaks[] = {
#define PEAK(...) { __VA_ARGS__ },
#include "model/peaks.def"
#undef PEAK
};

static const char *const precisions[BLAS_PRECISIONS] = {
#define BLAS_PRECISION(id_, name_) [BLAS_##id_] = name_,
#include "model/blas_precisions.def"
#undef BLAS_PRECISION
};

struct blas_view *blas_view_new(uint32_t processes, uint32_t rows)
{
	size_t head = sizeof(struct blas_view) + processes * sizeof(struct blas_process);
	struct blas_view *view = calloc(1, head + rows * sizeof(struct blas_row));

	if (!view)
		return NULL;
	view->processes = (struct blas_process *)(view + 1);
	view->rows = (struct blas_row *)(view->processes + processes);
	return view;
}

const char *blas_precision_name(enum blas_precision precision)
{
	return (unsigned)precision < BLAS_PRECISIONS ? precisions[precision] : "";
}

/* enum cudaDataType_t in library_types.h, enum cublasComputeType_t in cublas_api.h */
static const char *const types[] = {
	[0] = "fp32",      [1] = "fp64",      [2] = "fp16",       [3] = "int8",      [4] = "c_fp32",
	[5] = "c_fp64",    [6] = "c_fp16",    [7] = "c_int8",     [8] = "uint8",     [9] = "c_uint8",
	[10] = "int32",    [11] = "c_int32",  [14] = "bf16",      [15] = "c_bf16",   [16] = "int4",
	[28] = "fp8_e4m3", [29] = "fp8_e5m2", [30] = "fp8_ue8m0", [31] = "fp6_e2m3", [32] = "fp6_e3m2",
	[33] = "fp4_e2m1",
};

static const char *const computes[] = {
	[64] = "16f",          [65] = "16f_pedantic",  [68] = "32f",           [69] = "32f_pedantic",
	[70] = "64f",          [71] = "64f_pedantic",  [72] = "32i",           [73] = "32i_pedantic",
	[74] = "32f_fast_16f", [75] = "32f_fast_16bf", [77] = "32f_fast_tf32", [78] = "32f_emulated_16bfx9",
	[79] = "64f_emulated",
};

const char *blas_type_name(uint32_t type)
{
	return type < ARRAY_SIZE(types) ? types[type] : NULL;
}

const char *blas_compute_name(uint32_t type)
{
	return type < ARRAY_SIZE(computes) ? computes[type] : NULL;
}

bool blas_type_is_complex(uint32_t type)
{
	return (type >= 4 && type <= 7) || (type >= 9 && type <= 27 && type % 2 == 1);
}

/* enum cublasMath_t in cublas_api.h: the lower four bits choose the algorithm. */
static enum blas_precision by_math(int64_t math)
{
	enum { TENSOR_OP = 1, TF32 = 3, EMULATED_BF16X9 = 4 };

	if (math < 0)
		return BLAS_FP32_OR_TF32;
	switch (math & 0xf) {
	case TENSOR_OP:
		return BLAS_FP16;
	case TF32:
		return BLAS_TF32;
	case EMULATED_BF16X9:
		return BLAS_EMULATED;
	default:
		return BLAS_FP32;
	}
}

static enum blas_precision of_fp32(uint8_t compute, int64_t math)
{
	switch (compute) {
	case 0: /* by the handle alone */
	case 4:
	case 68:
		return by_math(math);
	case 74:
		return BLAS_FP16;
	case 75:
		return BLAS_BF16;
	case 77:
		return BLAS_TF32;
	case 78:
		return BLAS_EMULATED;
	case 0xff:
		return BLAS_FP32_OR_TF32;
	default:
		return BLAS_FP32;
	}
}

enum blas_precision blas_precision_of(uint8_t type, uint8_t compute, int64_t math)
{
	enum { EMULATED_FIXED_POINT = 8 };

	switch (type) {
	case 0:
	case 4:
		return of_fp32(compute, math);
	case 1:
	case 5:
		return compute == 79 || (math >= 0 && (math & 0xf) == EMULATED_FIXED_POINT) ? BLAS_EMULATED :
											      BLAS_FP64;
	case 2:
	case 6:
		return BLAS_FP16;
	case 14:
	case 15:
		return BLAS_BF16;
	case 3:
	case 7:
	case 8:
	case 9:
		return BLAS_INT8;
	case 16:
	case 17:
	case 18:
	case 19:
		return BLAS_INT4;
	case 28:
	case 29:
		return BLAS_FP8;
	case 31:
	case 32:
		return BLAS_FP6;
	case 33:
		return BLAS_FP4;
	default:
		return BLAS_OTHER;
	}
}

double blas_flop(const struct blas_shape *shape)
{
	double each = blas_type_is_complex(shape->types[BLAS_A]) ? 8 : 2;

	return each * (double)shape->m * (double)shape->n * (double)shape->k * (double)shape->batch;
}

const struct blas_peak *blas_peak_find(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(peaks); i++) {
		size_t n = strlen(peaks[i].name);

		if (strncmp(name, peaks[i].name, n) == 0 && strchr(" -", name[n]))
			return &peaks[i]; /* strchr() finds the end, too */
	}
	return NULL;
}

const char *blas_error_words(int32_t code)
{
	static const char *const words[] = {
		[1] = "not initialised",       [3] = "no memory",      [7] = "invalid value",
		[8] = "architecture mismatch", [11] = "mapping error", [13] = "execution failed",
		[14] = "internal error",       [15] = "not supported", [16] = "licence error",
	};

	return code >= 0 && (size_t)code < ARRAY_SIZE(words) ? words[code] : NULL;
}

static double peak_of(const struct blas_peak *peak, enum blas_precision precision)
{
	switch (precision) {
	case BLAS_FP64:
		return peak->fp64;
	case BLAS_FP32:
		return peak->fp32;
	case BLAS_TF32:
		return peak->tf32;
	case BLAS_FP16:
	case BLAS_BF16:
		return peak->fp16;
	case BLAS_FP8:
		return peak->fp8;
	case BLAS_INT8:
		return peak->int8;
	default:
		return 0;
	}
}

double blas_peak_seconds(const struct blas_peak *peak, const struct blas_sum sums[static BLAS_PRECISIONS])
{
	double seconds = 0;

	for (unsigned i = 0; i < BLAS_PRECISIONS; i++) {
		double tera = peak_of(peak, (enum blas_precision)i);

		if (sums[i].flop <= 0)
			continue;
		if (tera <= 0)
			return -1;
		seconds += sums[i].flop / (tera * 1e12);
	}
	return seconds;
}
