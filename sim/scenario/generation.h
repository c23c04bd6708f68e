// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdbool.h>
#include <stdint.h>

/*
 * Generations of the driver: generations.def. A library may offer what one of them did, and so may a
 * scenario.
 */
enum generation_id {
#define GENERATION(id, ...) GENERATION_##id,
#include "sim/scenario/generations.def"
	GENERATION_COUNT,
};

struct generation {
	const char *name; /* in scenarios */
	const char *driver, *branch, *nvml; /* versions */
	uint32_t cuda; /* 12040 for 12.4 */
	uint32_t gpm_metrics, samplings; /* ids from here on are unknown to it */
	uint64_t reasons; /* bits of the clocks event reasons that it knows */
	uint32_t process_bytes; /* of a record in process lists from version 2 on */
	/* Values unknown to today's programs; 0: none. */
	uint32_t architecture; /* number of every GPU's */
	uint64_t more_reasons;
	uint32_t strange_field, strange_type; /* the type of this field's value */
};

extern const struct generation generations[GENERATION_COUNT];

bool generation_has_field(enum generation_id id, uint32_t field);
