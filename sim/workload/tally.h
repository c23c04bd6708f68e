// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdint.h>
#include <stdio.h>

/*
 * The sample programs' own counters, independent of the libraries: every call that they make, by name and
 * result. For programs with many threads; a name is a literal.
 */
enum { TALLY_CALLS = 96, TALLY_CODES = 8 };

/*
 * The address of an exported function of CUDA's; NULL: nothing loaded has it. Opens the libraries if need be.
 */
void *tally_symbol(const char *name);
/* Which library file to open for names that no loaded one has; NULL: the usual. */
int tally_load(const char *library);

/* Counts one call and returns its result; or @count of them. */
int tally_count(const char *name, int result);
void tally_add(const char *name, int result, uint64_t count);

/* {"pid":1,"calls":{"cudaMalloc":{"count":3,"errors":{"2":1}}}} and a newline. */
void tally_print(FILE *file);
/* In a child after fork(): nothing was called yet. */
void tally_reset(void);

/* TALLY(cuInit, (unsigned), (0)): calls it and counts; 35 where there is no such function. */
#define TALLY(name, parameters, arguments)                                               \
	__extension__({                                                                  \
		static int(*_known) parameters;                                          \
		int(*_function) parameters = __atomic_load_n(&_known, __ATOMIC_RELAXED); \
		if (!_function) {                                                        \
			*(void **)&_function = tally_symbol(#name);                      \
			__atomic_store_n(&_known, _function, __ATOMIC_RELAXED);          \
		}                                                                        \
		tally_count(#name, _function ? _function arguments : 35);                \
	})
