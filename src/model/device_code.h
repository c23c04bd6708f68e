// SPDX-License-Identifier: Apache-2.0
/* The forms in which files hold CUDA device code, and their names in JSON and tables. */
#pragma once

enum cubin_kind { CUBIN_PTX, CUBIN_ELF, CUBIN_OTHER };
const char *cubin_kind_name(enum cubin_kind kind); /* ptx, elf, other */

enum cubin_compression {
	CUBIN_PLAIN,
	CUBIN_LZ4,
	CUBIN_ZSTD,
	CUBIN_LZ_OLD, /* of toolkits before 7 or so: not read */
	CUBIN_COMPRESSIONS
};
const char *cubin_compression_name(enum cubin_compression compression); /* none, lz4, zstd, lz */
