// SPDX-License-Identifier: Apache-2.0
/*
 * Small, valid ELF files on which careless analysis takes much longer than their size suggests. Tests read
 * them, and the fuzzers begin with them.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum slow_kind {
	/*
	 * Probed functions of 16 KiB, full of bytes that look like jumps to the first byte but lie within
	 * other instructions: each has to be told from a jump by decoding.
	 */
	SLOW_JUMPS,
	SLOW_OVERLAPS, /* the same bytes for all: each function begins a byte after the previous one */
	SLOW_FUNCTION, /* one such function alone, not in a file, a byte before it as fuzz_site.c has it */
	SLOW_NAMES, /* functions with one name, the longest possible; the last one is probed */
	/*
	 * A host function that is registered with this many names, and asked for with as many variables: the
	 * product of both, and names of half that length.
	 */
	SLOW_STUBS,
};

/* The bytes of a file with @n such functions, from malloc(3). */
uint8_t *slow_make(enum slow_kind kind, unsigned n, size_t *ret_size);
