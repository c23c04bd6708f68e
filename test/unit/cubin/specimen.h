// SPDX-License-Identifier: Apache-2.0
/*
 * CUDA images made by hand: ELF images with kernels, and fatbins of them; and what cubin_read() tells, as
 * text.
 */
#pragma once

#include <elf.h>
#include <stddef.h>
#include <stdint.h>

#include "base/strbuf.h"
#include "cubin/cubin.h"

struct specimen_kernel {
	const char *name;
	uint32_t registers, shared, constant, local, code, frame;
	uint32_t barriers; /* in the section's flags, as older images have it */
	uint32_t stack; /* 0: none is told; ~0: not known */
	uint32_t max_threads, required[3], cluster[3];
	int device_function; /* no kernel */
};

struct specimen {
	uint8_t abi; /* 0x33 or 0x41 */
	uint16_t sm;
	int relocatable, accelerated, attributes_cut;
	uint32_t gap; /* zeros between sections and section headers */
	const struct specimen_kernel *kernels;
	size_t n;
};

enum { SPECIMEN_KERNELS = 64 };
/* Heap; the caller's. */
uint8_t *specimen_cubin(const struct specimen *specimen, size_t *ret_n);

struct specimen_entry {
	uint16_t kind; /* 0: 2, an ELF image */
	uint32_t arch, header_bytes; /* 0: 64 */
	uint64_t flags;
	const void *bytes;
	size_t n;
	uint64_t uncompressed; /* as the header says */
};
enum { SPECIMEN_LZ4 = 0x2000, SPECIMEN_ZSTD = 0x8000 };
/* Appends one container. */
void specimen_fatbin(struct strbuf *out, const struct specimen_entry *entries, size_t n);
/* @entry with its bytes compressed; they are on the heap. */
struct specimen_entry specimen_compressed(const struct specimen_entry *entry);

int specimen_read_source(const struct cubin_source *source, const struct cubin_limits *limits,
			 struct strbuf *out);
/* One line for each image, kernel and trouble; @out must be an empty strbuf. What cubin_read() gave. */
int specimen_read(const void *bytes, size_t n, const struct cubin_limits *limits, struct strbuf *out);
/* How often @what is in @text. */
unsigned specimen_times(const char *text, const char *what);
/* Where the header of section @i lies, and what it is: in a cubin nothing is aligned. */
uint8_t *specimen_section(uint8_t *cubin, size_t i, Elf64_Shdr *ret_section);
