// SPDX-License-Identifier: Apache-2.0
#include "nvml/reader.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"

/* How often rarely read metrics are read, and how often unsupported ones are tried again. */
static const int64_t cadence_ns[] = {
	[CADENCE_TICK] = 0,
	[CADENCE_SLOW] = 10 * NSEC_PER_SEC,
	[CADENCE_STATIC] = 60 * NSEC_PER_SEC,
};
#define UNSUPPORTED_RETRY_NS (300 * NSEC_PER_SEC)
#define LAYOUT_NS (10 * NSEC_PER_SEC)
/* At most a thousandth of a core for what an idle device did; drivers keep no more than 14 seconds of it. */
#define WORK_SHARE 1000
#define WORK_CHEAP_NS (500 * NSEC_PER_USEC) /* is read in each pass */
#define WORK_INTERVAL_MAX_NS (5 * NSEC_PER_SEC)
/* Whose work it was is told by the second; more often, the calls would delay its launches. */
#define WORK_INTERVAL_USED_NS NSEC_PER_SEC
#define LOST_BACKOFF_MIN_NS (10 * NSEC_PER_SEC)
#define LOST_BACKOFF_MAX_NS (300 * NSEC_PER_SEC)
#define ALL_LOST_BACKOFF_MIN_NS NSEC_PER_SEC
#define ALL_LOST_BACKOFF_MAX_NS (10 * NSEC_PER_SEC)

/* The parts of a pass over a device, ordered by their dependencies. Getters belong to several groups. */
static const struct {
	enum reading_group group;
	void (*read)(struct reader *reader, struct device *device);
} steps[] = {
	{ READING_GROUP_NONE, values_expire },         { READING_GROUP_GPM, gpm_read },
	{ READING_GROUP_NONE, getters_read },          { READING_GROUP_FIELDS, fields_read },
	{ READING_GROUP_NONE, fallback_getters_read }, { READING_GROUP_UTILIZATION, samples_read },
	{ READING_GROUP_NONE, pcie_derive },           { READING_GROUP_NONE, nvlink_derive },
	{ READING_GROUP_NONE, activity_derive },       { READING_GROUP_NONE, energy_derive },
	{ READING_GROUP_PROCESSES, processes_read },   { READING_GROUP_TOPOLOGY, topology_read },
	{ READING_GROUP_NONE, stamps_read },
};

bool reader_group_begin(struct reader *reader, enum reading_group group)
{
	if (group == READING_GROUP_NONE)
		return true;
	if (reader->shared->left_out >> group & 1)
		return false;
	reader->group_ns = clock_mono_ns();
	return true;
}

void reader_group_end(struct reader *reader, enum reading_group group)
{
	if (group != READING_GROUP_NONE)
		reader->reading->group_seconds[group] +=
			(double)(clock_mono_ns() - reader->group_ns) / NSEC_PER_SEC;
}

int64_t reader_work_begin(const struct device *device)
{
	return device->work_due ? clock_thread_cpu_ns() : -1;
}

void reader_work_end(struct device *device, int64_t begin_ns)
{
	device->work_cost_ns += clock_thread_cpu_ns() - begin_ns;
}

/* The processes of a GPU with MIG are its instances'. */
static int64_t work_interval_ns(const struct device *device)
{
	int64_t longest_ns = device->occupied || device->mig ? WORK_INTERVAL_USED_NS : WORK_INTERVAL_MAX_NS;

	if (!device->work_ns || device->work_cost_ns <= WORK_CHEAP_NS)
		return 0;
	/* Passes are not exact. */
	return MIN(device->work_cost_ns * WORK_SHARE, longest_ns) - device->elapsed_ns / 2;
}

static void plan_work(const struct reader *reader, struct device *device)
{
	device->work_due = reader->now_ns - device->work_ns >= work_interval_ns(device);
	if (!device->work_due)
		return;
	device->work_cost_ns = 0;
	device->work_elapsed_ns = device->work_ns ? reader->now_ns - device->work_ns : 0;
	device->work_ns = reader->now_ns;
}

