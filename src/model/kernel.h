// SPDX-License-Identifier: Apache-2.0
/*
 * A kernel: its names, their source, and its resource figures for one architecture. Immutable and reference
 * counted: all processes that launch it share one.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/macro.h"

enum kernel_figure {
#define FIGURE(id_, json_, heading_, help_) KERNEL_##id_,
#include "model/kernel.def"
#undef FIGURE
	KERNEL_FIGURES
};

struct kernel_figure_row {
	const char *json, *heading, *help;
};
extern const struct kernel_figure_row kernel_figures[KERNEL_FIGURES];

/* sm_90a: 90, 'a'. sm 0: unknown. */
struct kernel_arch {
	uint16_t sm;
	char variant; /* 'a' this architecture only, 'f' its family, 0 */
};
enum { KERNEL_ARCH_TEXT = 16 };
/* "sm_90a"; "" if unknown. */
void kernel_arch_text(struct kernel_arch arch, char buf[static KERNEL_ARCH_TEXT]);
/* "sm_90a", "compute_90", "90a", "90". -EINVAL. */
int kernel_arch_parse(const char *text, struct kernel_arch *ret_arch);

/* How a launch's function was resolved to this kernel, best first. */
enum kernel_source {
	KERNEL_SOURCE_HANDLE, /* the creation of the handle from this name was traced */
	KERNEL_SOURCE_REGISTERED, /* from the program's registration code */
	KERNEL_SOURCE_SYMBOL, /* from a symbol of the host function */
	KERNEL_SOURCE_MEMORY, /* from the process's memory */
	KERNEL_SOURCE_UNRESOLVED, /* no name: `file` and `offset` locate its address */
	KERNEL_SOURCES
};
const char *kernel_source_name(
	enum kernel_source source); /* the name in JSON: handle, registered, symbol, memory, unresolved */

struct kernel {
	atomic_uint refs;
	enum kernel_source source;
	/* Never NULL; valid UTF-8. Unresolved kernels are named "libfoo.so+0x1234" or "0x7f...". */
	const char *symbol; /* as compiled: mangled */
	const char *name; /* demangled, in full */
	const char *brief; /* short form: no namespaces, templates folded */
	const char *file; /* file that contains it, as the process names it; "" unknown */
	uint64_t offset; /* of an unresolved kernel: offset in the file; else 0 */
	/* of the image that the device uses; sm 0: no image, or the device is unknown */
	struct kernel_arch arch;
	bool jit; /* the device uses PTX: figures are unknown until it is compiled */
	int64_t figures[KERNEL_FIGURES]; /* -1 absent */
};

/* Copies the texts; one reference. -ENOMEM. */
int kernel_new(const struct kernel *from, struct kernel **ret_kernel);
struct kernel *kernel_ref(struct kernel *kernel);
void kernel_unref(struct kernel *kernel); /* NULL is allowed */
DEFINE_CLEANUP(struct kernel *, kernel_unref, kernel_unrefp)
