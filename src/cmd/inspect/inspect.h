// SPDX-License-Identifier: Apache-2.0
/*
 * Inside gpusonde inspect: what is read is handed, image by image and kernel by kernel, to one of two
 * writers. Both write as they are told: a library may have 150,000 kernels, and nothing is kept but a count
 * for each architecture.
 *
 * Kernels are read by as many threads as there are CPUs, each with a state of the writer, a cache of names
 * and a bounded text of its own; what they write comes out as if there were one (inspect_order.h). All else
 * is the main thread's.
 *
 *   inspect.c        the command: what is asked for, what is to be said at the end
 *   inspect_read.c   reading, by several threads
 *   inspect_order.c  their texts in the order of the file
 *   inspect_files.c  which files
 *   inspect_names.c  demangled names, the last of them remembered
 *   inspect_json.c   one document: images, kernels, errors
 *   inspect_table.c  kernels as lines, then the images by architecture
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/strbuf.h"
#include "cmd/inspect/order.h"
#include "cubin/cubin.h"
#include "model/occupancy.h"
#include "view/view.h"

/* A name as it is shown. */
struct inspect_name {
	const char *text;
	size_t n;
	bool plain; /* this and the symbol: ASCII that JSON writes as it is */
	const char *brief; /* NULL: not asked for */
};

struct inspect_kernel {
	const struct cubin_image *image;
	const struct cubin_kernel *kernel;
	uint32_t image_index; /* among the images that are shown */
	const char *file;
	struct inspect_name name; /* demangled */
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
/*
 * As the command line says; each has device code, or something that was meant to be some. An exit status;
 * what is wrong was said.
 */
int inspect_files_find(const struct invocation *invocation, struct inspect_files *files);
void inspect_files_done(struct inspect_files *files);
/* On standard error. inspect_complain(): what an errno means here, and the remedy; gives EXIT_FAILURE. */
void inspect_say(const struct invocation *invocation, const char *path, const char *why);
int inspect_complain(const struct invocation *invocation, const char *path, int error);

/* What writers need to know of the command line. */
struct inspect_look {
	const char *command; /* for what goes to standard error */
	struct table_options options;
	bool full; /* names with everything that belongs to them */
	bool many_files;
};

/*
 * States are the main thread's, and one of each thread that reads, which gets its kernels and, without
 * images_first, all images. Text goes to @out. In this order: begin, images of all files, then for each file
 * its kernels, end. Those that do nothing may be NULL.
 */
struct inspect_writer {
	bool brief; /* it shows brief names, unless they are asked for in full */
	bool images_first; /* images are told of before any kernel, in a pass of their own */
	/* what a kernel's text begins with, which the very first one is written without */
	size_t separator_n;
	size_t state_size;
	void (*init)(void *state, const struct inspect_look *look);
	void (*done)(void *state);
	void (*begin)(struct strbuf *out, void *state);
	void (*image)(struct strbuf *out, void *state, const char *file, const struct cubin_image *image);
	void (*kernels)(struct strbuf *out, void *state); /* before those of any file */
	/* Before those of a file that has any; an empty line is put between files. */
	void (*heading)(struct strbuf *out, void *state, const char *file);
	void (*kernel)(struct strbuf *out, void *state, const struct inspect_kernel *kernel);
	void (*trouble)(void *state, const struct inspect_trouble *trouble);
	/* What a thread's state has counted; @images: its images, too, which all of them saw. */
	void (*merge)(void *state, const void *of_thread, bool images);
	void (*end)(struct strbuf *out, void *state);
};

struct inspect_json {
	uint32_t images;
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
	struct inspect_look look;
	struct inspect_sum sums[INSPECT_SUMS];
	unsigned sums_n;
	struct inspect_sum *sum; /* of the last image */
	struct strbuf line;
};
extern const struct inspect_writer inspect_table_writer;

/* Names as they were demangled lately: a kernel is compiled for many architectures, one after the other. */
struct inspect_names;
/* @brief: brief names, too. */
int inspect_names_new(bool brief, struct inspect_names **ret_names);
void inspect_names_free(struct inspect_names *names); /* NULL is fine */
/* Good until the next call. */
struct inspect_name inspect_names_get(struct inspect_names *names, const char *symbol, size_t n);
/* C++ names that were shown as they are, because they are wrong or would take too much. */
uint64_t inspect_names_mangled(const struct inspect_names *names);
DEFINE_CLEANUP(struct inspect_names *, inspect_names_free, inspect_names_freep)

struct inspect_filter {
	const char *kernel; /* a regular expression that is right, or NULL: all */
	bool by_arch;
	struct kernel_arch arch;
};
/* What reading all files came to. */
enum { INSPECT_ARCHS = 64 };
struct inspect_result {
	uint64_t images_found, images /* shown ones */, kernels, mangled;
	uint64_t to_compile; /* shown ones that hold PTX or what the linker compiles */
	/* of all images that were found, as they came; more are left out */
	struct kernel_arch archs[INSPECT_ARCHS];
	unsigned archs_n;
	bool archs_left_out;
};
/*
 * Of the files' images or kernels what the filter wants goes to standard output, through the writer's main
 * @state.
 */
struct inspect_reading {
	const struct inspect_writer *writer;
	void *state;
	struct inspect_look look;
	struct inspect_filter filter;
	const struct inspect_files *files;
	unsigned threads; /* at most; 0: as many as there are CPUs */
	int fd; /* where it goes */
};
/* -ENOMEM; -errno of writing, of which -EPIPE says that the reader has gone away. */
int inspect_read(const struct inspect_reading *reading, struct inspect_result *ret_result);
