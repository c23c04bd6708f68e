// SPDX-License-Identifier: Apache-2.0
/* The exporters of the source DCGM, and what the newest page of each that was read says. */
#pragma once

#include <stdbool.h>

#include "dcgm/protocol.h"

/* What comes of a page before it is known whether all of it was read. */
struct exporter_page {
	struct scraped_row *rows;
	struct dcgm_device *devices;
	uint32_t rows_n, devices_n;
};

struct exporter {
	char url[DCGM_URL_MAX];
	char node[DCGM_NODE_MAX]; /* "": as its page says */
	/* of the newest page that was read: */
	struct scraped_row *rows;
	struct dcgm_device *devices;
	uint32_t rows_n, devices_n;
	int64_t boot_ns; /* when; 0: never */
	bool simulated;
	struct dcgm_device *before; /* those of the page before, for what has changed */
	uint32_t before_n;
	/* of the newest try: */
	enum scrape_failure failure;
	char error[256]; /* its URL and why; "" */
	bool ended; /* in the cycle that runs: its outcome has come */
	struct exporter_page coming;
};

struct dcgm_targets {
	struct exporter *list;
	uint32_t n;
};

/*
 * Adds an exporter; what @old (NULL: nothing) knows of the same URL and node moves to it. One that is there
 * already is not added again. -ENOMEM.
 */
int dcgm_targets_add(struct dcgm_targets *targets, struct dcgm_targets *old, const char *url,
		     const char *node);
void dcgm_targets_done(struct dcgm_targets *targets);
/* A cycle begins. */
void dcgm_targets_begin(struct dcgm_targets *targets);
void dcgm_targets_drop_coming(struct dcgm_targets *targets);
/* A part of a page, @n bytes. False: it is none. */
bool dcgm_targets_take(struct dcgm_targets *targets, struct dcgm_part *part, size_t n);
/* An exporter's page has ended; changes are logged. False: none is expected. */
bool dcgm_targets_end(struct dcgm_targets *targets, struct dcgm_outcome *outcome, int64_t now_boot_ns);
/* Whether all have ended. */
bool dcgm_targets_are_whole(const struct dcgm_targets *targets);
uint32_t dcgm_targets_rows(const struct dcgm_targets *targets);
