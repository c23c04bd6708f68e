// SPDX-License-Identifier: Apache-2.0
#include "fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "base/macro.h"
#include "base/text.h"
#include "proc/job.h"
#include "proc/job_ad.h"

static void check_text(const char *text, size_t size)
{
	if (!memchr(text, 0, size) || !utf8_valid(text, strlen(text)))
		abort();
}
#define CHECK(member_) check_text(member_, sizeof(member_))

static void check_value(struct cursor name, const char *value, void *userdata)
{
	(void)userdata;
	if (cursor_eof(&name) || strlen(value) >= PROC_JOB_VALUE_MAX)
		abort();
}

/* The input as variables, of any batch system or of the one that its first byte chooses, and as an ad. */
int fuzz_one(const uint8_t *data, size_t size)
{
	const char *text = (const char *)data;
	struct proc_job_claim claim;

	memset(&claim, 0xff, sizeof(claim));
	proc_job_claim(text, size, size ? data[0] % PROC_JOB_MANAGERS : 0, "RUN", "GROUP", &claim);
	if (claim.job.manager >= PROC_JOB_MANAGERS ||
	    (claim.job.manager == PROC_JOB_NONE) != (claim.job.id[0] == '\0') ||
	    (claim.rank != PROC_RANK_UNKNOWN && claim.world != PROC_RANK_UNKNOWN &&
	     claim.rank >= claim.world))
		abort();
	CHECK(claim.job.id);
	CHECK(claim.job.step);
	CHECK(claim.name);
	CHECK(claim.user);
	CHECK(claim.run);
	CHECK(claim.group);
	CHECK(claim.gpus);
	job_ad_read(text, size, check_value, NULL);
	return 0;
}
