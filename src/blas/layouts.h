// SPDX-License-Identifier: Apache-2.0
/*
 * The layouts and descriptors of cublasLt that a process has made, by digests of their contents. What a
 * digest was made for is the same wherever such contents lie, so that nothing has to be known of addresses.
 * Bounded: of LAYOUTS_MAX the oldest is replaced.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/hashmap.h"

enum { LAYOUTS_MAX = 1024, DESCRIPTORS_MAX = 256, BLAS_TYPE_UNKNOWN = 0xff };

struct layout {
	uint64_t digest, rows, cols, batch;
	uint8_t type; /* enum cudaDataType_t */
};

struct layouts {
	struct hashmap map, computes;
	uint32_t computes_n;
	struct layout *at;
	uint32_t n, room, hand;
};

void layouts_done(struct layouts *layouts);
/* A digest of 0 is of contents that could not be read: none is kept or found. */
void layouts_made(struct layouts *layouts, const struct layout *layout);
/* An attribute (enum cublasLtMatrixLayoutAttribute_t) was set, by a value of @size bytes. */
void layouts_set(struct layouts *layouts, uint64_t before, uint64_t after, uint32_t attribute, uint64_t value,
		 uint64_t size);
/* NULL: its making was not seen. */
const struct layout *layouts_find(const struct layouts *layouts, uint64_t digest);
/* A descriptor, with enum cublasComputeType_t. */
void layouts_described(struct layouts *layouts, uint64_t digest, uint32_t compute);
/* BLAS_TYPE_UNKNOWN: not seen. */
uint8_t layouts_compute(const struct layouts *layouts, uint64_t digest);
