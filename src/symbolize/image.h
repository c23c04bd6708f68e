// SPDX-License-Identifier: Apache-2.0
/* Images that processes loaded from their memory. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "symbolize/figures.h"
#include "symbolize/worker.h"

enum {
	IMAGE_VERSIONS = 8, /* successive images at one address */
};

void image_read(struct symbolizer *symbolizer, const struct work *work);
/* Adds the data about a kernel from images loaded at this address before @seq. False: none. */
bool image_find(struct symbolizer *symbolizer, const struct symbolizer_question *question, uint64_t seq,
		struct symbol_key key, struct resources *resources);
bool image_has(const struct symbolizer *symbolizer, pid_t pid, uint64_t incarnation, struct symbol_key key);
void images_forget(struct symbolizer *symbolizer, pid_t pid, uint64_t incarnation);
void images_done(struct symbolizer *symbolizer);
/* Removes the least recently used image. False: none is older than @used. */
bool images_evict(struct symbolizer *symbolizer, uint64_t used);
uint64_t images_oldest(const struct symbolizer *symbolizer); /* UINT64_MAX: none */
/* The address of the fatbin: @address itself, or that in a wrapper at @address. */
uint64_t image_address(pid_t pid, uint64_t address);
