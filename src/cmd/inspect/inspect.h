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
 * As the command line says; each has device code, or something that was meant to be some. An exit status;
 * what is wrong was said.
 */
int inspect_files_find(const struct invocation *invocation, struct inspect_files *files);
void inspect_files_done(struct inspect_files *files);
/* On standard error. inspect_complain(): what an errno means here, and the remedy; gives EXIT_FAILURE. */
void inspect_say(const struct invocation *invocation, const char *path, const char *why);
int inspect_complain(const struct invocation *invocation, const char *path, int error);

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
	struct inspect_options options;
	const char *command; /* named in errors that the writer leaves to standard error */
	struct inspect_filter filter;
	const struct inspect_files *files;
	unsigned threads; /* at most; 0: as many as there are CPUs */
	int fd; /* where it goes */
};
/* To the writer, or to standard error where that has no place for errors. */
void inspect_report(const struct inspect_reading *reading, const struct inspect_error *error);
/* -ENOMEM; -errno of writing, of which -EPIPE says that the reader has gone away. */
int inspect_read(const struct inspect_reading *reading, struct inspect_result *ret_result);
