// SPDX-License-Identifier: Apache-2.0
/*
 * A snapshot's numbers as StatsD's: names and tags. What the table (statsd.def) has is told by the names of
 * Datadog's check; families that are wanted besides are gpusonde.* with their labels as tags, counters
 * without _total. Of a histogram there are its sum and its count; families that only name something (_info)
 * have no number and are left out.
 */
#pragma once

#include <stdint.h>

#include "model/snapshot.h"

struct statsd_value {
	const char *name;
	const char *tags; /* "gpu_uuid:GPU-1,pid:12"; "" */
	double value;
	bool is_counter; /* the value is a sum since created_real_ns, or since when is not known (0) */
	int64_t created_real_ns;
};

typedef void (*statsd_receiver)(const struct statsd_value *value, void *userdata);

/* @families: those of this list (base/glob.h) are told, too; NULL: none. 0 or -ENOMEM. */
int view_statsd(const struct snapshot *snapshot, const char *families, statsd_receiver receive,
		void *userdata);
