// SPDX-License-Identifier: Apache-2.0
/*
 * Which frames are kept for how long: every second for a day, every tenth for a week, one a minute for a
 * year. A frame of a minute is the snapshot of that moment, not a mean: its counters say what was done in
 * between.
 *
 * A tier has one block that grows; it is put into the file again and again, so that little is lost when the
 * process is killed, and closed when it has so many frames. What is kept is counted in frames, by the time
 * that passed and not by the wall clock, which may be set.
 */
#pragma once

#include "store/database.h"
#include "store/frame.h"
#include "store/tier.h"

struct tiers_settings {
	uint64_t max_bytes; /* of the file */
	uint64_t frames[TIERS]; /* kept, by tier */
};

struct tiers_figures {
	uint64_t frames; /* that came */
	uint64_t lost; /* not kept: no room, or the disk failed */
	uint64_t dropped; /* blocks, the oldest, for want of room */
	uint64_t exits; /* rows of ended processes that a pace has no room for; counted for each */
};

struct tiers;

/* @database and @fields stay the caller's, and must live as long. */
int tiers_new(struct database *database, const struct fields fields[STORE_TABLES],
	      const struct tiers_settings *settings, struct tiers **ret_tiers);
void tiers_free(struct tiers *tiers);
DEFINE_CLEANUP(struct tiers *, tiers_free, tiers_freep)
/* 0, or why the disk does not take it: it is kept in memory, and tried again with the next ones. */
int tiers_add(struct tiers *tiers, const struct frame *frame);
/* What is not in the file yet is put there. 0, or why it cannot be. */
int tiers_flush(struct tiers *tiers);
/* The next frame must be one with all tables. */
bool tiers_want_slow(const struct tiers *tiers);
void tiers_figures(const struct tiers *tiers, struct tiers_figures *ret_figures);
