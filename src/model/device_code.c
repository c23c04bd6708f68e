// SPDX-License-Identifier: Apache-2.0
#include "model/device_code.h"

const char *cubin_kind_name(enum cubin_kind kind)
{
	static const char *const names[] = {
		[CUBIN_PTX] = "ptx", [CUBIN_ELF] = "elf", [CUBIN_OTHER] = "other"
	};

	return names[kind];
}

const char *cubin_compression_name(enum cubin_compression compression)
{
	static const char *const names[CUBIN_COMPRESSIONS] = {
		[CUBIN_PLAIN] = "none", [CUBIN_LZ4] = "lz4", [CUBIN_ZSTD] = "zstd", [CUBIN_LZ_OLD] = "lz"
	};

	return names[compression];
}
