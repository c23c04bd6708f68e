// SPDX-License-Identifier: Apache-2.0
#include "sim/cuda/settings.h"

#include <fnmatch.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/macro.h"
#include "base/text.h"

enum { KERNELS_MAX = 64, FAILURES_MAX = 16, KERNEL_DEFAULT_US = 10, COPY_DEFAULT_GBPS = 20 };

struct settings settings;

static struct kernel_time {
	char pattern[64];
	int64_t ns;
} kernels[KERNELS_MAX];
static uint32_t kernel_count;
static int64_t kernel_ns = KERNEL_DEFAULT_US * NSEC_PER_USEC;

static struct failure {
	char pattern[64];
	uint64_t every, after;
	int code;
	atomic_ullong seen;
} failures[FAILURES_MAX];
static uint32_t failure_count;
static const char *const *api_names;

/* Calls @use for each entry of a comma-separated list. */
static void each_word(const char *list, void (*use)(char *word))
{
	char word[128];

	for (const char *at = list; at && *at; at += *at == ',') {
		snprintf(word, sizeof(word), "%.*s", (int)strcspn(at, ","), at);
		at += strcspn(at, ",");
		if (*word)
			use(word);
	}
}

static void complain(const char *variable, const char *word, const char *remedy)
{
	fprintf(stderr, "gpusonde-sim: %s: \"%s\" is not understood; %s\n", variable, word, remedy);
}

/* "50" or "PATTERN=50", in microseconds */
static void add_kernel(char *word)
{
	char *equals = strchr(word, '=');
	double us;

	if (equals)
		*equals = '\0';
	if (parse_double(equals ? equals + 1 : word, &us) < 0 || us < 0 || kernel_count == KERNELS_MAX) {
		complain("GPUSONDE_SIM_CUDA_KERNEL_US", word, "write it like 50 or 50,vec*=200");
	} else if (!equals) {
		kernel_ns = (int64_t)(us * NSEC_PER_USEC);
	} else {
		snprintf(kernels[kernel_count].pattern, sizeof(kernels[0].pattern), "%.63s", word);
		kernels[kernel_count++].ns = (int64_t)(us * NSEC_PER_USEC);
	}
}

/* "PATTERN:every=3:after=10:code=2" */
static void add_failure(char *word)
{
	struct failure *failure = &failures[failure_count];
	uint64_t code = 2, value;
	char *save = NULL, *part = strtok_r(word, ":", &save);
	bool good = part && failure_count < FAILURES_MAX;

	if (good) {
		snprintf(failure->pattern, sizeof(failure->pattern), "%.63s", part);
		failure->every = 1;
	}
	while (good && (part = strtok_r(NULL, ":", &save))) {
		char *equals = strchr(part, '=');

		good = equals && parse_u64(equals + 1, &value) == 0;
		if (!good)
			break;
		*equals = '\0';
		if (STRV_EQ(part, "every") && value > 0)
			failure->every = value;
		else if (STRV_EQ(part, "after"))
			failure->after = value;
		else if (STRV_EQ(part, "code"))
			code = value;
		else
			good = false;
	}
	failure->code = (int)code;
	if (good)
		failure_count++;
	else
		complain("GPUSONDE_SIM_CUDA_FAIL", word, "write it like cuMemAlloc*:every=3:after=10:code=2");
}

void settings_init(const char *const *names, uint32_t count)
{
	const char *copies = getenv("GPUSONDE_SIM_CUDA_COPY_GBPS");
	double gbps = COPY_DEFAULT_GBPS;
	bool kernels_instant = true;

	api_names = names;
	each_word(getenv("GPUSONDE_SIM_CUDA_KERNEL_US"), add_kernel);
	each_word(getenv("GPUSONDE_SIM_CUDA_FAIL"), add_failure);
	for (uint32_t i = 0; i < kernel_count; i++)
		kernels_instant &= kernels[i].ns == 0;
	kernels_instant &= kernel_ns == 0;
	if (copies && (parse_double(copies, &gbps) < 0 || gbps < 0))
		complain("GPUSONDE_SIM_CUDA_COPY_GBPS", copies,
			 "write a number of gigabytes a second, 0 for at once");
	/* If kernels take no time, neither do copies, unless their speed is set. */
	settings.copy_bytes_per_ns = kernels_instant && !copies ? 0 : gbps;
	settings.instant = kernels_instant && settings.copy_bytes_per_ns == 0;
	for (uint32_t i = 0; i < count; i++) {
		for (uint32_t j = 0; j < failure_count; j++)
			settings.failures |= fnmatch(failures[j].pattern, names[i], 0) == 0;
	}
}

int64_t settings_kernel_ns(const char *name)
{
	for (uint32_t i = 0; i < kernel_count; i++) {
		if (fnmatch(kernels[i].pattern, name, 0) == 0)
			return kernels[i].ns;
	}
	return kernel_ns;
}

int settings_failure(uint16_t api)
{
	for (uint32_t i = 0; i < failure_count; i++) {
		struct failure *failure = &failures[i];
		uint64_t turn;

		if (fnmatch(failure->pattern, api_names[api], 0) != 0)
			continue;
		turn = atomic_fetch_add(&failure->seen, 1);
		if (turn >= failure->after && (turn - failure->after) % failure->every == failure->every - 1)
			return failure->code;
	}
	return 0;
}
