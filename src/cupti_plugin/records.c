// SPDX-License-Identifier: Apache-2.0
#include "cupti_plugin/plugin.h"

#include <string.h>

enum { NAMES = 4096, TRIES = 8, DEVICES = 64 };

/* What the listener was told already. */
static struct {
	uint64_t names[NAMES]; /* hashes; 0: none */
	uint64_t devices; /* bits */
} told;

static const struct {
	uint32_t kind;
	uint32_t least; /* bytes of a record */
} sizes[] = {
	{ ACTIVITY_KERNEL, sizeof(struct activity_kernel) },
	/* Of CUDA 11.1: channels came later. */
	{ ACTIVITY_MEMCPY, offsetof(struct activity_memory, channel) },
	{ ACTIVITY_MEMSET, offsetof(struct activity_memory, channel) },
	{ ACTIVITY_MEMCPY_PEER, sizeof(struct activity_peer) },
	{ ACTIVITY_GRAPH, sizeof(struct activity_graph) },
};

/* 0: of no kind that is read. */
static uint32_t least_size(uint32_t kind)
{
	for (unsigned i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
		if (sizes[i].kind == kind)
			return sizes[i].least;
	return 0;
}

void records_forget(void)
{
	memset(&told, 0, sizeof(told));
}

/* True: @hash has not been told yet, and counts as told from now on. Where there is no room all are again. */
static bool name_is_new(uint64_t hash)
{
	for (unsigned i = 0; i < TRIES; i++) {
		uint64_t *name = &told.names[(hash + i) % NAMES];

		if (*name == hash)
			return false;
		if (*name == 0) {
			*name = hash;
			return true;
		}
	}
	memset(told.names, 0, sizeof(told.names));
	told.names[hash % NAMES] = hash;
	return true;
}

static uint64_t name_tell(const char *name)
{
	union cupti_record record = { .name = { .kind = CUPTI_NAME } };
	size_t size = strnlen(name, CUPTI_NAME_MAX);

	record.name.name = cupti_name_hash(name);
	if (size == 0 || !name_is_new(record.name.name))
		return record.name.name;
	record.name.size = (uint16_t)size;
	for (size_t at = 0; at < size; at += record.name.n) {
		record.name.at = (uint16_t)at;
		record.name.n = size - at < CUPTI_NAME_PART ? (uint8_t)(size - at) : CUPTI_NAME_PART;
		memset(record.name.text, 0, CUPTI_NAME_PART);
		memcpy(record.name.text, name + at, record.name.n);
		send_put(&record);
	}
	return record.name.name;
}

static void device_tell(uint32_t device)
{
	union cupti_record record = { .device = { .kind = CUPTI_DEVICE, .device = device } };

	if (device >= DEVICES || told.devices >> device & 1)
		return;
	told.devices |= UINT64_C(1) << device;
	if (library_device_uuid(device, record.device.uuid))
		send_put(&record);
}

static bool times_are_sane(const struct cupti_work *work)
{
	return work->start_ns > 0 && work->end_ns >= work->start_ns &&
	       work->end_ns - work->start_ns <= CUPTI_DURATION_MAX_NS;
}

/* CUPTI's times are 0 where it could not take them. */
static bool work_of_kernel(const void *record, struct cupti_work *work)
{
	const struct activity_kernel *k = record;

	work->kind = CUPTI_KERNEL;
	work->device = k->device;
	work->context = k->context;
	work->stream = k->stream;
	work->correlation = k->correlation;
	work->graph = k->graph;
	work->node = k->node;
	work->start_ns = k->start_ns;
	work->end_ns = k->end_ns;
	if (!times_are_sane(work))
		return false;
	work->name = k->name ? name_tell(k->name) : 0;
	return true;
}

static bool work_of_memory(const void *record, struct cupti_work *work)
{
	const struct activity_memory *m = record;

	work->kind = m->kind == ACTIVITY_MEMSET ? CUPTI_SET : CUPTI_COPY;
	work->copy = m->kind == ACTIVITY_MEMSET ? 0 : m->copy;
	work->device = m->device;
	work->context = m->context;
	work->stream = m->stream;
	work->correlation = m->correlation;
	work->graph = m->graph;
	work->node = m->node;
	work->bytes = m->bytes;
	work->start_ns = m->start_ns;
	work->end_ns = m->end_ns;
	return times_are_sane(work);
}

static bool work_of_peer(const void *record, struct cupti_work *work)
{
	const struct activity_peer *p = record;

	work->kind = CUPTI_COPY;
	work->copy = p->copy;
	work->device = p->device;
	work->context = p->context;
	work->stream = p->stream;
	work->bytes = p->bytes;
	work->start_ns = p->start_ns;
	work->end_ns = p->end_ns;
	return times_are_sane(work);
}

static bool work_of_graph(const void *record, struct cupti_work *work)
{
	const struct activity_graph *g = record;

	work->kind = CUPTI_GRAPH;
	work->device = g->device;
	work->context = g->context;
	work->stream = g->stream;
	work->correlation = g->correlation;
	work->graph = g->graph;
	work->start_ns = g->start_ns;
	work->end_ns = g->end_ns;
	return times_are_sane(work);
}

static bool work_of(uint32_t kind, const void *record, struct cupti_work *work)
{
	switch (kind) {
	case ACTIVITY_KERNEL:
		return work_of_kernel(record, work);
	case ACTIVITY_MEMCPY_PEER:
		return work_of_peer(record, work);
	case ACTIVITY_GRAPH:
		return work_of_graph(record, work);
	default:
		return work_of_memory(record, work);
	}
}

static void record_take(struct records *records, uint32_t kind, const void *at)
{
	union cupti_record record = { .work = { .kind = 0 } };
	struct cupti_work *work = &record.work;
	struct launch launch;

	if (!work_of(kind, at, work)) {
		records->bad++;
		return;
	}
	work->start_ns += (uint64_t)records->offset_ns;
	work->end_ns += (uint64_t)records->offset_ns;
	if (launches_find(work->correlation, &launch)) {
		work->tid = launch.tid;
		work->launch_ns = launch.time_ns;
	}
	device_tell(work->device);
	send_put(&record);
}

void records_take(const struct cupti *cupti, struct records *records, const struct buffer *buffer)
{
	const uint8_t *least = buffer->data, *end = buffer->data + buffer->valid;
	void *record = NULL;
	int r;

	while ((r = cupti->ActivityGetNextRecord(buffer->data, buffer->valid, &record)) == CUPTI_SUCCESS) {
		const uint8_t *at = record;
		uint32_t kind, size;

		if (!at || at < least || at > end - sizeof(kind) || (uintptr_t)at % 8 != 0)
			break;
		memcpy(&kind, at, sizeof(kind));
		size = least_size(kind);
		if ((size_t)(end - at) < size)
			break;
		if (size > 0)
			record_take(records, kind, at);
		else
			records->unknown++;
		least = at + (size > 0 ? size : sizeof(kind));
	}
	/* CUPTI says where it ends; what is behind a record that makes no sense is not read. */
	records->bad += r != CUPTI_ERROR_NO_MORE;
}
