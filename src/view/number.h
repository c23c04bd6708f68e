// SPDX-License-Identifier: Apache-2.0
/*
 * Text form of numbers in every view: whole numbers up to 2^53 as integers, others with at most 15
 * significant digits. These are all the digits that a double represents reliably, and the text of a value is
 * the same on every page.
 */
#pragma once

#include <stdbool.h>

#include "base/strbuf.h"

/* Significant digits of a number that is not whole. */
enum { NUMBER_DIGITS = 15 };

/* Is @v whole and exactly representable, so that it is written without point and exponent? */
bool number_is_integer(double v);

/* Writes "NaN", "+Inf" and "-Inf" for those values. Assumes LC_NUMERIC is "C". */
void number_add(struct strbuf *out, double v);

/* The label le of a bucket: as the exposition formats and Prometheus have it, "1.0" of a whole number. */
void number_add_bound(struct strbuf *out, double v);

/*
 * The value that results from reading number_add()'s text: printed with NUMBER_DIGITS digits it gives the
 * same text.
 */
double number_rounded(double v);

/* With exactly @decimals (at most 9) decimals, as printf's %.*f; for tables and formats that fix them. */
void number_add_fixed(struct strbuf *out, double v, unsigned decimals);

/* A size with a unit: "512 B", "1.5 GiB". */
enum { BYTES_TEXT = 32 };
void bytes_text(double bytes, char buf[static BYTES_TEXT]);

/* Of processes: "1.5 s", "2.0 h", "3.1 d"; "" if that cannot be. Of calls: "1.5 s", "12.0 ms", "3.1 us". */
enum { DURATION_TEXT = 32 };
void duration_text(double seconds, char buf[static DURATION_TEXT]);
void latency_text(double seconds, char buf[static DURATION_TEXT]);
/* How long something is past, in whole units: "12 s", "59 min". Not negative. */
void ago_text(int64_t ns, char buf[static DURATION_TEXT]);
