// SPDX-License-Identifier: Apache-2.0
/*
 * The agent's pages of a recording: gpusonde-web serves them on loopback, as the agent's. Each says that it
 * is a replay, and of when: a header of every reply (X-Gpusonde-State: replay), the member `replay` of JSON,
 * a line of other pages. Samples on /metrics have their time.
 */
#pragma once

#include "store/reader.h"

#define REPLAY_ADDRESS "127.0.0.1:9471"

struct replay_pages {
	const char *path; /* of the recording */
	const char *address; /* of loopback */
	int64_t at_ns; /* real time; INT64_MAX: the newest, or with @speed from the beginning on */
	double speed; /* 0: that moment alone */
};

/* Serves until a signal ends it. -errno; of an address that cannot be opened the log says why. */
int replay_serve(struct store_reader *reader, const struct replay_pages *pages);

/* Texts of pages, for tests: appended to @out. */
/* An exposition with the time after each sample, so that nobody takes it for now. */
void replay_stamp(const struct strbuf *page, int64_t real_ns, struct strbuf *out);
/* A JSON object with the member `replay` first. */
void replay_mark(const struct strbuf *page, int64_t real_ns, struct strbuf *out);
