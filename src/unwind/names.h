// SPDX-License-Identifier: Apache-2.0
/*
 * Functions of addresses in files, from .symtab, .dynsym and the file with debugging symbols of the same
 * build-id. Addresses are collected and named together: each file's symbols are read once, and none are kept.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/macro.h"
#include "unwind/unwind.h"

enum {
	UNWIND_NAMES = 1 << 18,
	UNWIND_NAMES_BYTES = 32 << 20,
};

struct unwind_names;

/* The readable form of a symbol's name, NUL-terminated and printable. */
typedef void unwind_readable_fn(const char *symbol, char *buf, size_t size);

int unwind_names_new(unwind_readable_fn *readable, struct unwind_names **ret_names);
void unwind_names_free(struct unwind_names *names);
DEFINE_CLEANUP(struct unwind_names *, unwind_names_free, unwind_names_freep)

/* A number from 1 on, equal for equal places. -ENOBUFS: there are too many. */
int unwind_names_add(struct unwind_names *names, const struct unwind_place *place, uint32_t *ret_name);
/* Names all that were added; until then, and where no symbol is known, a name is FILE+0xADDRESS. */
void unwind_names_resolve(struct unwind_names *names, const struct unwind *unwind);
/* *ret_file: the last part of its file's path; "": none, or it is in the name. Valid until the next call. */
const char *unwind_names_text(const struct unwind_names *names, uint32_t name, const char **ret_file);
/* Names without room, and files whose names are not all known: they take longer than 2 s of CPU time. */
uint64_t unwind_names_lost(const struct unwind_names *names);
uint32_t unwind_names_n(const struct unwind_names *names);
