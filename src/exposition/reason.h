// SPDX-License-Identifier: Apache-2.0
#pragma once

/* Why a page was not read (model/scraped.def). */
enum scrape_failure {
	SCRAPE_READ, /* it was */
#define SCRAPE_FAILURE(id_, name_, words_) SCRAPE_FAILED_##id_,
#include "model/scraped.def"
	SCRAPE_FAILURES,
};

/* Why a line of it is left out. */
enum scrape_line {
	SCRAPE_LINE_TAKEN, /* it is not */
#define SCRAPE_LINE(id_, name_, words_) SCRAPE_LINE_##id_,
#include "model/scraped.def"
	SCRAPE_LINES,
};
