// SPDX-License-Identifier: Apache-2.0
/*
 * ELF files as others have them on their disks: symbols, code bytes, build-id. Every byte is read with
 * pread(2) and believed only within bounds: a file may be truncated, replaced, hostile or huge at any moment,
 * and is never mapped. Without libelf, which takes a whole symbol table into memory, as large as the file
 * says it is.
 *
 * Limits: ELF_SYMBOLS_MAX symbols are looked at per table, names up to ELF_NAME_MAX; what lies beyond is
 * counted in elf_skipped(). 64-bit programs and libraries of this machine's byte order only: others are
 * -ENOEXEC. Memory: 1 MiB while symbols are read.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/macro.h"

enum { ELF_SYMBOLS_MAX = 4 << 20, ELF_NAME_MAX = 4096, ELF_BUILD_ID_MAX = 64 };

struct elf_file;

enum elf_kind {
	ELF_FUNCTION,
	ELF_INDIRECT, /* a resolver (STT_GNU_IFUNC), which runs once, and not when the function is called */
	ELF_UNTYPED, /* global, in code, and not said to be a function: hand-written, or no code at all */
};

struct elf_symbol {
	const char *name; /* valid in the callback only */
	uint64_t address; /* as linked */
	uint64_t offset; /* in the file; what a uprobe is placed at */
	uint64_t size; /* 0 where the table does not say */
	bool dynamic; /* of .dynsym; else of .symtab */
	enum elf_kind kind;
};

/* Stops with what the callback gives when that is not 0. */
typedef int elf_symbol_fn(const struct elf_symbol *symbol, void *userdata);

/* @fd stays the caller's and must outlive the file. -ENOEXEC: no ELF file, or none that we read. */
int elf_open(int fd, struct elf_file **ret_file);
void elf_close(struct elf_file *file);
DEFINE_CLEANUP(struct elf_file *, elf_close, elf_closep)

/* EM_X86_64, EM_AARCH64, ... */
uint16_t elf_machine(const struct elf_file *file);
/*
 * Defined functions (ELF_FUNCTION only) of .dynsym, then of .symtab, names without versions; a name at one
 * address may come twice.
 */
int elf_functions(struct elf_file *file, elf_symbol_fn *fn, void *userdata);
/* The same, of every kind: whatever a call by name may lead to. */
int elf_entries(struct elf_file *file, elf_symbol_fn *fn, void *userdata);
/* The same where the symbols lie in a file of their own, @file, and what they are of in @code. */
int elf_functions_of(struct elf_file *file, const struct elf_file *code, elf_symbol_fn *fn, void *userdata);
/* Up to @n bytes at a file offset that lies in an executable segment; short at its end. -ENOENT elsewhere. */
int elf_code(struct elf_file *file, uint64_t offset, void *buf, size_t n, size_t *ret_n);
/* A part of the file that is loaded. */
struct elf_range {
	uint64_t address; /* as linked */
	uint64_t offset, size; /* in the file */
	uint64_t memory_size; /* not less */
	bool executable, writable;
};
/* In the file's order, from 0. False: there are no more. */
bool elf_range(const struct elf_file *file, uint32_t index, struct elf_range *ret_range);
/*
 * Where instructions are, at most @max places: by sections, since a segment of code may have anything beside
 * it; where there are none, the segments.
 */
int elf_code_ranges(const struct elf_file *file, struct elf_range *ranges, size_t max, size_t *ret_n);
/*
 * Up to @n bytes that lie at an address as linked; short at the end of its range in the file. -ENOENT: in
 * none.
 */
int elf_data(struct elf_file *file, uint64_t address, void *buf, size_t n, size_t *ret_n);

/*
 * A word that the loader fills in with an address: of a table for imports (GOT), a constructor's, a virtual
 * function's.
 */
struct elf_slot {
	uint64_t address; /* as linked */
	uint64_t value; /* as linked; of an import nobody knows */
	const char *name; /* of the symbol; NULL: none was needed. Valid in the callback only */
	bool imported; /* from another file */
	bool constant; /* never written after that */
};
typedef int elf_slot_fn(const struct elf_slot *slot, void *userdata);
/* What cannot be read is counted in elf_skipped(). Stops with what the callback gives when that is not 0. */
int elf_slots(struct elf_file *file, elf_slot_fn *fn, void *userdata);

/* Where in the file the first section of a name lies, all of it within the file. -ENOENT. */
int elf_section(struct elf_file *file, const char *name, uint64_t *ret_offset, uint64_t *ret_size);
/* File offset and address as linked, each from the other, by the segments. -ENOENT: in none. */
int elf_address(struct elf_file *file, uint64_t offset, uint64_t *ret_address);
int elf_offset(struct elf_file *file, uint64_t address, uint64_t *ret_offset);
/* -ENODATA: has none. */
int elf_build_id(struct elf_file *file, uint8_t buf[static ELF_BUILD_ID_MAX], size_t *ret_n);
/* Whether it says of itself that it goes on where it ends: a copy or a download that was cut short. */
bool elf_is_cut(const struct elf_file *file);
/* Symbols not looked at: beyond a limit or the file's end, outside code, without a name that ends. */
uint64_t elf_skipped(const struct elf_file *file);
