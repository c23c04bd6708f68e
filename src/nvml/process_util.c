// SPDX-License-Identifier: Apache-2.0
#include "nvml/report.h"

#include <stdlib.h>

#include "base/clock.h"

enum {
	PERIOD_DEFAULT_US = 1000000, /* between samples, until it is learned from them */
	PERIOD_MAX_US = 2000000,
};
#define UNCOVERED_MAX_US INT64_C(3600000000)

_Static_assert(PROCESS_BUSY_OFA - PROCESS_BUSY == ENGINE_OFA &&
		       PROCESS_UTILIZATION_OFA - PROCESS_UTILIZATION == ENGINE_OFA,
	       "rows of engines stand in the order of enum engine");

/* A sample of either call. */
struct sample {
	uint64_t timestamp;
	uint32_t pid;
	uint32_t percent[ENGINES];
};

/* The driver's records in one buffer; both kinds fit. */
static union {
	struct nvml_process_utilization_v1 newer[READING_PROCESSES_MAX];
	struct nvml_process_utilization older[READING_PROCESSES_MAX];
} buffer;
static struct sample samples[READING_PROCESSES_MAX];
static uint32_t capacity = 64;

static enum nvml_return call_newer(struct reader *reader, struct device *device, uint64_t since, uint32_t *n)
{
	struct nvml_processes_utilization info = {
		.version = NVML_VERSION_WORD(struct nvml_processes_utilization, 1),
		.count = *n,
		.last_seen = since,
		.processes = buffer.newer,
	};
	enum nvml_return result =
		NVML_CALL(reader, nvmlDeviceGetProcessesUtilizationInfo, device->handle, &info);

	*n = info.count;
	for (uint32_t i = 0; result == NVML_SUCCESS && i < MIN(*n, capacity); i++) {
		const struct nvml_process_utilization_v1 *p = &buffer.newer[i];

		samples[i] = (struct sample){ p->timestamp,
					      p->pid,
					      { p->sm, p->memory, p->encoder, p->decoder, p->jpeg, p->ofa } };
	}
	return result;
}

static enum nvml_return call_older(struct reader *reader, struct device *device, uint64_t since, uint32_t *n)
{
	enum nvml_return result =
		NVML_CALL(reader, nvmlDeviceGetProcessUtilization, device->handle, buffer.older, n, since);

	for (uint32_t i = 0; result == NVML_SUCCESS && i < MIN(*n, capacity); i++) {
		const struct nvml_process_utilization *p = &buffer.older[i];

		samples[i] = (struct sample){ p->timestamp,
					      p->pid,
					      { p->sm, p->memory, p->encoder, p->decoder, 0, 0 } };
	}
	return result;
}

/* If an answer claims more records than the buffer holds, their number is invalid. */
static enum nvml_return
call_with_room(struct reader *reader, struct device *device, uint64_t since, uint32_t *ret_n,
	       enum nvml_return (*call)(struct reader *, struct device *, uint64_t, uint32_t *))
{
	enum nvml_return result = NVML_ERROR_INSUFFICIENT_SIZE;

	for (int attempt = 0; attempt < 4 && result == NVML_ERROR_INSUFFICIENT_SIZE; attempt++) {
		*ret_n = capacity;
		result = call(reader, device, since, ret_n);
		if (result == NVML_ERROR_INSUFFICIENT_SIZE)
			capacity = MIN(MAX(MIN(*ret_n, (uint32_t)READING_PROCESSES_MAX), capacity) + 32,
				       (uint32_t)READING_PROCESSES_MAX);
	}
	if (result != NVML_SUCCESS)
		*ret_n = 0;
	else if (*ret_n > capacity)
		*ret_n = NVML_NONE_U32;
	return result;
}

/* @ret_engines: how many engines this call reports; the older one lacks JPEG and OFA. */
static enum nvml_return read_samples(struct reader *reader, struct device *device, uint64_t since,
				     uint32_t *ret_n, int *ret_engines)
{
	enum nvml_return result;

	*ret_engines = ENGINES;
	result = call_with_room(reader, device, since, ret_n, call_newer);
	if (nvml_unsupported(result)) {
		*ret_engines = ENGINE_JPEG;
		result = call_with_room(reader, device, since, ret_n, call_older);
	}
	return result;
}

static int by_time(const void *a, const void *b)
{
	const struct sample *x = a, *y = b;

	return (x->timestamp > y->timestamp) - (x->timestamp < y->timestamp);
}

