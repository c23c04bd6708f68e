// SPDX-License-Identifier: Apache-2.0
#include "model/gpu_work.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct gpu_works *gpu_works_new(uint32_t n, struct gpu_times *times)
{
	struct gpu_works *works = malloc(sizeof(*works) + n * sizeof(works->list[0]));

	if (!works)
		return NULL;
	works->next = NULL;
	works->times = gpu_times_ref(times);
	works->n = 0;
	return works;
}

void gpu_works_free(struct gpu_works *works)
{
	if (!works)
		return;
	gpu_times_unref(works->times);
	free(works);
}

void gpu_uuid_text(char *to, size_t size, const uint8_t u[static 16])
{
	snprintf(to, size, "GPU-%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", u[0],
		 u[1], u[2], u[3], u[4], u[5], u[6], u[7], u[8], u[9], u[10], u[11], u[12], u[13], u[14],
		 u[15]);
}

bool gpu_uuid_is_known(const uint8_t uuid[static 16])
{
	static const uint8_t none[16];

	return memcmp(uuid, none, sizeof(none)) != 0;
}

static bool work_is_valid(const struct cupti_work *w)
{
	return w->device != GPU_TIME_NO_DEVICE && w->start_ns > 0 && w->end_ns >= w->start_ns &&
	       w->end_ns - w->start_ns <= CUPTI_DURATION_MAX_NS;
}

static bool name_is_valid(const struct cupti_name *n)
{
	return n->n > 0 && n->n <= CUPTI_NAME_PART && n->size <= CUPTI_NAME_MAX && n->at + n->n <= n->size &&
	       !memchr(n->text, '\0', n->n);
}

static bool slice_is_valid(const struct cupti_slice *s)
{
	return s->state < CUPTI_STATES && s->clock < CUPTI_CLOCKS && s->end_ns >= s->start_ns &&
	       s->end_ns - s->start_ns <= CUPTI_DURATION_MAX_NS;
}

bool cupti_record_is_valid(const union cupti_record *r)
{
	switch (r->kind) {
	case CUPTI_NAME:
		return name_is_valid(&r->name);
	case CUPTI_DEVICE:
		return r->device.device != GPU_TIME_NO_DEVICE && gpu_uuid_is_known(r->device.uuid);
	case CUPTI_SLICE:
		return slice_is_valid(&r->slice);
	default:
		return r->kind < CUPTI_WORKS && work_is_valid(&r->work);
	}
}
