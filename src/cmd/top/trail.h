// SPDX-License-Identifier: Apache-2.0
/* Figures of the last minutes, by GPU and by process, for curves. Bounded: the longest unseen go first. */
#pragma once

#include "cmd/top/sample.h"

enum trail_figure {
	/* of a GPU: shares */
	TRAIL_UTILIZATION,
	TRAIL_MEMORY,
	TRAIL_POWER,
	/* of a process: the first two as of a GPU, and cores of the host, launches by second */
	TRAIL_CORES = TRAIL_POWER,
	TRAIL_LAUNCHES,
	TRAIL_FIGURES
};

struct trails;

int trails_new(struct trails **ret_trails);
void trails_free(struct trails *trails);

/* Adds what a sample says. */
void trails_add(struct trails *trails, const struct sample *sample);

/* What is known under a key; NULL: nothing. Valid until the next trails_add(). */
struct trail;
enum { TRAIL_KEY = 224 };
void trail_key_of_entity(const struct sample *sample, const struct entity *e, char ret_key[static TRAIL_KEY]);
void trail_key_of_process(const struct sample *sample, const struct process *p,
			  char ret_key[static TRAIL_KEY]);
/* Of a machine: of the first two, what its processors do, and its memory. */
void trail_key_of_host(const struct sample *sample, char ret_key[static TRAIL_KEY]);
const struct trail *trails_find(const struct trails *trails, const char *key);

/*
 * The mean of part @i of @n of the @window_ns that end at @end_ns (CLOCK_MONOTONIC); negative: nothing is
 * known of it. @trail: may be NULL.
 */
double trail_mean(const struct trail *trail, enum trail_figure figure, int64_t end_ns, int64_t window_ns,
		  int i, int n);
/* The means of a window, for sparkline_draw(). */
struct trail_curve {
	const struct trail *trail;
	enum trail_figure figure;
	int64_t end_ns, window_ns;
};
double trail_curve_value(const void *curve, int i, int n);
/* The highest value of what a curve shows; negative: nothing is known. */
double trail_highest(const struct trail_curve *curve);
