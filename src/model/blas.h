// SPDX-License-Identifier: Apache-2.0
/*
 * What traced processes ask cuBLAS to multiply, for the views: by shape, and by precision. A part of struct
 * trace_view, immutable as it. FLOP are those that the arguments ask for, 2 m n k of real numbers; what is
 * then done on the GPU, and when, is not known.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum blas_precision {
#define BLAS_PRECISION(id_, name_) BLAS_##id_,
#include "model/blas_precisions.def"
#undef BLAS_PRECISION
	BLAS_PRECISIONS,
};

enum { BLAS_COMM = 64 };

/* Of A, B, C (enum cudaDataType_t), and of computing (enum cublasComputeType_t); 0xff: not known. */
enum blas_operand { BLAS_A, BLAS_B, BLAS_C, BLAS_COMPUTE, BLAS_OPERANDS };

struct blas_shape {
	uint64_t m, n, k, batch;
	uint8_t types[BLAS_OPERANDS];
	uint8_t precision; /* enum blas_precision */
	uint8_t pad[3];
};
_Static_assert(sizeof(struct blas_shape) == 40, "no hidden bytes: it is hashed");

struct blas_sum {
	uint64_t calls; /* that succeeded, or whose result is not known */
	double flop;
};

struct blas_row {
	struct blas_shape shape;
	struct blas_sum sum;
};

struct blas_process {
	uint32_t pid;
	char comm[BLAS_COMM]; /* sanitised UTF-8 */
	bool exited; /* shown for the last time */
	bool has_series;
	uint32_t rows_first, rows_n; /* the most FLOP first */
	struct blas_sum by_precision[BLAS_PRECISIONS];
	struct blas_sum others; /* of shapes beyond the limit; in by_precision, too */
	uint64_t unsized; /* calls whose size is not known: in no sum */
	uint64_t failed;
	/*
	 * Time that the FLOP take at the board's peak, as a share of the time that the device worked for the
	 * process: an estimate. Below 0: not known
	 */
	double peak_share;
};

struct blas_view {
	uint32_t processes_n, rows_n;
	struct blas_process *processes; /* by PID */
	struct blas_row *rows; /* by process */
	struct blas_sum totals[BLAS_PRECISIONS]; /* of all processes that ever were */
	uint64_t unsized;
	uint64_t beyond; /* calls of processes beyond the limit: in the totals, and in no process */
};

/* Zeroed, with room for so many; one allocation, to be freed. NULL: out of memory. */
struct blas_view *blas_view_new(uint32_t processes, uint32_t rows);

const char *blas_precision_name(enum blas_precision precision);
/* "bf16" of an enum cudaDataType_t, "32f" of an enum cublasComputeType_t; NULL: not known. */
const char *blas_type_name(uint32_t type);
const char *blas_compute_name(uint32_t type);
bool blas_type_is_complex(uint32_t type);
/*
 * What is computed with. @math: the handle's enum cublasMath_t; below 0: not known.
 */
enum blas_precision blas_precision_of(uint8_t type, uint8_t compute, int64_t math);
double blas_flop(const struct blas_shape *shape);

/* Meaning of a cublasStatus_t; NULL: unknown. */
const char *blas_error_words(int32_t code);

/* A board's, by the driver's name for it; NULL: it is not known. */
struct blas_peak;
const struct blas_peak *blas_peak_find(const char *name);
/* Seconds that so many FLOP take at the peak; below 0: not known, since one precision's peak is not. */
double blas_peak_seconds(const struct blas_peak *peak, const struct blas_sum sums[static BLAS_PRECISIONS]);
