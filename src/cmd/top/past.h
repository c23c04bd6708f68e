// SPDX-License-Identifier: Apache-2.0
/* Earlier samples, compressed, in bounded memory: the oldest go first. */
#pragma once

#include "cmd/top/sample.h"

enum { PAST_BYTES = 32 << 20, PAST_SAMPLES = 3600 };

struct past;

int past_new(struct past **ret_past);
void past_free(struct past *past);
/* Keeps the sample's text. What does not fit is not kept. */
void past_add(struct past *past, const struct sample *sample);
/* How many there are. */
uint32_t past_count(const struct past *past);
/* The @back-th before the newest, which is 0. -ENOENT, -EBADMSG, -ENOMEM. */
int past_get(const struct past *past, uint32_t back, struct sample **ret_sample);