static void report_engine(struct reader *reader, struct reading_process *process, int i, uint32_t percent,
			  double seconds)
{
	if (percent > 100) {
		reader->reading->rejected_process[PROCESS_UTILIZATION + i]++;
		process->p[PROCESS_UTILIZATION + i] = PRESENCE_REJECTED;
		return;
	}
	process->v[PROCESS_UTILIZATION + i] = percent / 100.0;
	process->p[PROCESS_UTILIZATION + i] = PRESENCE_PRESENT;
	process->v[PROCESS_BUSY + i] += percent / 100.0 * seconds;
	process->p[PROCESS_BUSY + i] = PRESENCE_PRESENT;
}

/* Once in each pass: adds the time observed since the last one. */
static void age(const struct reader *reader, struct process_state *state, int64_t elapsed_us)
{
	if (state->aged_pass == reader->pass)
		return;
	state->aged_pass = reader->pass;
	state->since_us = MIN(state->since_us + elapsed_us, UNCOVERED_MAX_US);
	state->uncovered_us = MIN(state->uncovered_us + elapsed_us, UNCOVERED_MAX_US);
}

/* How long it was observed since the last reading: one that is new, since the last pass at most. */
static int64_t observed_us(const struct device *device, const struct process_state *state, int64_t elapsed_us)
{
	return state->observed_pass ? elapsed_us : MIN(elapsed_us, device->elapsed_ns / 1000);
}

/*
 * The longest time that one sample may cover: readings may be further apart than samples, and samples further
 * than readings.
 */
static int64_t reach(const struct device *device, int64_t elapsed_us)
{
	return MAX(elapsed_us, device->process_period_us ? device->process_period_us : PERIOD_DEFAULT_US);
}

/* Whether no sample of the process was missed since its last one, given the sample period. */
static bool is_contiguous(const struct process_state *state, int64_t reach_us)
{
	return state->sample_us && state->since_us <= reach_us + reach_us / 2;
}

/* The shortest time between two samples of one process is the driver's sample period, or ours of reading. */
static void learn_period(struct device *device, const struct process_state *state, uint64_t timestamp)
{
	int64_t step = (int64_t)(timestamp - state->sample_us);

	if (state->sample_us && step > 0 && (!device->process_period_us || step < device->process_period_us))
		device->process_period_us = MIN(step, (int64_t)PERIOD_MAX_US);
}

/*
 * Time to credit for a sample. While samples arrive, the time since the previous one; after a pause at most
 * the time that one sample may cover, since the process was idle. The total never exceeds the time that the
 * process was observed.
 */
static int64_t credit_process(const struct device *device, struct process_state *state, uint64_t timestamp,
			      uint64_t last_seen, int64_t reach_us)
{
	bool contiguous = is_contiguous(state, reach_us);
	uint64_t from = contiguous ? state->sample_us : last_seen;
	int64_t covered =
		device->work.processes_boot_ns && timestamp > from ? (int64_t)(timestamp - from) : 0;

	if (!contiguous)
		covered = MIN(covered, reach_us);
	covered = MIN(covered, state->uncovered_us);
	state->uncovered_us -= covered;
	state->since_us = 0;
	state->sample_us = timestamp;
	return covered;
}

static bool all_idle(const struct sample *sample)
{
	for (int i = 0; i < ENGINES; i++)
		if (sample->percent[i])
			return false;
	return true;
}

static void take_sample(struct reader *reader, struct device *device, const struct sample *sample,
			int engines, uint64_t last_seen, int64_t elapsed_us)
{
	struct reading *reading = reader->reading;
	uint32_t before = reading->processes_n;
	struct process_state *state;
	struct reading_process *process = process_take(reader, device, sample->pid, &state);
	int64_t covered;

	if (!process)
		return;
	elapsed_us = observed_us(device, state, elapsed_us);
	age(reader, state, elapsed_us);
	learn_period(device, state, sample->timestamp);
	covered = credit_process(device, state, sample->timestamp, last_seen, reach(device, elapsed_us));
	if (reading->processes_n > before && all_idle(sample)) {
		/*
		 * In no list, and idle: it needs no entry. A later sample in this pass begins where this one
		 * ended.
		 */
		reading->processes_n--;
		state->pass = reader->pass - 1;
		return;
	}
	state->sampled_pass = reader->pass;
	for (int i = 0; i < engines; i++) {
		state->percent[i] = (uint8_t)(sample->percent[i] <= 100 ? sample->percent[i] : 0);
		report_engine(reader, process, i, sample->percent[i], (double)covered * 1e-6);
	}
}

