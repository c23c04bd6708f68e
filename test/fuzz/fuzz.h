// SPDX-License-Identifier: Apache-2.0
/*
 * A fuzzer is fuzz_<name>.c with fuzz_one(), which aborts when a promise is broken, one row in meson.build,
 * with what an input may cost, and a folder corpus/<name>/ of inputs that were interesting once. Under clang
 * with -Dfuzz=true it becomes a libFuzzer program; otherwise replay.c runs it over its corpus, as a test.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

int fuzz_one(const uint8_t *data, size_t size);
/* Of timed.c: fuzz_one() within its time. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
