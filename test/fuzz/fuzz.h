// SPDX-License-Identifier: Apache-2.0
/*
 * A fuzzer is fuzz_<name>.c with fuzz_one(), which aborts when a promise is broken, one row in meson.build,
 * with what an input may cost, and a folder corpus/<name>/ of inputs that were interesting once. Under clang
 * with -Dfuzz=true it becomes a libFuzzer program; otherwise replay.c runs it over its corpus, as a test.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* What an input may take (timed.c): meson.build says it of each fuzzer. */
struct fuzz_bound {
	int64_t ms, us_per_kib;
};
extern const struct fuzz_bound fuzz_bound;
#ifdef FUZZ_MS
const struct fuzz_bound fuzz_bound = { FUZZ_MS, FUZZ_US_PER_KIB };
#endif

int fuzz_one(const uint8_t *data, size_t size);
/* Of timed.c: fuzz_one() within its time. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