void reader_init(struct reader *reader, struct nvml_shared *shared, const char *library_name)
{
	reader->shared = shared;
	reader->reading = &shared->reading;
	reader->library_name = library_name ? library_name : NVML_LIBRARY_DEFAULT;
}

void reader_done(struct reader *reader)
{
	reader_detach(reader);
	hashmap_done(&reader->processes.map);
}

/* Distributes the devices' rare work over passes, so that all take about the same time. */
static void plan_first(struct reader *reader, struct device *device)
{
	int64_t n = reader->reading->entities_n, i = device_index(reader, device);

	for (int c = CADENCE_SLOW; c <= CADENCE_STATIC; c++)
		device->next_ns[c] = reader->now_ns + cadence_ns[c] * (i + 1) / n;
	device->retry_ns = reader->now_ns + UNSUPPORTED_RETRY_NS + cadence_ns[CADENCE_STATIC] * (i + 1) / n;
}

static void plan_next(struct reader *reader, struct device *device)
{
	int64_t now = reader->now_ns;

	for (int c = CADENCE_SLOW; c <= CADENCE_STATIC; c++) {
		device->due[c] = now >= device->next_ns[c];
		if (!device->due[c])
			continue;
		device->next_ns[c] += cadence_ns[c];
		if (device->next_ns[c] <= now)
			device->next_ns[c] = now + cadence_ns[c];
	}
	if (now < device->retry_ns)
		return;
	device->retry_ns = now + UNSUPPORTED_RETRY_NS;
	device->getters_off = 0;
	device->ecc_off = 0;
	memset(device->fields_off, 0, sizeof(device->fields_off));
	device->samples_off = 0;
	device->rates_off = 0;
	device->process_calls_off = 0;
	device->process_util_off = false;
}

static void plan(struct reader *reader, struct device *device)
{
	device->elapsed_ns = device->pass_ns ? reader->now_ns - device->pass_ns : 0;
	device->pass_ns = reader->now_ns;
	device->due[CADENCE_TICK] = true;
	if (device->read_before) {
		plan_next(reader, device);
		return;
	}
	device->due[CADENCE_SLOW] = device->due[CADENCE_STATIC] = true;
	plan_first(reader, device);
}

/*
 * Expires all values of a lost GPU and its processes, which come after the first @processes. When it answers
 * again, everything is read again.
 */
static void forget_values(struct reader *reader, struct device *device, uint32_t processes)
{
	reader->reading->processes_n = processes;
	memset(device->entity->p, PRESENCE_ABSENT, sizeof(device->entity->p));
	device->entity->process_list = PRESENCE_ABSENT;
	device->entity->process_util = PRESENCE_ABSENT;
	device->entity->lost = 1;
	stamps_forget(device);
	device->read_before = false;
	device->work_cost_ns = 0; /* read at once when it answers again */
}

static void device_pass(struct reader *reader, struct device *device)
{
	uint32_t processes = reader->reading->processes_n;

	plan(reader, device);
	plan_work(reader, device);
	reader->lost = false;
	for (size_t i = 0; i < ARRAY_SIZE(steps); i++) {
		if (!reader_group_begin(reader, steps[i].group))
			continue;
		steps[i].read(reader, device);
		reader_group_end(reader, steps[i].group);
		if (reader->gone)
			return;
		if (reader->lost) {
			if (!device->entity->lost)
				reader->layout_ns = 0; /* it may have been removed */
			forget_values(reader, device, processes);
			return;
		}
	}
	device->occupied = reader->reading->processes_n > processes;
	device->entity->lost = 0;
	device->read_before = true;
}

/*
 * A GPU that fell off the bus is seen again only after the library is initialised again. If all are lost, the
 * driver was restarted, and an early attempt costs nothing; else it interrupts the other GPUs' readings.
 */
