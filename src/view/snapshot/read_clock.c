// SPDX-License-Identifier: Apache-2.0
#include "view/snapshot/read_clock.h"

#include <math.h>

#include "base/macro.h"
#include "view/snapshot/values.h"

static int64_t read_ns(const json_t *object, const char *key)
{
	return llround(fmin(fmax(read_double(object, key, 0), -4e9), 4e9) * 1e9);
}

void snapshot_read_clock(struct entity *e, const json_t *clock)
{
	struct reading_stamps *stamps = &e->id.stamps;
	const json_t *ages = json_object_get(clock, "age_seconds");

	if (!json_is_object(clock))
		return;
	stamps->offset_ns = read_ns(clock, "ahead_seconds");
	stamps->error_ns = MAX(read_ns(clock, "error_seconds"), INT64_C(0));
	stamps->unusable = json_is_false(json_object_get(clock, "usable"));
	e->stamped_boot_ns = e->sampled_boot_ns;
	e->stamped_real_ns = e->sampled_real_ns;
	for (unsigned i = 0; i < STAMPED_METRICS; i++) {
		int64_t age_ns = read_ns(ages, stamped_rows[i].name);

		if (age_ns > 0 && age_ns < STAMP_AGE_MAX_NS)
			stamps->at_ns[i] = e->sampled_boot_ns - age_ns;
	}
}
