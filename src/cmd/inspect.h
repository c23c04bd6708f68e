// SPDX-License-Identifier: Apache-2.0
/*
 * Inside gpusonde inspect: what inspect.c reads is handed, image by image and kernel by kernel, to one of two writers. Both write as they are
 * told: a library may have 150,000 kernels, and nothing is kept but a count for each architecture.
 *
 *   inspect.c        the command: what is asked for, reading, troubles
 *   inspect_files.c  which files
 *   inspect_names.c  demangled names, the last of them remembered
 *   inspect_json.c   one document: images, kernels, errors
 *   inspect_table.c  kernels as lines, then the images by architecture
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/strbuf.h"
#include "cubin/cubin.h"
#include "model/occupancy.h"
#include "view/view.h"

/* What goes to standard output; after a failure nothing does. */
struct inspect_out {
	struct strbuf text;
	int error; /* the first; -EPIPE: the reader has gone away, which is no failure */
};
/* Sends what has come together; @all: however little that is. Gives out->error. */
int inspect_flush(struct inspect_out *out, bool all);

struct inspect_kernel {
	const struct cubin_image *image;
	const struct cubin_kernel *kernel;
	uint32_t image_index; /* among the images that are shown */
	const char *file;
	const char *name; /* demangled */
	bool has_occupancy;
	struct occupancy occupancy; /* at max_threads, without dynamic shared memory */
};

struct inspect_trouble {
	const char *file;
	bool has_offset;
	uint64_t offset;
	const char *text;
};

struct invocation;
struct inspect_file {
	char *path; /* valid UTF-8 */
	int fd;
};
struct inspect_files {
	struct inspect_file *file;
	size_t n;
	/* What could not be read of a process. */
	void (*tell)(const char *file, const char *text, void *userdata);
	void *userdata;
};
/* As the command line says; each has device code, or something that was meant to be some. An exit status; what is wrong was said. */
int inspect_files_find(const struct invocation *invocation, struct inspect_files *files);
void inspect_files_done(struct inspect_files *files);
/* On standard error. inspect_complain(): what an errno means here, and the remedy; gives EXIT_FAILURE. */
void inspect_say(const struct invocation *invocation, const char *path, const char *why);
int inspect_complain(const struct invocation *invocation, const char *path, int error);

/* In this order: begin, images of all files, then their kernels, end. */
struct inspect_writer {
	bool images_first; /* images are told of before any kernel, in a pass of their own */
	void (*begin)(struct inspect_out *out, void *state);
	void (*image)(struct inspect_out *out, void *state, const char *file, const struct cubin_image *image);
	void (*kernel)(struct inspect_out *out, void *state, const struct inspect_kernel *kernel);
	void (*trouble)(struct inspect_out *out, void *state, const struct inspect_trouble *trouble);
	void (*end)(struct inspect_out *out, void *state);
};

struct inspect_json {
	uint32_t images, kernels;
	bool in_kernels;
	struct strbuf errors; /* what the document ends with */
	uint64_t errors_left_out;
	struct strbuf scratch;
};
extern const struct inspect_writer inspect_json_writer;

/* Images of one kind and architecture. */
struct inspect_sum {
	struct kernel_arch arch;
	enum cubin_kind kind;
	enum cubin_compression compression;
	bool relocatable;
	uint64_t images, bytes, uncompressed_bytes, kernels;
};
enum { INSPECT_SUMS = 256 };
struct inspect_table {
	const char *command; /* for what goes to standard error */
	struct table_options options;
	bool full; /* names with everything that belongs to them */
	unsigned file_n; /* files that were named in lines of their own */
	const char *file; /* the last */
	bool many_files;
	struct inspect_sum sums[INSPECT_SUMS];
	unsigned sums_n;
	struct strbuf line;
	char *brief;
	size_t brief_size;
};
extern const struct inspect_writer inspect_table_writer;

/* Names as they were demangled lately: a kernel is compiled for many architectures, one after the other. */
struct inspect_names;
int inspect_names_new(struct inspect_names **ret_names);
void inspect_names_free(struct inspect_names *names); /* NULL is fine */
/* Good until the next call. */
const char *inspect_names_get(struct inspect_names *names, const char *symbol, size_t n);
/* C++ names that were shown as they are, because they are wrong or would take too much. */
uint64_t inspect_names_mangled(const struct inspect_names *names);
DEFINE_CLEANUP(struct inspect_names *, inspect_names_free, inspect_names_freep)
