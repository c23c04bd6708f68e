// SPDX-License-Identifier: Apache-2.0
/*
 * How every view writes a number: whole numbers up to 2^53 as integers, all others with at most 15
 * significant digits. A double has no more that are sure to be meant, and one rule keeps the text of a value
 * the same on every page.
 */
#pragma once

#include <stdbool.h>

#include "base/strbuf.h"

/* Digits of a number that is not whole. */
enum { NUMBER_DIGITS = 15 };

/* Is @v whole and exactly representable, so that it is written without point and exponent? */
bool number_is_integer(double v);

/* "NaN", "+Inf" and "-Inf" for what is no number. Assumes LC_NUMERIC is "C". */
void number_add(struct strbuf *out, double v);

/*
 * What number_add() writes, read again: printed by anybody with NUMBER_DIGITS digits it gives the same text.
 */
double number_rounded(double v);

/* With exactly @decimals (at most 9) decimals, as printf's %.*f; for tables and formats that fix them. */
void number_add_fixed(struct strbuf *out, double v, unsigned decimals);

/* A size for people: "512 B", "1.5 GiB". */
enum { BYTES_TEXT = 32 };
void bytes_text(double bytes, char buf[static BYTES_TEXT]);
