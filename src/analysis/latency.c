// SPDX-License-Identifier: Apache-2.0
/*
 * Latencies of operations that are unusual for them: of each process, operation and size class a mixture of
 * ln(latency); and of each process and operation one of (ln(latency), ln(bytes), utilisation, clock ratio),
 * as far as these are known.
 *
 * A model passes by its first calls, takes a random sample of the next ones, is fitted, and judges from then
 * on; until then, median and median absolute deviation do. Alerts are of several calls, never of one. What
 * the mixture flags is not learnt; it is fitted again every hour. Whether the modes' weights shift is
 * followed by cumulative sums. docs/analysis.md has the constants' sources.
 *
 * Memory: MODELS_MAX samples of MIXTURE_OBSERVATIONS numbers, or up to four times as many. Time: so many
 * fits in a window as the options say; others wait for the next one.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "analysis/mixture.h"
#include "analysis/private.h"
#include "base/clock.h"

enum {
	MODELS_MAX = 512, /* of one dimension; a quarter of it of several ones */
	MODELS_OF_PROCESS =
		MODELS_MAX / 2, /* names and sizes are the program's choice: others have the rest */
	WARM_UP = 100, /* calls */
	OUT_OF = 20, /* calls, of which so many flagged ones are an alert */
	FLAGGED_MIN = 3,
	FEW_MIN = 30, /* observations from which median and deviation judge */
};
#define WARM_UP_NS (60 * (uint64_t)NSEC_PER_SEC)
#define REFIT_NS (3600 * (uint64_t)NSEC_PER_SEC)
#define FORGET_NS (3600 * (uint64_t)NSEC_PER_SEC)
#define DEVIATIONS (5 * 1.4826) /* of the median absolute deviation: five standard ones of a normal's */
#define EXACT_BYTES 0.01 /* of the logarithm */
#define EXACT_UTILIZATION 0.05
#define EXACT_CLOCK 0.02 /* of the highest */
#define SHIFT_SLACK 0.1 /* of a weight */
#define SHIFT_LIMIT 15.0 /* of the cumulative sum */

struct latency_model {
	uint64_t key, first_ns, last_ns;
	uint32_t node, pid, device, name;
	uint8_t kind, size_class, dimensions; /* dimensions 0: warming up */
	bool of_device; /* the device's own times */
	bool wide; /* of several dimensions, and all sizes */
	bool has_bytes, has_utilization, has_clock;
	float *sample; /* MIXTURE_OBSERVATIONS times dimensions */
	uint32_t seen, sampled, offered; /* offered: to this sample */
	uint32_t few; /* observations that median and deviation are of */
	double median, deviation;
	bool several; /* modes: these two do not judge */
	bool fitted, shifted;
	uint64_t fitted_ns;
	struct mixture mixture;
	double more[MIXTURE_COMPONENTS], less[MIXTURE_COMPONENTS]; /* cumulative sums of weights */
	uint32_t history; /* the newest calls, a bit each: flagged */
	/* Since the window began: */
	uint32_t calls, flagged;
	bool alert;
	uint64_t flagged_ns, stack; /* flagged: begin of the first of the alert's */
	double slowest; /* seconds */
};

struct latency {
	struct row_list models;
	struct hashmap by;
	uint32_t wide_n, fits_left;
	uint64_t random;
};

int latency_new(void **ret_state)
{
	struct latency *l = calloc(1, sizeof(*l));

	if (!l)
		return -ENOMEM;
	l->models = (struct row_list){ .size = sizeof(struct latency_model), .max = MODELS_MAX };
	l->fits_left = ANALYSIS_FITS;
	l->random = 88172645463325252; /* any but 0 */
	*ret_state = l;
	return 0;
}

static struct latency_model *model_at(const struct latency *l, uint32_t i)
{
	return &((struct latency_model *)l->models.list)[i];
}

