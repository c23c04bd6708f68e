// SPDX-License-Identifier: Apache-2.0
/*
 * Records snapshots by a process of its own, gpusonde-store (src/store): for the agent (recording.path) and
 * for `gpusonde record`. A disk that hangs costs frames, which are counted, and nothing else. Belongs to the
 * thread of the event loop.
 */
#pragma once

#include <systemd/sd-event.h>

#include "config/options.h"
#include "model/model.h"
#include "store/tiers.h"

struct recording;

/* The file's folder is made if it is not there. @why, if it fails, says what is to be done. -errno. */
int recording_new(sd_event *event, struct model *model, const struct options *options, const char *path,
		  struct recording **ret_recording, char *why, size_t size);
/* Ends it: waits a few seconds until all is in the file. */
void recording_flush(struct recording *recording);
/* The same, if that was not done yet. */
void recording_free(struct recording *recording);
/* A snapshot, when one is due. */
void recording_tick(struct recording *recording, const struct snapshot *snapshot);
/* What does not work; "". */
const char *recording_error(const struct recording *recording);
pid_t recording_pid(const struct recording *recording);
/* As of the newest answer, and how many could not be handed over. */
void recording_figures(const struct recording *recording, struct tiers_figures *ret_figures,
		       uint64_t *ret_missed, uint64_t *ret_bytes);
