// SPDX-License-Identifier: Apache-2.0
/* Launches that are told to `launched`. */
#pragma once

#include <cuda_runtime.h>

#include "truth.hh"

static inline void tell(Launched *launched, const char *match, const char *how, const void *host, dim3 grid, dim3 block,
			size_t shared, cudaError_t error)
{
	const Launch launch = { match, how, host, { grid.x, grid.y, grid.z }, { block.x, block.y, block.z }, shared,
				(int)error };

	launched(&launch);
}

/* Static kernels get longer names in relocatable device code, where two of one name must not meet. */
#define SAME "(__nv_static_.*_)?_Z4samePi"
#define HIDDEN "(__nv_static_.*_)?_ZN[0-9]+_GLOBAL__N_.*6hiddenEPi"

/* kernel<<<grid, block, shared>>>(...), and the error that it had. */
#define LAUNCH(match, kernel, grid, block, shared, ...)                                                            \
	do {                                                                                                      \
		(void)cudaGetLastError();                                                                         \
		kernel<<<grid, block, shared>>>(__VA_ARGS__);                                                     \
		tell(launched, match, "<<<>>>", (const void *)(kernel), grid, block, shared, cudaGetLastError()); \
	} while (0)
