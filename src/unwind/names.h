// SPDX-License-Identifier: Apache-2.0
/*
 * Functions of addresses in files, from .symtab, .dynsym and the file with debugging symbols
 * (unwind/debug_file.h). Addresses are collected and named together: each file's symbols are read once, and
 * none are kept.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/macro.h"
#include "base/user_shares.h"
#include "unwind/unwind.h"

enum {
	UNWIND_NAMES = 1 << 18,
	UNWIND_NAMES_BYTES = 32 << 20,
};

struct unwind_names;

/* The readable form of a symbol's name, NUL-terminated and printable. */
typedef void unwind_readable_fn(const char *symbol, char *buf, size_t size);

struct unwind_names_limits {
	uint32_t names, bytes; /* of texts */
};

int unwind_names_new(unwind_readable_fn *readable, const struct unwind_names_limits *limits,
		     struct unwind_names **ret_names);
void unwind_names_free(struct unwind_names *names);
DEFINE_CLEANUP(struct unwind_names *, unwind_names_free, unwind_names_freep)

/* Texts are charged to the user who added the first name that has them; what has no room is an address. */
void unwind_names_share(struct unwind_names *names, struct user_shares *shares, unsigned table);
/* A number from 1 on, equal for equal places. -ENOBUFS: there are too many. @user: of the shares, if any. */
int unwind_names_add(struct unwind_names *names, const struct unwind_place *place, uint32_t user,
		     uint32_t *ret_name);
/* Names all that were added; until then, and where no symbol is known, a name is FILE+0xADDRESS. */
void unwind_names_resolve(struct unwind_names *names, const struct unwind *unwind);
/* *ret_file: the last part of its file's path; "": none, or it is in the name. Valid until the next call. */
const char *unwind_names_text(const struct unwind_names *names, uint32_t name, const char **ret_file);
/* Names without room, and files whose names are not all known: they take longer than 2 s of CPU time. */
uint64_t unwind_names_lost(const struct unwind_names *names);
uint32_t unwind_names_n(const struct unwind_names *names);

/* ---- where a helper reads the files (unwind/reader.h) ---- */

/* The helper's end. Names all from an open file; @made: from a perf map. -ETIME: some of them. */
int unwind_names_seek(struct unwind_names *names, int fd, bool made);
/* NULL: it has no name. */
const char *unwind_names_known(const struct unwind_names *names, uint32_t name);

/*
 * The owner's end. Up to @max names of one file, which is *ret_file, that have none yet and were not asked
 * for, if @ready says that the file can be asked; returns how many. Names of no file get their addresses.
 */
uint32_t unwind_names_ask(struct unwind_names *names, bool (*ready)(uint32_t file, void *userdata),
			  void *userdata, uint32_t max, uint32_t *ret_file, uint32_t *ret_names);
uint64_t unwind_names_address(const struct unwind_names *names, uint32_t name);
/* The last part of the path of the file that @n names are of. */
void unwind_names_of_file(struct unwind_names *names, const uint32_t *numbers, uint32_t n, const char *file);
/* NULL: it has none. @text: others' words. */
void unwind_names_give(struct unwind_names *names, uint32_t name, const char *text);
