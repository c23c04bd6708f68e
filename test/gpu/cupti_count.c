// SPDX-License-Identifier: Apache-2.0
/*
 * Counts calls of the CUDA driver and the time of kernels by CUPTI, in the program that the driver loads it
 * into (CUDA_INJECTION64_PATH). When the program ends it writes to the file that CUPTI_COUNT_FILE names:
 *
 *	{"calls":{NAME:COUNT},"kernels":N,"kernel_seconds":S,"error":CODE}
 */
#include <cupti.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NAMES = 1024, BUFFER = 1 << 20 };

/* What all versions of CUpti_ActivityKernel begin with since the third. */
struct kernel_prefix {
	CUpti_ActivityKind kind;
	uint8_t cache_config, shared_memory_config;
	uint16_t registers;
	uint32_t partitioned_requested, partitioned_executed;
	uint64_t start, end; /* nanoseconds */
} __attribute__((packed, aligned(8)));
_Static_assert(offsetof(struct kernel_prefix, start) == 16, "CUpti_ActivityKernel");

static struct {
	const char *name;
	unsigned long count;
} calls[NAMES];
static unsigned long kernels;
static uint64_t kernel_ns;
static CUptiResult error;

/* By its number: names are static, and numbers are dense. */
static void CUPTIAPI called(void *user, CUpti_CallbackDomain domain, CUpti_CallbackId id, const void *data)
{
	const CUpti_CallbackData *call = data;

	(void)user;
	(void)domain;
	if (call->callbackSite != CUPTI_API_EXIT || id >= NAMES)
		return;
	calls[id].name = call->functionName;
	__atomic_fetch_add(&calls[id].count, 1, __ATOMIC_RELAXED);
}

static void CUPTIAPI wanted(uint8_t **buffer, size_t *size, size_t *records)
{
	*buffer = aligned_alloc(8, BUFFER);
	*size = *buffer ? BUFFER : 0;
	*records = 0;
}

static void CUPTIAPI completed(CUcontext context, uint32_t stream, uint8_t *buffer, size_t size, size_t valid)
{
	CUpti_Activity *record = NULL;

	(void)context;
	(void)stream;
	(void)size;
	while (cuptiActivityGetNextRecord(buffer, valid, &record) == CUPTI_SUCCESS) {
		const struct kernel_prefix *kernel = (const void *)record;

		if (kernel->kind != CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL)
			continue;
		kernels++;
		kernel_ns += kernel->end - kernel->start;
	}
	free(buffer);
}

static void note(CUptiResult result)
{
	if (error == CUPTI_SUCCESS)
		error = result;
}

static void write_all(void)
{
	const char *path = getenv("CUPTI_COUNT_FILE"), *between = "";
	FILE *f = path ? fopen(path, "we") : NULL;

	if (!f)
		return;
	note(cuptiActivityFlushAll(1));
	fprintf(f, "{\"calls\":{");
	for (int i = 0; i < NAMES; i++) {
		if (!calls[i].name)
			continue;
		fprintf(f, "%s\"%s\":%lu", between, calls[i].name, calls[i].count);
		between = ",";
	}
	fprintf(f, "},\"kernels\":%lu,\"kernel_seconds\":%.9f,\"error\":%d}\n", kernels,
		(double)kernel_ns / 1e9, (int)error);
	fclose(f);
}

/* The driver calls this in cuInit. */
int InitializeInjection(void);
int InitializeInjection(void)
{
	CUpti_SubscriberHandle subscriber;

	note(cuptiSubscribe(&subscriber, called, NULL));
	note(cuptiEnableDomain(1, subscriber, CUPTI_CB_DOMAIN_DRIVER_API));
	note(cuptiActivityRegisterCallbacks(wanted, completed));
	note(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL));
	atexit(write_all);
	return 1;
}
