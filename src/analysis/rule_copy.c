// SPDX-License-Identifier: Apache-2.0
#include "analysis/private.h"

/* In a window: 10 % of the time of a thread, in so many blocking copies that none is a checkpoint's. */
#define COPY_SHARE 0.10
enum { COPIES_MIN = 20 };

bool rule_copy_bound(const struct judgement *judgement, struct process_usage *usage)
{
	const struct call_sum *blocking = &usage->blocking_copies, *pageable = &usage->pageable_copies;
	struct analysis_finding *finding = judgement->finding;
	double share = blocking->seconds / judgement->window->seconds;
	bool known = pageable->n + usage->pinned_copies.n > 0;

	if (blocking->n < COPIES_MIN || share < COPY_SHARE)
		return false;
	finding->stack = usage->stack;
	finding->confidence = pageable->n > 0 ? 0.95 : 0.8;
	finding->without = known ? 0 : 1U << EVIDENCE_HOST_MEMORY;
	finding_value(finding, "time_share", ANALYSIS_RATIO, share);
	finding_value(finding, "blocking_copies", ANALYSIS_NUMBER, (double)blocking->n);
	finding_value(finding, "mean_bytes", ANALYSIS_BYTES, (double)blocking->bytes / (double)blocking->n);
	finding_value(finding, "rate", ANALYSIS_BYTES_PER_SECOND,
		      (double)blocking->bytes / blocking->seconds);
	if (known)
		finding_value(finding, "pageable_copies", ANALYSIS_NUMBER, (double)pageable->n);
	return true;
}