/* Sorted by time, without stale samples and those from the future. */
static uint32_t sift(const struct reader *reader, uint32_t n, uint64_t last_seen)
{
	uint32_t kept = 0;

	qsort(samples, n, sizeof(samples[0]), by_time);
	for (uint32_t i = 0; i < n; i++)
		if (reader_in_time(reader, samples[i].timestamp, last_seen))
			samples[kept++] = samples[i];
	return kept;
}

/*
 * A process without a sample was idle, or samples are less frequent than readings; in both cases it was
 * observed since the last reading.
 */
static void complete(struct reader *reader, struct device *device, int engines, int64_t elapsed_us)
{
	uint16_t entity = (uint16_t)device_index(reader, device);

	for (uint32_t k = reader->reading->processes_n; k-- > 0;) {
		struct reading_process *process = &reader->reading->processes[k];
		struct process_state *state = &reader->processes.states[reader->processes.of_reading[k]];
		int64_t observed;
		bool holds;

		if (process->entity != entity)
			break; /* processes of one entity are contiguous, at the end */
		observed = observed_us(device, state, elapsed_us);
		state->observed_pass = reader->pass;
		process->v[PROCESS_OBSERVED] = (double)observed * 1e-6;
		process->p[PROCESS_OBSERVED] = PRESENCE_PRESENT;
		if (state->sampled_pass == reader->pass)
			continue;
		age(reader, state, observed);
		holds = is_contiguous(state, reach(device, observed));
		for (int i = 0; i < engines; i++)
			report_engine(reader, process, i, holds ? state->percent[i] : 0, 0);
	}
}

static void mark_all(struct reader *reader, struct device *device, uint8_t presence)
{
	uint16_t entity = (uint16_t)device_index(reader, device);

	for (uint32_t k = reader->reading->processes_n; k-- > 0;) {
		struct reading_process *process = &reader->reading->processes[k];

		if (process->entity != entity)
			break;
		for (int i = 0; i < ENGINES; i++)
			process->p[PROCESS_BUSY + i] = process->p[PROCESS_UTILIZATION + i] = presence;
	}
}

static void read_now(struct reader *reader, struct device *device)
{
	struct persistent_state *work = &device->work;
	int64_t elapsed_us = work->processes_boot_ns ? (reader->now_ns - work->processes_boot_ns) / 1000 : 0;
	uint64_t last_seen = work->processes_us;
	enum nvml_return result = NVML_ERROR_NOT_SUPPORTED;
	uint32_t n = 0;
	int engines = ENGINES;

	/* First call, or the clock was set back: only new samples count. */
	if (!last_seen || last_seen > (uint64_t)reader->real_us + CLOCK_SLACK_US)
		last_seen = (uint64_t)(reader->real_us - MIN(elapsed_us + CLOCK_SLACK_US, reader->real_us));
	if (device->parent == READING_NONE && !device->process_util_off)
		result = read_samples(reader, device, last_seen, &n, &engines);
	if (reader->lost || reader->gone)
		return;
	device->entity->process_util =
		result == NVML_ERROR_NOT_FOUND ? PRESENCE_PRESENT : nvml_presence(result);
	device->process_util_off = nvml_unsupported(result);
	if (n == NVML_NONE_U32) {
		device->entity->process_util = PRESENCE_REJECTED;
		reader->reading->rejected_process[PROCESS_UTILIZATION]++;
	}
	if (!presence_is(device->entity->process_util)) {
		mark_all(reader, device, device->entity->process_util);
		return;
	}
	n = sift(reader, n, last_seen);
	for (uint32_t i = 0; i < n; i++)
		take_sample(reader, device, &samples[i], engines, last_seen, elapsed_us);
	complete(reader, device, engines, elapsed_us);
	if (n)
		work->processes_us = samples[n - 1].timestamp;
	work->processes_boot_ns = reader->now_ns;
}

static bool has_processes(const struct reader *reader, const struct device *device)
{
	uint32_t n = reader->reading->processes_n;

	return n > 0 && reader->reading->processes[n - 1].entity == device_index(reader, device);
}

/* Left out with the rest of what the device did only while nobody is there. */
void process_utilization_read(struct reader *reader, struct device *device)
{
	int64_t begin_ns = reader_work_begin(device);

	if (begin_ns < 0 && !has_processes(reader, device))
		return;
	read_now(reader, device);
	if (begin_ns >= 0)
		reader_work_end(device, begin_ns);
}
