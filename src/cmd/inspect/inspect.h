// SPDX-License-Identifier: Apache-2.0
/*
 * Inside gpusonde inspect: each image and kernel that is read goes to a writer of view/inspect.h.
 *
 * Kernels are read by as many threads as there are CPUs, each with a writer's state, a cache of names and a
 * bounded text of its own. Their texts are written in the order of the file (order.h). Everything else is the
 * main thread's.
 *
 *   inspect.c   the command: options, messages about the whole run
 *   files.c     the files to read
 *   read.c      reading by several threads
 *   order.c     puts their texts in the order of the file
 *   sort.c      or, with --sort, in that of a figure
 *   names.c     demangled names, the most recent ones cached
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/strbuf.h"
#include "cmd/inspect/order.h"
#include "cubin/cubin.h"
#include "view/inspect.h"

struct invocation;
struct inspect_file {
	char *path; /* valid UTF-8 */
	int fd;
};
struct inspect_files {
	struct inspect_file *file;
	size_t n;
	/* Called for a file of a process that cannot be read. */
	void (*error)(const struct inspect_error *error, void *userdata);
	void *userdata;
};
/*
 * The files that the command line selects; each holds device code, possibly malformed. Returns an exit
 * status; errors have been printed.
 */
int inspect_files_find(const struct invocation *invocation, struct inspect_files *files);
void inspect_files_done(struct inspect_files *files);
/* On standard error. */
void inspect_print(const struct invocation *invocation, const char *path, const char *why);
/* Prints the cause and the remedy of -errno @error. Returns EXIT_FAILURE. */
int inspect_print_errno(const struct invocation *invocation, const char *path, int error);

/* A cache of demangled names: a file holds each kernel once per architecture. */
struct inspect_names;
/* @brief: also makes brief names. */
int inspect_names_new(bool brief, struct inspect_names **ret_names);
void inspect_names_free(struct inspect_names *names); /* NULL is fine */
/* Valid until the next call. */
struct inspect_name inspect_names_get(struct inspect_names *names, const char *symbol, size_t n);
/* Number of C++ names shown mangled, because they are malformed or exceed a limit. */
uint64_t inspect_names_mangled(const struct inspect_names *names);
DEFINE_CLEANUP(struct inspect_names *, inspect_names_free, inspect_names_freep)

struct inspect_filter {
	const char *kernel; /* a valid regular expression; NULL: all */
	bool by_arch;
	struct kernel_arch arch;
};
/* Totals over all files. */
enum { INSPECT_ARCHS = 64 };
struct inspect_result {
	uint64_t images_found, images /* shown ones */, kernels, mangled;
	uint64_t to_compile; /* shown images that hold PTX or code for the linker */
	/* architectures of all images found, in order of appearance */
	struct kernel_arch archs[INSPECT_ARCHS];
	unsigned archs_n;
	bool archs_left_out; /* there were more than INSPECT_ARCHS */
};
/* Images and kernels of @files that match @filter are written to @fd by @writer. */
struct inspect_reading {
	const struct inspect_writer *writer;
	void *state; /* the writer's main state */
	struct inspect_options options;
	const char *command; /* prefix of errors on standard error */
	struct inspect_filter filter;
	const struct inspect_files *files;
	const unsigned *sort; /* inspect_sort_key (sort.h); NULL: in the order of the file */
	uint32_t block; /* threads of a block, for occupancy; 0: the most that each kernel takes */
	unsigned threads; /* at most; 0: one per CPU */
	int fd; /* output */
};
/* Passes @error to the writer, or prints it if the writer takes no errors. */
void inspect_report(const struct inspect_reading *reading, const struct inspect_error *error);
/* -ENOMEM, or -errno of writing; -EPIPE: the reader has closed the pipe. */
int inspect_read(const struct inspect_reading *reading, struct inspect_result *ret_result);