static bool lost_retry_due(struct reader *reader)
{
	uint32_t n = reader->unlisted + reader->reading->entities_n, lost = reader->unlisted;
	int64_t min, max;

	for (uint32_t i = 0; i < reader->reading->entities_n; i++)
		lost += reader->reading->entities[i].lost;
	if (lost == 0) {
		reader->lost_backoff_ns = 0;
		return false;
	}
	min = lost == n ? ALL_LOST_BACKOFF_MIN_NS : LOST_BACKOFF_MIN_NS;
	max = lost == n ? ALL_LOST_BACKOFF_MAX_NS : LOST_BACKOFF_MAX_NS;
	if (!reader->lost_backoff_ns) {
		reader->lost_backoff_ns = min;
		reader->lost_retry_ns = reader->now_ns + min;
	}
	if (reader->now_ns < reader->lost_retry_ns)
		return false;
	reader->lost_backoff_ns = CLAMP(2 * reader->lost_backoff_ns, min, max);
	reader->lost_retry_ns = reader->now_ns + reader->lost_backoff_ns;
	return true;
}

static void check_layout(struct reader *reader)
{
	enum nvml_return result;

	if (!reader->changed && reader->now_ns < reader->layout_ns)
		return;
	reader->layout_ns = reader->now_ns + LAYOUT_NS;
	if (!reader->changed && reader_layout_same(reader))
		return;
	if (reader->gone)
		return;
	reader->changed = false;
	if (reader->reattach) {
		reader_detach(reader);
		reader_attach(reader);
		return;
	}
	result = reader_enumerate(reader);
	if (result != NVML_SUCCESS) {
		reader->gone = true;
		reader->gone_result = result;
	}
}

static void pass_begin(struct reader *reader)
{
	struct reading *reading = reader->reading;

	reader->now_ns = clock_boot_ns();
	reader->real_us = clock_real_ns() / 1000;
	reader->pass++;
	reader->names_asked = 0;
	reading->begin_ns = reader->now_ns;
	reading->events_n = 0;
	reading->entities_dropped = reading->processes_dropped = reading->events_dropped = 0;
	memset(reading->group_seconds, 0, sizeof(reading->group_seconds));
	memset(reading->rejected, 0, sizeof(reading->rejected));
	memset(reading->rejected_process, 0, sizeof(reading->rejected_process));
}

static void read_devices(struct reader *reader)
{
	processes_begin(reader);
	for (uint32_t i = 0; i < reader->reading->entities_n && !reader->gone; i++)
		device_pass(reader, &reader->devices[i]);
	if (!reader->gone && reader_group_begin(reader, READING_GROUP_XID)) {
		events_read(reader);
		reader_group_end(reader, READING_GROUP_XID);
	}
	if (!reader->gone)
		processes_end(reader);
}

/* The driver reported during a pass that it is gone: this reading is invalid. */
static void went_away(struct reader *reader)
{
	struct reading *reading = reader->reading;

	reader_detach(reader);
	reading->state = READING_NO_DRIVER;
	reading->nvml_error = (int32_t)reader->gone_result;
	snprintf(reading->error, sizeof(reading->error),
		 "the NVIDIA driver was unloaded or restarted: attaching again; if this lasts, load it "
		 "(modprobe nvidia)");
}

void reader_pass(struct reader *reader)
{
	pass_begin(reader);
	if (!reader->attached && reader->now_ns >= reader->retry_ns)
		reader_attach(reader);
	else if (reader->attached)
		check_layout(reader);
	if (reader->attached && !reader->gone)
		read_devices(reader);
	if (reader->gone)
		went_away(reader);
	else if (reader->attached)
		persistent_state_commit(reader);
	reader->reading->end_ns = clock_boot_ns();
	/* After the reading, for the next one: in this reading a lost device retains its identity. */
	if (reader->attached && lost_retry_due(reader))
		reader->changed = reader->reattach = true;
}
