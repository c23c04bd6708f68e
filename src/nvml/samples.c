// SPDX-License-Identifier: Apache-2.0
#include "nvml/report.h"

#include "base/clock.h"
#include "nvml/window.h"

enum {
	SAMPLES_MAX = 1024, /* of one engine in one reading */
	FIRST_LOOK_US = 3000000, /* how far back the first reading looks */
	PERIOD_DEFAULT_US = 166667, /* until two samples tell it: six a second */
};

_Static_assert(SLOT_BUSY_OFA - SLOT_BUSY_GPU == ENGINE_OFA &&
		       SLOT_UTILIZATION_OFA - SLOT_UTILIZATION_GPU == ENGINE_OFA &&
		       SLOT_UTILIZATION_MAX_MEMORY - SLOT_UTILIZATION_MAX_GPU == ENGINE_MEMORY,
	       "rows of engines stand in the order of enum engine");

static const uint32_t sampling[ENGINES] = {
	[ENGINE_GPU] = NVML_GPU_UTILIZATION_SAMPLES,     [ENGINE_MEMORY] = NVML_MEMORY_UTILIZATION_SAMPLES,
	[ENGINE_ENCODER] = NVML_ENC_UTILIZATION_SAMPLES, [ENGINE_DECODER] = NVML_DEC_UTILIZATION_SAMPLES,
	[ENGINE_JPEG] = NVML_JPG_UTILIZATION_SAMPLES,    [ENGINE_OFA] = NVML_OFA_UTILIZATION_SAMPLES,
};

static struct nvml_sample buffers[ENGINES][SAMPLES_MAX];

/* What the driver says of one engine without samples: its newest ratio, for time that we measure. */
struct rate {
	enum nvml_return result;
	double ratio;
};

/*
 * Removes samples that are not newer than `since` or in the future, and percentages above 100; sorts the
 * rest.
 */
static unsigned sift(struct reader *reader, int engine, uint64_t since, struct nvml_sample *samples,
		     unsigned n)
{
	uint64_t newest = since;
	unsigned kept = 0;

	for (unsigned i = 0; i < n; i++) {
		if (!reader_in_time(reader, samples[i].timestamp, newest))
			continue;
		newest = samples[i].timestamp;
		if (samples[i].value.as_uint > 100) {
			reader->reading->rejected[GPU_UTILIZATION_GPU + engine]++;
			continue;
		}
		samples[kept++] = samples[i];
	}
	return kept;
}

static void learn_period(struct device *device, int engine, const struct nvml_sample *samples, unsigned n)
{
	uint64_t shortest = WINDOW_PERIOD_MAX_US;

	/* The shortest step: a longer one may have the clock's being set in it. */
	for (unsigned i = 1; i < n; i++)
		shortest = MIN(shortest, samples[i].timestamp - samples[i - 1].timestamp);
	if (n >= 2)
		device->period_us[engine] = shortest;
	else if (!device->period_us[engine])
		device->period_us[engine] = PERIOD_DEFAULT_US;
}

static enum nvml_return read_engine(struct reader *reader, struct device *device, int engine, uint64_t since,
				    struct window_engine *ret_engine)
{
	int64_t begin_ns = clock_boot_ns(), end_ns;
	uint32_t type = 0, n = SAMPLES_MAX;
	enum nvml_return result;

	if (device->samples_off & 1u << engine)
		return NVML_ERROR_NOT_SUPPORTED;
	result = NVML_CALL(reader, nvmlDeviceGetSamples, device->handle, sampling[engine], since, &type, &n,
			   buffers[engine]);
	end_ns = clock_boot_ns();
	if (nvml_unsupported(result))
		device->samples_off |= (uint8_t)(1u << engine);
	if (result == NVML_SUCCESS && n > SAMPLES_MAX)
		reader->reading->rejected[GPU_UTILIZATION_GPU +
					  engine]++; /* more than fit: who knows what they are */
	if (result != NVML_SUCCESS || n > SAMPLES_MAX)
		n = 0;
	n = sift(reader, engine, since, buffers[engine], n);
	learn_period(device, engine, buffers[engine], n);
	if (n) {
		device->newest_us[engine] = buffers[engine][n - 1].timestamp;
		stamps_look(&device->clock, reader->pass, device->newest_us[engine], begin_ns, end_ns,
			    (int64_t)device->period_us[engine]);
	}
	*ret_engine = (struct window_engine){
		.samples = buffers[engine],
		.n = n,
		.newest_us = device->newest_us[engine],
		.period_us = device->period_us[engine],
	};
	return result;
}

/* The samples of all engines, and the window over which they are integrated. False when no engine has any. */
static bool read_window(struct reader *reader, struct device *device, struct window_engine engines[ENGINES],
			struct window *ret_window)
{
	struct persistent_state *work = &device->work;
	int64_t elapsed_us = work->window_boot_ns ? (reader->now_ns - work->window_boot_ns) / 1000 : 0;
	uint64_t since;

