// SPDX-License-Identifier: Apache-2.0
/* Symbols and texts: many of them in little memory. For the files of this folder only. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/macro.h"

enum {
	SYMBOL_MAX = (64 << 10) - 1,
};

/*
 * A 96-bit hash that represents a symbol in tables. Among 100,000 symbols a collision has a probability of
 * 1e-19.
 */
struct symbol_key {
	uint64_t hash;
	uint32_t check;
};
struct symbol_key symbol_key(const char *symbol, size_t n);
static inline int symbol_key_compare(uint64_t hash, uint32_t check, struct symbol_key key)
{
	return hash != key.hash   ? (hash < key.hash ? -1 : 1) :
	       check != key.check ? (check < key.check ? -1 : 1) :
				    0;
}

/* Compressed texts: mangled names of one file have much in common. Written once, then read. */
struct names;
int names_new(struct names **ret_names);
void names_free(struct names *names);
DEFINE_CLEANUP(struct names *, names_free, names_freep)
/* -E2BIG: longer than SYMBOL_MAX, or too many, or too much memory. *ret_ref is for names_get(). */
int names_add(struct names *names, const char *text, size_t n, uint32_t *ret_ref);
/* Ends adding and frees the memory needed for it. */
int names_seal(struct names *names);
/* The caller must free the text. -ENOMEM, -EBADMSG. */
int names_get(const struct names *names, uint32_t ref, char **ret_text);
uint64_t names_bytes(const struct names *names);
