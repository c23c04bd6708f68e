// SPDX-License-Identifier: Apache-2.0
/*
 * Inference servers (src/inference): every ten seconds one helper finds them, every inference.refresh another
 * one reads their pages, one after the other; the model is told both. Belongs to the main thread, which never
 * waits.
 *
 * A process whose command line cannot be read in time, since its memory is withheld, costs the finder: for
 * ten minutes then servers are found by the names of their processes alone. A server whose page cannot be
 * read is asked less often, at last once a minute.
 */
#pragma once

#include <sys/types.h>

#include <systemd/sd-event.h>

#include "base/macro.h"
#include "model/model.h"

struct inference;

struct inference_config {
	int64_t refresh_ns; /* between readings of the pages */
	const char *finder, *reader; /* paths of the processes' programs; NULL: our own */
};

int inference_new(sd_event *event, struct model *model, const struct inference_config *config,
		  struct inference **ret_inference);
void inference_free(struct inference *inference);
DEFINE_CLEANUP(struct inference *, inference_free, inference_freep)
void inference_tick(struct inference *inference);
/* Of the process that finds them and of the one that reads their pages; 0: none. */
pid_t inference_finder_pid(const struct inference *inference);
pid_t inference_reader_pid(const struct inference *inference);
