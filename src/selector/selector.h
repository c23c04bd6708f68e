// SPDX-License-Identifier: Apache-2.0
/*
 * Label selectors, which tell which pods are meant: Kubernetes' own syntax ("a=b,c!=d,e in (f,g),h,!i"), and
 * that of maps which some exporters take ("a:b,c:d"); both may be mixed.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/macro.h"

enum { SELECTOR_MAX = 32 /* requirements */, SELECTOR_VALUES_MAX = 64 /* of one */ };

struct selector;

/* -EINVAL: it is none, and @error says why; -E2BIG: a limit above. An empty one matches nothing. */
int selector_new(const char *text, char *error, size_t error_size, struct selector **ret_selector);
void selector_free(struct selector *selector);
DEFINE_CLEANUP(struct selector *, selector_free, selector_freep)

/* Begins with the labels of another object. */
void selector_begin(struct selector *selector);
/* A label; of two with one key the later counts. @key ends with NUL. */
void selector_label(struct selector *selector, const char *key, const char *value, size_t n);
/* Whether the labels since selector_begin() match. NULL matches nothing. */
bool selector_matches(const struct selector *selector);
