// SPDX-License-Identifier: Apache-2.0
/*
 * Reads the pages of many exporters: at most 15 at once, each for at most 10 seconds, all within 30.
 * HTTP/1.1, no redirection, no proxy; gzip is taken. Bodies are parsed as they come. An exporter's operator
 * chooses its page: one that takes more CPU time than its share is given up, and the others are read.
 */
#pragma once

#include "dcgm/page.h"

enum { FETCH_AT_ONCE = 15 };

/* What all exporters of a cycle have in common; borrowed. */
struct fetch_config {
	bool strict, here;
	const char *ca_file; /* "": the system's certificates */
	int64_t page_cpu_ns; /* that reading one page may take; 0: no limit */
	const char *const *nodes; /* NULL-terminated */
	/* Each exporter's, in the order in which they end. @page: NULL unless it was read. */
	int (*done)(const struct dcgm_outcome *outcome, const struct page *page, void *userdata);
	void *userdata;
};

struct fetcher;

/* Loads what libcurl needs, before the process gives up its rights. */
int fetcher_new(struct fetcher **ret_fetcher);
void fetcher_free(struct fetcher *fetcher);
DEFINE_CLEANUP(struct fetcher *, fetcher_free, fetcher_freep)
/* One cycle. 0, or what done() returned, or -errno. */
int fetcher_run(struct fetcher *fetcher, const struct fetch_config *config, const struct dcgm_asked *asked,
		uint32_t n);
