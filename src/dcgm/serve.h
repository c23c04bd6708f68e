// SPDX-License-Identifier: Apache-2.0
/*
 * src/dcgm reads the pages of DCGM exporters, for the agent, in a process of its own: what they send is
 * parsed here, and a connection that stalls or a page without an end costs the agent nothing.
 *
 *   fetch.c       the exporters' pages, many at once (libcurl)
 *   page.c        what a page says: rows and devices
 *   devices.c     the devices' numbers; of several users' one
 *   labels.c      which label means what, in all dialects
 *   family.c      which families are read, and in which units they are
 *
 * Invariants
 *  1. Nothing of a page outlives its end but rows and devices, and these not what came of it.
 *  2. Every byte of a page is hostile; limits are in the headers, and what is beyond is counted.
 *  3. It connects to what it is told to, and to nothing that a page or an answer names.
 */
#pragma once

#include "dcgm/fetch.h"
#include "helper/confine.h"

/* All parts of the next question, whose exporters are in *ret_asked, the caller's. */
struct dcgm_request {
	struct dcgm_question question; /* of the newest part */
	struct dcgm_asked *asked;
	uint32_t n;
};

/* 1: the agent has ended; -EPROTONOSUPPORT: it is of another version; -errno. Reuses the request's memory. */
int dcgm_receive(int channel, struct dcgm_request *request);
extern const struct confinement dcgm_confinement; /* without the folder of a CA of one's own */
/* What the process gives up before it looks at a page. @question: the first. */
int dcgm_confine(const struct dcgm_question *question, pid_t owner);
/* 0 or -errno: the agent is gone. */
int dcgm_answer(struct fetcher *fetcher, int channel, const struct dcgm_request *request);