void latency_free(void *state)
{
	struct latency *l = state;

	if (!l)
		return;
	for (uint32_t i = 0; i < l->models.n; i++)
		free(model_at(l, i)->sample);
	row_list_done(&l->models);
	hashmap_done(&l->by);
	free(l);
}

/* ---- models ---- */

/* Of a power of two; 0: no bytes. */
static uint8_t size_class(uint64_t bytes)
{
	return bytes == 0 ? 0 : (uint8_t)(64 - __builtin_clzll(bytes));
}

/* NULL: no room, which is counted. */
static struct latency_model *model_get(struct analysis *a, struct latency *l,
				       const struct analysis_event *event, bool wide)
{
	uint8_t class = wide ? 0 : size_class(event->bytes);
	/* A collective's call and its work on the device are two things. */
	bool of_device = event->flags & ANALYSIS_TRUE;
	const uint64_t parts[] = {
		event->node, event->pid, event->kind, event->name, class, wide, of_device
	};
	uint64_t key = hash_bytes_secret(parts, sizeof(parts));
	struct process_usage *usage;
	struct latency_model *m = NULL;
	uint32_t index;

	if (hashmap_get(&l->by, key, &index))
		return model_at(l, index);
	usage = usage_process(a, event->node, event->pid);
	if (usage && usage->models < MODELS_OF_PROCESS && !(wide && l->wide_n == MODELS_MAX / 4))
		m = row_list_add(&l->models);
	if (!m || hashmap_put(&l->by, key, l->models.n - 1) < 0) {
		l->models.n -= m != NULL;
		a->counts.unmodelled += !wide;
		return NULL;
	}
	usage->models++;
	l->wide_n += wide;
	*m = (struct latency_model){ .key = key,
				     .first_ns = event->begin_ns,
				     .node = event->node,
				     .pid = event->pid,
				     .name = event->name,
				     .kind = event->kind,
				     .size_class = class,
				     .of_device = of_device,
				     .wide = wide };
	return m;
}

static void model_remove(struct analysis *a, struct latency *l, uint32_t i)
{
	struct latency_model *m = model_at(l, i), *last = model_at(l, l->models.n - 1);
	struct process_usage *usage = usage_process(a, m->node, m->pid);

	if (usage && usage->models > 0)
		usage->models--;
	hashmap_del(&l->by, m->key);
	l->wide_n -= m->wide;
	free(m->sample);
	if (m != last) {
		*m = *last;
		hashmap_put(&l->by, m->key, i); /* replaces, so that it cannot fail */
	}
	l->models.n--;
}

/* ---- observations ---- */

/* The newest figure; false: there never was one. */
static bool figure(const struct device_usage *device, enum analysis_counter counter, float *ret_value)
{
	if (!device || !device->counters[counter].known)
		return false;
	*ret_value = (float)device->counters[counter].last;
	return true;
}

static bool clock_ratio(const struct device_usage *device, float *ret_ratio)
{
	float now, most;

	if (!figure(device, ANALYSIS_COUNTER_CLOCK_SM, &now) ||
	    !figure(device, ANALYSIS_COUNTER_CLOCK_SM_MAX, &most) || most <= 0)
		return false;
	*ret_ratio = now / most;
	return true;
}

/* What its dimensions are is decided once; a figure that does not come any more is its last one. */
static void choose_dimensions(struct latency_model *m, const struct analysis_event *event,
			      const struct device_usage *device)
{
	float unused;

	if (m->wide) {
		m->has_bytes = event->bytes > 0;
		m->has_utilization = figure(device, ANALYSIS_COUNTER_UTILIZATION, &unused);
		m->has_clock = clock_ratio(device, &unused);
	}
	m->dimensions = (uint8_t)(1 + m->has_bytes + m->has_utilization + m->has_clock);
}

static void observe(const struct latency_model *m, const struct analysis_event *event,
		    const struct device_usage *device, float x[static MIXTURE_DIMENSIONS])
{
	uint32_t d = 0;

	x[d++] = (float)log((double)(event->end_ns - event->begin_ns));
	if (m->has_bytes)
		x[d++] = (float)log((double)MAX(event->bytes, UINT64_C(1)));
	if (m->has_utilization && figure(device, ANALYSIS_COUNTER_UTILIZATION, &x[d]))
		d++;
	if (m->has_clock)
		clock_ratio(device, &x[d]);
}

