// SPDX-License-Identifier: Apache-2.0
/* Resources of the kernels of a file or an image, for one architecture. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/macro.h"
#include "cubin/cubin.h"
#include "model/kernel.h"
#include "symbolize/names.h"

enum {
	IMAGE_BYTES = 4 << 20,
	METADATA_BYTES = 8 << 20,
};

struct symbolizer;

enum { FIGURES_NONE = UINT32_MAX };
struct figures_entry {
	uint64_t hash;
	uint32_t check;
	uint32_t container;
	struct kernel_arch arch;
	bool jit;
	uint32_t figures[KERNEL_FIGURES]; /* FIGURES_NONE: absent */
};

/*
 * The kernels of a file that a device of one architecture uses, or (sm 0) all kernels of an image. Sorted by
 * key.
 */
struct figures {
	uint16_t sm;
	uint32_t n;
	struct figures_entry *entries;
	struct cubin_image *ptx; /* sm 0: kind, arch and container of each */
	uint32_t ptx_n;
	/* the device uses PTX of a container whose kernels' names are unknown */
	bool unnamed_jit;
	bool whole; /* nothing was dropped */
	uint64_t used;
};

/* Data about one kernel from one or more places; figures that differ are absent. */
struct resources {
	bool any;
	bool jit;
	struct kernel_arch arch;
	int64_t figures[KERNEL_FIGURES];
};

struct figures_limits {
	uint32_t entries;
	size_t image_bytes, metadata_bytes;
};
/* -ENODATA, -ENOEXEC: no CUDA device code; -ECANCELED: the thread must stop. */
int figures_read(struct symbolizer *symbolizer, const struct cubin_source *source, uint16_t sm,
		 const struct figures_limits *limits, struct figures **ret_figures);
void figures_free(struct figures *figures);
DEFINE_CLEANUP(struct figures *, figures_free, figures_freep)
uint64_t figures_bytes(const struct figures *figures);
/* Adds the kernel's data to @resources. False: not found. */
bool figures_find(const struct figures *figures, struct symbol_key key, uint16_t sm,
		  struct resources *resources);
bool figures_has(const struct figures *figures, struct symbol_key key);
void resources_init(struct resources *resources);
/* Adds a kernel without figures; @jit: compiled when it is loaded. */
void resources_add_unknown(struct resources *resources, bool jit);
