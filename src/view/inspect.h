// SPDX-License-Identifier: Apache-2.0
/*
 * What "gpusonde inspect" prints. The command reads files and passes each image and each kernel to one of two
 * writers, which append to a text at once: a library may have 150,000 kernels, and none is stored.
 *
 *   json/inspect.c   one document: images, kernels, errors
 *   table/inspect.c  kernels as lines, then the images by architecture
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/strbuf.h"
#include "model/device_code.h"
#include "model/kernel.h"
#include "model/occupancy.h"
#include "view/view.h"

struct inspect_options {
	struct table_options table;
	bool full; /* names are neither abbreviated nor cut */
	bool many_files;
};

struct inspect_image {
	const char *file;
	struct kernel_arch arch;
	enum cubin_kind kind;
	enum cubin_compression compression;
	bool debug;
	bool relocatable; /* must be linked with others before a device takes it */
	uint64_t offset; /* in the file */
	uint64_t bytes, uncompressed_bytes;
};

/* A kernel's demangled name. */
struct inspect_name {
	const char *text;
	size_t n;
	bool plain; /* this and the symbol: inspect_is_plain() */
	const char *brief; /* NULL: not made */
};
/* Text that JSON needs no escapes for, in ASCII. */
bool inspect_is_plain(const char *text, size_t n);

struct inspect_kernel {
	uint32_t image_index; /* among the images that are shown */
	bool relocatable; /* as its image */
	const char *symbol;
	size_t symbol_n;
	struct inspect_name name;
	struct kernel_arch arch;
	const int64_t *figures; /* KERNEL_FIGURES of them; -1 absent */
	const uint32_t *required_block, *cluster; /* three of each; 0: not specified */
	bool has_occupancy;
	struct occupancy occupancy; /* at max_threads, without dynamic shared memory */
};

struct inspect_error {
	const char *file;
	bool has_offset;
	uint64_t offset;
	const char *text;
};
/* As a line of text: "FILE: at 0x10: TEXT", without a newline. */
void inspect_error_text(const struct inspect_error *error, struct strbuf *out);

/*
 * Order of the calls: begin, the images of all files, kernels, then for each file its heading and kernels, at
 * last end. Kernels may be written by several threads, each with a state and a text of its own; merge() adds
 * these states to the main one, to which all other calls go. A callback that does nothing may be NULL.
 */
struct inspect_writer {
	bool brief; /* names are abbreviated unless options.full */
	bool images_first; /* all images come before the first kernel; else each before its own kernels */
	size_t separator_n; /* bytes that each kernel's text begins with and the first one must lose */
	size_t state_size;
	void (*init)(void *state, const struct inspect_options *options);
	void (*done)(void *state);
	void (*begin)(struct strbuf *out, void *state);
	void (*image)(struct strbuf *out, void *state, const struct inspect_image *image);
	void (*kernels)(struct strbuf *out, void *state);
	/* Before the kernels of a file that has any; the caller puts an empty line between files. */
	void (*heading)(struct strbuf *out, void *state, const char *file);
	void (*kernel)(struct strbuf *out, void *state, const struct inspect_kernel *kernel);
	/* NULL: errors are not part of the output. */
	void (*error)(void *state, const struct inspect_error *error);
	/* Adds what @from has counted; @images: its images, too, which every thread has counted. */
	void (*merge)(void *state, const void *from, bool images);
	void (*end)(struct strbuf *out, void *state);
};
extern const struct inspect_writer inspect_json_writer, inspect_table_writer;
