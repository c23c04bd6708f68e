// SPDX-License-Identifier: Apache-2.0
/*
 * Reads ELF files of other programs: symbols, code bytes, build-id. Every byte is read with pread(2) and
 * validated: a file may be truncated, replaced, hostile or huge at any moment, and is never mapped. Without
 * libelf, which reads a whole symbol table into memory, of the size that the file claims.
 *
 * Limits: ELF_SYMBOLS_MAX symbols are read per table, names up to ELF_NAME_MAX; what exceeds these is counted
 * in elf_skipped(). Only 64-bit programs and libraries of this machine's byte order: others are -ENOEXEC.
 * Memory: 1 MiB while symbols are read.
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
	ELF_INDIRECT, /* a resolver (STT_GNU_IFUNC): called once, not when the function is called */
	ELF_UNTYPED, /* global, in code, and not marked as a function: hand-written assembly, or data */
	ELF_OBJECT, /* data */
};

struct elf_symbol {
	const char *name; /* valid during the callback only */
	uint64_t address; /* as linked */
	uint64_t offset; /* in the file; what a uprobe is placed at */
	uint64_t size; /* 0 if the table has none */
	bool dynamic; /* of .dynsym; else of .symtab */
	enum elf_kind kind;
};

/* Reading stops when the callback returns a value other than 0, which is returned. */
typedef int elf_symbol_fn(const struct elf_symbol *symbol, void *userdata);

/* The caller still owns @fd, which must outlive the file. -ENOEXEC: not an ELF file, or not supported. */
int elf_open(int fd, struct elf_file **ret_file);
void elf_close(struct elf_file *file);
DEFINE_CLEANUP(struct elf_file *, elf_close, elf_closep)

/*
 * From now on, reading symbols or slots ends with -ETIME once the CPU time of the calling thread is past
 * @end_ns (clock_thread_cpu_ns()). Without a limit, millions of symbols with long names take seconds.
 */
void elf_limit_cpu(struct elf_file *file, int64_t end_ns);
/*
 * The same once so many steps were taken, each of which takes about as long: *@left, which must outlive the
 * file, or NULL. Other than time, it does not depend on the machine, nor on what else runs there.
 */
void elf_limit_steps(struct elf_file *file, uint64_t *left);
/* Takes steps from *@left; false: there are no more. */
bool elf_take_steps(uint64_t *left, uint64_t n);

/* EM_X86_64, EM_AARCH64, ... */
uint16_t elf_machine(const struct elf_file *file);
/*
 * Defined functions (ELF_FUNCTION only) of .dynsym, then of .symtab, names without versions; a name at one
 * address may occur twice.
 */
int elf_functions(struct elf_file *file, elf_symbol_fn *fn, void *userdata);
/* The same for symbols of every kind: everything that a call by name may reach. */
int elf_entries(struct elf_file *file, elf_symbol_fn *fn, void *userdata);
/* The same for variables (ELF_OBJECT only); their offset is not set, since they may not lie in the file. */
int elf_objects(struct elf_file *file, elf_symbol_fn *fn, void *userdata);
/* The same if the symbols are in a separate file, @file, and the code in @code. */
int elf_functions_of(struct elf_file *file, const struct elf_file *code, elf_symbol_fn *fn, void *userdata);
/* Up to @n bytes at a file offset that lies in an executable segment; short at its end. -ENOENT elsewhere. */
int elf_code(struct elf_file *file, uint64_t offset, void *buf, size_t n, size_t *ret_n);
/* A part of the file that is mapped into memory. */
struct elf_range {
	uint64_t address; /* as linked */
	uint64_t offset, size; /* in the file */
	uint64_t memory_size; /* at least @size */
	bool executable, writable;
};
/* In the file's order, from index 0. False: no more. */
bool elf_range(const struct elf_file *file, uint32_t index, struct elf_range *ret_range);
/* The range with this address, also behind what lies in the file. False: none. */
bool elf_range_of(const struct elf_file *file, uint64_t address, struct elf_range *ret_range);
/*
 * At most @max ranges of instructions: of sections, since an executable segment may contain data; without
 * sections, of segments.
 */
int elf_code_ranges(const struct elf_file *file, struct elf_range *ranges, size_t max, size_t *ret_n);
/*
 * Up to @n bytes that lie at an address as linked; short at the end of its range in the file. -ENOENT: in
 * none.
 */
int elf_data(struct elf_file *file, uint64_t address, void *buf, size_t n, size_t *ret_n);

/*
 * The function, or the part of one, that has the instruction at an address as linked, by the file's unwind
 * tables: compilers put what is seldom used into a part of its own. -ENOENT: none is known.
 */
int elf_part(struct elf_file *file, uint64_t address, uint64_t *ret_start, uint64_t *ret_end);

/* A word that the loader sets to an address: of the import table (GOT), a constructor, a virtual function. */
struct elf_slot {
	uint64_t address; /* as linked */
	uint64_t value; /* as linked; unknown for imports */
	const char *name; /* of the symbol; NULL: none was needed. Valid during the callback only */
	bool imported; /* from another file */
	bool constant; /* read-only after loading */
};
typedef int elf_slot_fn(const struct elf_slot *slot, void *userdata);
/*
 * Unreadable ones are counted in elf_skipped(). Stops when the callback returns a value other than 0, which
 * is returned.
 */
int elf_slots(struct elf_file *file, elf_slot_fn *fn, void *userdata);

/* Position in the file of the first section with this name, if all of it is within the file. -ENOENT. */
int elf_section(struct elf_file *file, const char *name, uint64_t *ret_offset, uint64_t *ret_size);
/* Converts between file offset and address as linked, by the segments. -ENOENT: in none. */
int elf_address(struct elf_file *file, uint64_t offset, uint64_t *ret_address);
int elf_offset(struct elf_file *file, uint64_t address, uint64_t *ret_offset);
/* -ENODATA: has none. */
int elf_build_id(struct elf_file *file, uint8_t buf[static ELF_BUILD_ID_MAX], size_t *ret_n);
/* Whether its headers refer to data beyond the end of the file: a truncated copy or download. */
bool elf_is_cut(const struct elf_file *file);
/* Number of skipped symbols: beyond a limit or the file's end, outside code, or without a terminated name. */
uint64_t elf_skipped(const struct elf_file *file);
