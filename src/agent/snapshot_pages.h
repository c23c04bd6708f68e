// SPDX-License-Identifier: Apache-2.0
/* The pages that are views of one snapshot: of the agent's newest, or of a recorded one. Any thread. */
#pragma once

#include "agent/dcgm/style.h"
#include "model/snapshot.h"
#include "web/routes.h"

struct snapshot_page_style {
	const struct dcgm_style *dcgm; /* how /metrics/dcgm is written, but for its names */
	const char *families; /* of /metrics (base/glob.h); NULL: all */
	bool without_native; /* /metrics in protobuf has no native histograms */
	const char *replay; /* of a replay: the line that says so; NULL: what is shown is now */
};

/* -ENOENT: @page is none of these; -errno. */
int snapshot_page(enum web_page page, const struct snapshot *snapshot,
		  const struct snapshot_page_style *style, const struct http_request *request,
		  struct http_reply *reply);