	if (work->window_us > (uint64_t)reader->real_us + CLOCK_SLACK_US) {
		/* The clock was set back: what was seen up to now lies in a future that is none any more. */
		work->window_us = 0;
		work->window_carry_us = 0;
		for (int i = 0; i < ENGINES; i++)
			device->newest_us[i] = 0;
	}
	since = work->window_us ? work->window_us : (uint64_t)reader->real_us - FIRST_LOOK_US;
	for (int i = 0; i < ENGINES && !reader->lost && !reader->gone; i++)
		read_engine(reader, device, i, since, &engines[i]);
	window_choose(engines, (uint64_t)reader->real_us, work->window_us, elapsed_us, work->window_carry_us,
		      ret_window);
	work->window_boot_ns = reader->now_ns;
	if (!ret_window->engines)
		return false;
	if (ret_window->end_us > ret_window->begin_us)
		device->utilized_ns = reader->now_ns;
	work->window_us = ret_window->end_us;
	work->window_carry_us = ret_window->carry_us;
	return true;
}

static void read_rates(struct reader *reader, struct device *device, unsigned wanted,
		       struct rate rates[ENGINES])
{
	struct nvml_utilization both = { .gpu = 0 };
	uint32_t percent[ENGINES] = { 0 }, period_us;

	wanted &= ~device->rates_off;
	for (int i = 0; i < ENGINES; i++)
		rates[i].result = NVML_ERROR_NOT_SUPPORTED;
	if (wanted & (1u << ENGINE_GPU | 1u << ENGINE_MEMORY)) {
		rates[ENGINE_GPU].result = rates[ENGINE_MEMORY].result =
			NVML_CALL(reader, nvmlDeviceGetUtilizationRates, device->handle, &both);
		percent[ENGINE_GPU] = both.gpu;
		percent[ENGINE_MEMORY] = both.memory;
	}
#define READ_RATE(engine_, name_)     \
	if (wanted & 1u << (engine_)) \
	rates[engine_].result = NVML_CALL(reader, name_, device->handle, &percent[engine_], &period_us)
	READ_RATE(ENGINE_ENCODER, nvmlDeviceGetEncoderUtilization);
	READ_RATE(ENGINE_DECODER, nvmlDeviceGetDecoderUtilization);
	READ_RATE(ENGINE_JPEG, nvmlDeviceGetJpgUtilization);
	READ_RATE(ENGINE_OFA, nvmlDeviceGetOfaUtilization);
#undef READ_RATE
	for (int i = 0; i < ENGINES; i++) {
		if ((wanted & 1u << i) && nvml_unsupported(rates[i].result))
			device->rates_off |= (uint8_t)(1u << i);
		rates[i].ratio = percent[i] / 100.0;
	}
}

/* A mean is of the time from here on; what has no samples has no time. */
static void put_stamp(struct device *device, int engine, uint64_t begin_us)
{
	if (engine == ENGINE_GPU)
		stamps_put(&device->clock, STAMPED_UTILIZATION_GPU, begin_us);
	else if (engine == ENGINE_MEMORY)
		stamps_put(&device->clock, STAMPED_UTILIZATION_MEMORY, begin_us);
}

static void report_sampled(struct reader *reader, struct device *device, int i,
			   const struct window_engine *engine, const struct window *window)
{
	double seconds = window_seconds(window), max, busy = window_busy(engine, window, &max);

	reader_report(reader, device, GPU_BUSY_GPU + i, SLOT_BUSY_GPU + i, NVML_SUCCESS, MIN(busy, seconds));
	if (seconds <= 0)
		return; /* shorter ticks than samples: the newest ratio holds, see expire.c */
	reader_report(reader, device, GPU_UTILIZATION_GPU + i, SLOT_UTILIZATION_GPU + i, NVML_SUCCESS,
		      MIN(busy / seconds, 1.0));
	put_stamp(device, i, window->begin_us);
	if (i <= ENGINE_MEMORY)
		reader_report(reader, device, GPU_UTILIZATION_MAX_GPU + i, SLOT_UTILIZATION_MAX_GPU + i,
			      NVML_SUCCESS, max);
}

/*
 * Busy seconds from a ratio that held at one instant are an estimate; the ratio itself is what the driver
 * says.
 */
