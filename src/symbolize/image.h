// SPDX-License-Identifier: Apache-2.0
/* Images that processes loaded from their memory. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "symbolize/figures.h"
#include "symbolize/worker.h"

enum {
	IMAGE_VERSIONS = 8, /* images that came to lie at one address, one after the other */
};

void image_read(struct symbolizer *symbolizer, const struct work *work);
/* What images that lay at this address before @seq say of a kernel. False: none does. */
bool image_find(struct symbolizer *symbolizer, const struct symbolizer_question *question, uint64_t seq,
		struct symbol_key key, struct resources *resources);
bool image_has(const struct symbolizer *symbolizer, pid_t pid, uint64_t incarnation, struct symbol_key key);
void images_forget(struct symbolizer *symbolizer, pid_t pid, uint64_t incarnation);
void images_done(struct symbolizer *symbolizer);
/* The least used one goes. False: there is none older than @used. */
bool images_evict(struct symbolizer *symbolizer, uint64_t used);
uint64_t images_oldest(const struct symbolizer *symbolizer); /* UINT64_MAX: none */
/* Where the fatbin lies that @address points to: itself, or what a wrapper says. */
uint64_t image_address(pid_t pid, uint64_t address);
