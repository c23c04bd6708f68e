// SPDX-License-Identifier: Apache-2.0
/*
 * What pages with DCGM's numbers show, common to them: which devices are DCGM's entities, where a number
 * stands under MIG, and what our number is there.
 */
#pragma once

#include "model/snapshot.h"

/* A GPU, or the first compute instance of a GPU instance, which stands for that. */
bool dcgm_is_entity(const struct snapshot *s, uint32_t entity);

/* NVML names a compute instance that is part of a GPU instance "1c.2g.10gb"; DCGM's entity is "2g.10gb". */
const char *dcgm_profile(const char *profile);

/* Whether the device is there and has this number, however old. */
bool dcgm_has(const struct snapshot *s, uint32_t entity, const struct metric *row);
/* The same, and that the number stands here: on instances where they have it, else once on their GPU. */
bool dcgm_stands(const struct snapshot *s, uint32_t entity, const struct metric *row);

/*
 * A number in DCGM's unit, where DCGM has a whole one: cut. Our base units result from multiplications (57
 * percent is 0.57), so what is within a millionth of a whole number is that.
 */
double dcgm_whole(double scaled);
/* Ours in DCGM's unit, cut where DCGM has whole numbers. */
double dcgm_number(const struct dcgm_name *name, double value);