static void report_rate(struct reader *reader, struct device *device, int i, const struct rate *rate,
			double seconds)
{
	unsigned busy = SLOT_BUSY_GPU + i;

	reader_report(reader, device, GPU_UTILIZATION_GPU + i, SLOT_UTILIZATION_GPU + i, rate->result,
		      rate->ratio);
	put_stamp(device, i, 0);
	if (i <= ENGINE_MEMORY)
		reader_report(reader, device, GPU_UTILIZATION_MAX_GPU + i, SLOT_UTILIZATION_MAX_GPU + i,
			      rate->result == NVML_SUCCESS ? NVML_ERROR_NOT_SUPPORTED : rate->result, 0);
	if (!device_has(device, SLOT_UTILIZATION_GPU + i)) {
		device->entity->p[busy] = device->entity->p[SLOT_UTILIZATION_GPU + i];
		return;
	}
	reader_report(reader, device, GPU_BUSY_GPU + i, busy, NVML_SUCCESS, rate->ratio * seconds);
	device->entity->p[busy] |= PRESENCE_ESTIMATED;
}

/*
 * Samples were not asked for, so nothing was observed. The ratios of the GPU and its memory, which are cheap,
 * are the driver's newest; those of other engines hold.
 */
static void skip_samples(struct reader *reader, struct device *device)
{
	struct rate rates[ENGINES];

	for (int i = 0; i < ENGINES; i++)
		device->entity->v[SLOT_BUSY_GPU + i] = 0;
	device->entity->v[SLOT_OBSERVED] = 0;
	read_rates(reader, device, 1u << ENGINE_GPU | 1u << ENGINE_MEMORY, rates);
	for (int i = ENGINE_GPU; i <= ENGINE_MEMORY; i++) {
		put_stamp(device, i, 0);
		if (rates[i].result == NVML_SUCCESS)
			reader_report(reader, device, GPU_UTILIZATION_GPU + i, SLOT_UTILIZATION_GPU + i,
				      NVML_SUCCESS, rates[i].ratio);
	}
}

static void read_gpu(struct reader *reader, struct device *device)
{
	int64_t begin_ns = reader_work_begin(device);
	struct window_engine engines[ENGINES] = { { .n = 0 } };
	struct rate rates[ENGINES];
	struct window window;
	double seconds;
	bool any;

	if (begin_ns < 0) {
		skip_samples(reader, device);
		return;
	}
	any = read_window(reader, device, engines, &window);
	reader_work_end(device, begin_ns);
	seconds = any ? window_seconds(&window) : (double)device->work_elapsed_ns / NSEC_PER_SEC;
	read_rates(reader, device, ~window.engines & ((1u << ENGINES) - 1), rates);
	if (reader->lost || reader->gone)
		return;
	for (int i = 0; i < ENGINES; i++) {
		if (window.engines & 1u << i)
			report_sampled(reader, device, i, &engines[i], &window);
		else
			report_rate(reader, device, i, &rates[i], seconds);
		any |= device_has(device, SLOT_UTILIZATION_GPU + i);
	}
	REPORT(reader, device, OBSERVED, any ? NVML_SUCCESS : NVML_ERROR_NOT_SUPPORTED, seconds);
}

/* MIG instances have no samples: GPM's graphics activity over the time between its two samples. */
static void read_instance(struct device *device)
{
	struct reading_entity *e = device->entity;
	uint8_t p = device->gpm_works ? e->p[SLOT_GRAPHICS_ACTIVE] : nvml_presence(device->gpm_result);
	double ratio = e->v[SLOT_GRAPHICS_ACTIVE],
	       seconds = device->gpm_read && presence_is(p) ? device->gpm_seconds : 0;

	e->v[SLOT_UTILIZATION_GPU] = ratio;
	e->v[SLOT_BUSY_GPU] = ratio * seconds;
	e->v[SLOT_OBSERVED] = seconds;
	e->p[SLOT_UTILIZATION_GPU] = p;
	/* Where there is merely no answer yet nothing was observed, and the sums stand. */
	e->p[SLOT_BUSY_GPU] = e->p[SLOT_OBSERVED] = p == PRESENCE_ABSENT ? PRESENCE_PRESENT : p;
}

void samples_read(struct reader *reader, struct device *device)
{
	if (device->parent == READING_NONE)
		read_gpu(reader, device);
	else
		read_instance(device);
}

/* Without GPM: the driver's utilisation is the nearest thing, and no more than an estimate. */
void activity_derive(struct reader *reader, struct device *device)
{
	struct reading_entity *e = device->entity;

	if (device->parent != READING_NONE || device->gpm_works)
		return;
	if (device_has(device, SLOT_UTILIZATION_GPU)) {
		REPORT(reader, device, GRAPHICS_ACTIVE, NVML_SUCCESS, e->v[SLOT_UTILIZATION_GPU]);
		e->p[SLOT_GRAPHICS_ACTIVE] |= PRESENCE_ESTIMATED;
	}
	if (device_has(device, SLOT_UTILIZATION_MEMORY)) {
		REPORT(reader, device, DRAM_ACTIVE, NVML_SUCCESS, e->v[SLOT_UTILIZATION_MEMORY]);
		e->p[SLOT_DRAM_ACTIVE] |= PRESENCE_ESTIMATED;
	}
}
