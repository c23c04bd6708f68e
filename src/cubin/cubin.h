// SPDX-License-Identifier: Apache-2.0
/*
 * CUDA binaries: which images a file holds, and which kernels these have, with their resources. Executables
 * and libraries (.nv_fatbin, __nv_relfatbin), host objects and archives of them, fatbin files, cubins, and
 * images in memory.
 *
 * Everything here is untrusted: it is read through a source, within bounds, and errors are reported with
 * their offset while reading continues. No threads unless requested, no global state. Memory:
 * limits.image_bytes and the symbols of one image; larger images are decompressed twice in a stream, once to
 * find their sections and once to keep those that matter.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/macro.h"
#include "model/device_code.h"
#include "model/kernel.h"

/* Bytes of a file, of our memory or of another process's. */
struct cubin_source {
	/* Up to @n bytes at @offset; 0 beyond the end; -errno. */
	ssize_t (*read)(void *of, uint64_t offset, void *buf, size_t n);
	void *of;
	uint64_t size; /* UINT64_MAX: not known, as of memory */
	/*
	 * in memory: the address of offset 0, to follow pointers, also to lower addresses (offsets wrap);
	 * else 0
	 */
	uint64_t address;
};
struct cubin_memory {
	const void *bytes;
	size_t n;
};
struct cubin_process {
	pid_t pid;
	uint64_t address; /* that offset 0 is */
};
/* The descriptor, memory or process stays the caller's. */
int cubin_source_file(int fd, struct cubin_source *ret_source);
void cubin_source_memory(const struct cubin_memory *memory, struct cubin_source *ret_source);
void cubin_source_process(const struct cubin_process *process, struct cubin_source *ret_source);

struct cubin_image {
	uint32_t number; /* from 0, in the order of the file */
	/*
	 * from 0: the fatbin that contains it; a device uses one image of each; a cubin is its own container
	 */
	uint32_t container;
	enum cubin_kind kind;
	uint16_t kind_number; /* as the file has it; 0: no fatbin */
	struct kernel_arch arch;
	enum cubin_compression compression;
	bool debug;
	/* to be linked with others, cannot be loaded. The stack of its kernels excludes called functions. */
	bool relocatable;
	uint64_t offset; /* of its bytes in the file */
	uint64_t bytes; /* there */
	uint64_t uncompressed_bytes;
	uint64_t flags; /* as the fatbin has them */
};

/* One kernel of one image; valid in the callback only. */
struct cubin_kernel {
	const char *symbol; /* ended by NUL, mangled, full length */
	size_t symbol_n;
	struct kernel_arch arch;
	int64_t figures[KERNEL_FIGURES]; /* -1 absent */
	/* 0: unknown */
	uint32_t required_block[3], cluster[3];
	uint32_t parameters_bytes;
};

struct cubin_ops {
	/* 0: its kernels, too; 1: not those; -errno: stop, and return that. */
	int (*image)(const struct cubin_image *image, void *userdata);
	/* -errno: stop. May be NULL. */
	int (*kernel)(const struct cubin_image *image, const struct cubin_kernel *kernel, void *userdata);
	/* Reports data that cannot be read, with offset and cause; reading continues. */
	void (*trouble)(uint64_t offset, const char *text, void *userdata);
	/* Asked every few steps: true stops with -ECANCELED. May be NULL. */
	bool (*stop)(void *userdata);
};

enum { CUBIN_TROUBLES_MAX = 256 }; /* reported individually; more are counted */

/* 0: the default. */
enum { CUBIN_IMAGE_BYTES = 24 << 20, CUBIN_METADATA_BYTES = 24 << 20 };
struct cubin_limits {
	size_t image_bytes; /* largest image that is decompressed whole; default 24 MiB */
	size_t metadata_bytes; /* symbols, names and attributes of one image; default 24 MiB */
};

/*
 * Reads all images of a source, in order; the work is bounded by its size. 0 also if some could not be read
 * (reported by ops.trouble). -ENODATA: it has no CUDA images. -ENOEXEC: not a kind of file that can have any.
 */
int cubin_read(const struct cubin_source *source, const struct cubin_limits *limits,
	       const struct cubin_ops *ops, void *userdata);

/*
 * The same by several threads, the caller among them, each with a userdata of its own, which calls concern:
 * the callbacks are called concurrently. A part of the file is what lies between the begins of two
 * containers. Parts have numbers from 0, in order; each is read by one thread, which begins the next one that
 * nobody has when it is through. ops.image() is called by every thread for every image, so that all can
 * number them; kernels and troubles are told to the one whose part it is, at most CUBIN_TROUBLES_MAX in one
 * part. What is told does not depend on the number of threads.
 */
struct cubin_parts {
	const struct cubin_ops *ops;
	/* -errno: stop; all threads stop, and parts that were begun are still ended. */
	int (*begin)(uint64_t part, void *userdata);
	int (*end)(uint64_t troubles_left_out, void *userdata);
	/*
	 * Waits until all parts before the current one have ended, so that only one thread at a time needs
	 * much memory.
	 */
	int (*alone)(void *userdata);
};
/*
 * @userdata: an array of @threads. Several threads must be able to read the source, as with those above. The
 * threads share the limits.
 */
int cubin_read_parallel(const struct cubin_source *source, const struct cubin_limits *limits,
			const struct cubin_parts *parts, void *const *userdata, unsigned threads);