/* ---- learning ---- */

static uint64_t latency_random(struct latency *l)
{
	l->random ^= l->random << 13;
	l->random ^= l->random >> 7;
	l->random ^= l->random << 17;
	return l->random;
}

/* Each call offered has the same chance to be in the sample. */
static void offer(struct latency *l, struct latency_model *m, const float *x)
{
	uint64_t place = m->sampled;

	if (m->sampled < MIXTURE_OBSERVATIONS)
		m->sampled++;
	else
		place = latency_random(l) % (m->offered + UINT64_C(1));
	m->offered += m->offered < UINT32_MAX;
	if (place < MIXTURE_OBSERVATIONS)
		memcpy(m->sample + place * m->dimensions, x, m->dimensions * sizeof(*x));
}

static int compare_float(const void *a, const void *b)
{
	float first = *(const float *)a, other = *(const float *)b;

	return (first > other) - (first < other);
}

/* Median and deviation of what is sampled of one dimension; again when it has doubled. */
static void summarize(struct latency_model *m)
{
	float sorted[MIXTURE_OBSERVATIONS];
	uint32_t n = m->sampled;

	if (n < FEW_MIN || n < 2 * m->few || m->dimensions != 1)
		return;
	memcpy(sorted, m->sample, n * sizeof(*sorted));
	qsort(sorted, n, sizeof(*sorted), compare_float);
	m->median = (double)sorted[n / 2];
	for (uint32_t i = 0; i < n; i++)
		sorted[i] = fabsf(sorted[i] - (float)m->median);
	qsort(sorted, n, sizeof(*sorted), compare_float);
	m->deviation = MAX((double)sorted[n / 2], 1e-3);
	m->few = n;
	/* More beyond the bound than outliers are: several modes, which only the mixture can tell. */
	m->several = (double)sorted[n - 1 - n / 100] > DEVIATIONS * m->deviation;
}

/* The driver's figures are means of a while, and one holds for many calls: they are no modes of their own. */
static void set_floors(const struct latency_model *m, double floors[static MIXTURE_DIMENSIONS])
{
	uint32_t d = 0;

	floors[d++] = MIXTURE_FLOOR;
	if (m->has_bytes)
		floors[d++] = EXACT_BYTES * EXACT_BYTES;
	if (m->has_utilization)
		floors[d++] = EXACT_UTILIZATION * EXACT_UTILIZATION;
	if (m->has_clock)
		floors[d] = EXACT_CLOCK * EXACT_CLOCK;
}

static void fit(struct latency *l, struct latency_model *m, uint64_t now_ns)
{
	double floors[MIXTURE_DIMENSIONS];
	bool due = !m->fitted || m->shifted || now_ns - m->fitted_ns >= REFIT_NS;

	if (!due || m->sampled < MIXTURE_OBSERVATIONS || l->fits_left == 0)
		return;
	set_floors(m, floors);
	l->fits_left--;
	/* One that cannot be fitted takes another sample. */
	if (mixture_fit(m->sample, m->sampled, m->dimensions, floors, &m->mixture) == 0) {
		m->fitted = true;
		m->shifted = false;
		memset(m->more, 0, sizeof(m->more));
		memset(m->less, 0, sizeof(m->less));
	}
	m->fitted_ns = now_ns;
	m->sampled = m->offered = 0;
}

/* ---- judging ---- */

static bool is_slow(const struct latency_model *m, const float *x)
{
	if (m->fitted)
		return mixture_is_slow(&m->mixture, x);
	return m->few >= FEW_MIN && !m->several && (double)x[0] > m->median + DEVIATIONS * m->deviation;
}

static double seconds_of_log(double x)
{
	return exp(x) / (double)NSEC_PER_SEC;
}

/* A collective's work on the device is work, too. */
static uint32_t kinds_of(const struct latency_model *m)
{
	return UINT32_C(1) << m->kind | (m->of_device ? UINT32_C(1) << ANALYSIS_WORK : 0);
}

static struct analysis_finding finding_of(const struct latency_model *m, enum analysis_rule rule)
{
	return (struct analysis_finding){ .rule = rule,
					  .node = m->node,
					  .pid = m->pid,
					  .device = m->device,
					  .subject = m->name,
					  .kinds = kinds_of(m),
					  .begin_ns = m->flagged_ns,
					  .end_ns = m->last_ns,
					  .stack = m->stack };
}

static void put_size(struct analysis_finding *finding, const struct latency_model *m)
{
	if (m->size_class > 0)
		finding_value(finding, "size_at_least", ANALYSIS_BYTES,
			      (double)(UINT64_C(1) << (m->size_class - 1)));
}

static void report_slow(struct analysis *a, const struct latency_model *m)
{
	struct analysis_finding finding =
		finding_of(m, m->wide ? FINDING_LATENCY_IN_CONTEXT : FINDING_LATENCY_OUTLIERS);
	const struct mixture *mixture = &m->mixture;
	uint32_t fastest = m->fitted ? mixture_fastest(mixture) : 0;

	finding.confidence = m->fitted ? 0.9 : 0.6;
	finding_value(&finding, "slow_calls", ANALYSIS_NUMBER, m->flagged);
	finding_value(&finding, "calls", ANALYSIS_NUMBER, m->calls);
	finding_value(&finding, "slowest", ANALYSIS_SECONDS, m->slowest);
	finding_value(&finding, "usual", ANALYSIS_SECONDS,
		      seconds_of_log(m->fitted ? mixture->mean[fastest][0] : m->median));
	if (m->fitted)
		finding_value(&finding, "modes", ANALYSIS_NUMBER, mixture->components);
	put_size(&finding, m);
	finding_report(a, &finding);
}

static void flag(struct analysis *a, struct latency_model *m, const struct analysis_event *event, bool slow)
{
	double seconds = (double)(event->end_ns - event->begin_ns) / (double)NSEC_PER_SEC;
	const uint32_t all = (1U << OUT_OF) - 1;

	if (slow && m->history == 0)
		m->flagged_ns = event->begin_ns;
	m->history = (m->history << 1 | slow) & all;
	m->calls++;
	m->flagged += slow;
	if (slow && seconds > m->slowest) {
		m->slowest = seconds;
		m->stack = event->stack;
	}
	if (!slow || __builtin_popcount(m->history) < FLAGGED_MIN || m->alert)
		return;
	m->alert = true;
	report_slow(a, m);
}

/* The component whose sum is beyond the limit; -1: none. */
static int shifted_component(struct latency_model *m, const float *x)
{
	double of[MIXTURE_COMPONENTS];
	int shifted = -1;

	mixture_responsibilities(&m->mixture, x, of);
	for (uint32_t k = 0; k < m->mixture.components; k++) {
		double away = of[k] - m->mixture.weight[k];

		m->more[k] = MAX(0.0, m->more[k] + away - SHIFT_SLACK);
		m->less[k] = MAX(0.0, m->less[k] - away - SHIFT_SLACK);
		if (MAX(m->more[k], m->less[k]) > SHIFT_LIMIT)
			shifted = (int)k;
	}
	return shifted;
}

/* The modes' weights are others now: said once, and learnt anew. */
static void follow_weights(struct analysis *a, struct latency_model *m, const struct analysis_event *event,
			   const float *x)
{
	int k = shifted_component(m, x);
	struct analysis_finding finding;

	if (k < 0)
		return;
	finding = finding_of(m, FINDING_LATENCY_SHIFT);
	finding.begin_ns = event->begin_ns;
	finding.end_ns = event->end_ns;
	finding.confidence = 0.8;
	finding_value(&finding, "mode", ANALYSIS_SECONDS, seconds_of_log(m->mixture.mean[k][0]));
	finding_value(&finding, "weight_before", ANALYSIS_RATIO, m->mixture.weight[k]);
	finding_value(&finding, "rises", ANALYSIS_NUMBER, m->more[k] > m->less[k]);
	finding_value(&finding, "modes", ANALYSIS_NUMBER, m->mixture.components);
	put_size(&finding, m);
	finding_report(a, &finding);
	m->shifted = true;
	m->sampled = m->offered = 0;
}

static void model_event(struct analysis *a, struct latency *l, struct latency_model *m,
			const struct analysis_event *event)
{
	const struct device_usage *device = usage_device(a, event->node, event->device);
	float x[MIXTURE_DIMENSIONS] = { 0 };
	bool slow;

	m->last_ns = event->end_ns;
	if (event->device != 0)
		m->device = event->device;
	if (m->seen < WARM_UP && event->end_ns < m->first_ns + WARM_UP_NS) {
		m->seen++;
		return;
	}
	if (m->dimensions == 0)
		choose_dimensions(m, event, device);
	if (m->wide && m->dimensions == 1) {
		m->dimensions = 0; /* the other model's, unless more becomes known */
		return;
	}
	if (!m->sample)
		m->sample = malloc(sizeof(*m->sample) * MIXTURE_OBSERVATIONS * m->dimensions);
	if (!m->sample)
		return;
	observe(m, event, device, x);
	slow = is_slow(m, x);
	flag(a, m, event, slow);
	if (!slow || !m->fitted)
		offer(l, m, x);
	/* What a GPU's use and clock are lasts: weights of modes by these shift all the time. */
	if (m->fitted && !m->wide && !m->shifted && !slow)
		follow_weights(a, m, event, x);
	if (!m->fitted)
		summarize(m);
	fit(l, m, event->end_ns);
}

static void process_ends(struct analysis *a, struct latency *l, const struct analysis_event *event)
{
	for (uint32_t i = l->models.n; i > 0; i--)
		if (model_at(l, i - 1)->node == event->node && model_at(l, i - 1)->pid == event->pid)
			model_remove(a, l, i - 1);
}

/* Kinds that are operations with a length; one without a name is many, and estimates vary by themselves. */
static bool is_operation(const struct analysis_event *event)
{
	static const uint32_t operations = 1U << ANALYSIS_CALL | 1U << ANALYSIS_LAUNCH | 1U << ANALYSIS_COPY |
					   1U << ANALYSIS_SYNC | 1U << ANALYSIS_ALLOCATE |
					   1U << ANALYSIS_FREE | 1U << ANALYSIS_COLLECTIVE |
					   1U << ANALYSIS_OPERATOR | 1U << ANALYSIS_WORK;

	return operations >> event->kind & 1 && !(event->flags & (ANALYSIS_NESTED | ANALYSIS_ESTIMATED)) &&
	       event->pid != 0 && event->name != 0 && event->end_ns > event->begin_ns;
}

void latency_event(struct analysis *a, void *state, const struct analysis_event *event)
{
	struct latency *l = state;

	if (event->kind == ANALYSIS_EXIT)
		process_ends(a, l, event);
	if (!is_operation(event))
		return;
	for (int wide = 0; wide <= 1; wide++) {
		struct latency_model *m = model_get(a, l, event, wide);

		if (m)
			model_event(a, l, m, event);
	}
}

void latency_window(struct analysis *a, void *state, const struct analysis_window *window)
{
	struct latency *l = state;

	l->fits_left = a->options.fits;
	for (uint32_t i = l->models.n; i > 0; i--) {
		struct latency_model *m = model_at(l, i - 1);

		if (window->end_ns > m->last_ns + FORGET_NS) {
			model_remove(a, l, i - 1);
			continue;
		}
		if (m->alert)
			report_slow(a, m);
		m->alert = false;
		m->calls = m->flagged = 0;
		m->slowest = 0;
		m->stack = 0;
	}
}
