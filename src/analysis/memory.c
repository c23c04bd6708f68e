// SPDX-License-Identifier: Apache-2.0
/*
 * Leaks: bytes that a process holds, at the boundaries of its steps. A straight line through the newest 30
 * samples rises, clearly more than the samples scatter, and in each fifth of them (what jumps rises in one,
 * what fills up not in the last); and NVML agrees where it is known. Without steps, samples are of windows.
 *
 * By stack: each block is of the stack that allocated it, as far as that is known; a finding has the one
 * whose bytes rose the most.
 *
 * What a process holds is what PyTorch's allocators say, or else what calls allocated and did not free.
 * Beyond ALLOCATIONS_MAX blocks of all processes a process's own sum is not known any more, and not judged.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "analysis/private.h"
#include "base/clock.h"

enum {
	HOLDERS_MAX = 256,
	ALLOCATIONS_MAX = 1 << 18,
	SAMPLES = 30,
	FIFTHS = 5,
	UNIT = 256, /* bytes; the driver rounds up to more */
	SITES = 16, /* stacks of a process that allocate; the last one stands for all others */
};
#define SAMPLE_NS ((uint64_t)NSEC_PER_SEC) /* at most one in this time, so that NVML's figures are of it */
#define RISE_MIN (32ULL << 20)
#define RISE_SHARE 0.02 /* of what was held */
#define CLEAR 6.0 /* standard errors of the slope */
#define EACH_FIFTH 0.5 /* of what the slope lets expect */
#define AGREES 0.25 /* of the rise, in the driver's figure */

struct holder {
	uint32_t node, pid, device;
	uint64_t held; /* bytes, by calls */
	bool calls, blind; /* blind: there were more blocks than are kept */
	bool torch_known, nvml_known, stepped, ended;
	double torch; /* newest figure */
	uint32_t n; /* samples, the oldest first */
	struct sample_of_memory {
		uint64_t ns;
		double held, nvml;
		double sites[SITES]; /* bytes held of each */
	} samples[SAMPLES];
	uint32_t sites_n;
	struct {
		uint64_t stack, held;
	} sites[SITES];
};

struct memory {
	struct row_list holders;
	struct hashmap by, blocks; /* blocks: bytes in units, by process and address */
	struct hashmap sites; /* of blocks whose stack is known: index of the holder's */
};

int memory_new(void **ret_state)
{
	struct memory *m = calloc(1, sizeof(*m));

	if (!m)
		return -ENOMEM;
	m->holders = (struct row_list){ .size = sizeof(struct holder), .max = HOLDERS_MAX };
	*ret_state = m;
	return 0;
}

void memory_free(void *state)
{
	struct memory *m = state;

	if (!m)
		return;
	row_list_done(&m->holders);
	hashmap_done(&m->by);
	hashmap_done(&m->blocks);
	hashmap_done(&m->sites);
	free(m);
}

static struct holder *holder_at(const struct memory *m, uint32_t i)
{
	return &((struct holder *)m->holders.list)[i];
}

static struct holder *holder_get(struct memory *m, uint32_t node, uint32_t pid, bool make)
{
	uint64_t key = (uint64_t)node << 32 | pid;
	struct holder *h;
	uint32_t index;

	if (hashmap_get(&m->by, key, &index))
		return holder_at(m, index);
	h = make ? row_list_add(&m->holders) : NULL;
	if (!h || hashmap_put(&m->by, key, m->holders.n - 1) < 0) {
		m->holders.n -= h != NULL;
		return NULL;
	}
	h->node = node;
	h->pid = pid;
	return h;
}

/* ---- blocks ---- */

static uint64_t block_key(const struct analysis_event *event)
{
	const uint64_t parts[] = { event->node, event->pid, event->address };

	return hash_bytes_secret(parts, sizeof(parts));
}

static uint32_t site_of(struct holder *h, uint64_t stack)
{
	uint32_t i = 0;

	while (i < h->sites_n && i < SITES - 1 && h->sites[i].stack != stack)
		i++;
	if (i == h->sites_n) {
		h->sites[i].stack = i < SITES - 1 ? stack : 0;
		h->sites_n++;
	}
	return i;
}

static void free_block(struct memory *m, struct holder *h, uint64_t key)
{
	uint32_t units, site;

	if (!hashmap_get(&m->blocks, key, &units))
		return;
	hashmap_del(&m->blocks, key);
	h->held -= MIN(h->held, (uint64_t)units * UNIT);
	if (!hashmap_get(&m->sites, key, &site))
		return;
	hashmap_del(&m->sites, key);
	h->sites[site].held -= MIN(h->sites[site].held, (uint64_t)units * UNIT);
}

/* Without memory for it the block is of no stack. */
static void add_to_site(struct memory *m, struct holder *h, uint64_t key, uint64_t stack, uint64_t bytes)
{
	uint32_t site = site_of(h, stack);

	if (hashmap_put(&m->sites, key, site) == 0)
		h->sites[site].held += bytes;
}

static void add_block(struct memory *m, struct holder *h, const struct analysis_event *event)
{
	uint32_t units = (uint32_t)MIN((event->bytes + UNIT - 1) / UNIT, (uint64_t)UINT32_MAX);
	uint64_t key = block_key(event);

	h->calls = true;
	free_block(m, h, key); /* its end was missed */
	if (m->blocks.count == ALLOCATIONS_MAX || hashmap_put(&m->blocks, key, units) < 0) {
		h->blind = true;
		return;
	}
	h->held += (uint64_t)units * UNIT;
	if (event->stack != 0)
		add_to_site(m, h, key, event->stack, (uint64_t)units * UNIT);
}

static void holder_figure(struct holder *h, const struct analysis_event *event)
{
	if (event->counter == ANALYSIS_COUNTER_TORCH_ALLOCATED) {
		h->torch_known = true;
		h->torch = event->value;
	}
	h->nvml_known |= event->counter == ANALYSIS_COUNTER_PROCESS_MEMORY;
	if (event->device != 0)
		h->device = event->device;
}

static bool is_of_memory(const struct analysis_event *event)
{
	return event->kind == ANALYSIS_ALLOCATE || event->kind == ANALYSIS_FREE ||
	       event->kind == ANALYSIS_EXIT ||
	       (event->kind == ANALYSIS_COUNTER && (event->counter == ANALYSIS_COUNTER_TORCH_ALLOCATED ||
						    event->counter == ANALYSIS_COUNTER_PROCESS_MEMORY));
}

void memory_event(struct analysis *a, void *state, const struct analysis_event *event)
{
	struct memory *m = state;
	struct holder *h;

	if (event->pid == 0 || !is_of_memory(event) || event->flags & (ANALYSIS_NESTED | ANALYSIS_HOST))
		return;
	h = holder_get(m, event->node, event->pid, event->kind != ANALYSIS_EXIT);
	if (!h) {
		a->counts.beyond += event->kind != ANALYSIS_EXIT;
		return;
	}
	if (event->kind == ANALYSIS_COUNTER)
		holder_figure(h, event);
	else if (event->kind == ANALYSIS_ALLOCATE && event->result == 0 && event->address != 0 &&
		 !(event->flags & ANALYSIS_CACHED))
		add_block(m, h, event);
	else if (event->kind == ANALYSIS_FREE)
		free_block(m, h, block_key(event));
	h->ended |= event->kind == ANALYSIS_EXIT;
}

/* ---- samples ---- */

/* By the driver, on all its devices. */
static double held_by_driver(const struct analysis *a, const struct holder *h)
{
	const struct process_usage *usage = usage_process(a, h->node, h->pid);
	double held = 0;

	for (uint32_t i = 0; usage && i < usage->devices_n; i++)
		held += usage->devices[i].memory;
	return held;
}

static void holder_sample(const struct analysis *a, struct holder *h, uint64_t ns)
{
	struct sample_of_memory *sample;

	if (!h->torch_known && (!h->calls || h->blind))
		return;
	if (h->n > 0 && ns < h->samples[h->n - 1].ns + SAMPLE_NS)
		return;
	if (h->n == SAMPLES)
		memmove(&h->samples[0], &h->samples[1], --h->n * sizeof(h->samples[0]));
	sample = &h->samples[h->n++];
	*sample = (struct sample_of_memory){ .ns = ns,
					     .held = h->torch_known ? h->torch : (double)h->held,
					     .nvml = held_by_driver(a, h) };
	for (uint32_t i = 0; i < h->sites_n; i++)
		sample->sites[i] = (double)h->sites[i].held;
}

void memory_step(struct analysis *a, uint32_t node, uint32_t pid, uint64_t ns)
{
	struct holder *h = holder_get(a->parts[ANALYSIS_PART_memory], node, pid, false);

	if (!h)
		return;
	if (!h->stepped)
		h->n = 0; /* those of windows */
	h->stepped = true;
	holder_sample(a, h, ns);
}

struct memory_line {
	double slope, error; /* bytes a second; error: standard, of the slope */
};

/* Least squares, around the means. */
static struct memory_line memory_line_of(const struct sample_of_memory *samples, uint32_t n)
{
	double mean_x = 0, mean_y = 0, xx = 0, xy = 0, residuals = 0;
	struct memory_line line;

	for (uint32_t i = 0; i < n; i++) {
		mean_x += (double)(samples[i].ns - samples[0].ns) / (double)NSEC_PER_SEC / n;
		mean_y += samples[i].held / n;
	}
	for (uint32_t i = 0; i < n; i++) {
		double x = (double)(samples[i].ns - samples[0].ns) / (double)NSEC_PER_SEC - mean_x;

		xx += x * x;
		xy += x * (samples[i].held - mean_y);
	}
	line.slope = xy / xx;
	for (uint32_t i = 0; i < n; i++) {
		double x = (double)(samples[i].ns - samples[0].ns) / (double)NSEC_PER_SEC - mean_x;
		double off = samples[i].held - mean_y - line.slope * x;

		residuals += off * off;
	}
	line.error = sqrt(residuals / (n - 2) / xx);
	return line;
}

/* Means of each fifth, against the one before. */
static bool rises_steadily(const struct sample_of_memory *samples, double slope)
{
	struct {
		double at, held;
	} fifths[FIFTHS] = { 0 };

	for (uint32_t i = 0; i < SAMPLES; i++) {
		const uint32_t fifth = i / (SAMPLES / FIFTHS);

		fifths[fifth].at += (double)(samples[i].ns - samples[0].ns) / (double)NSEC_PER_SEC;
		fifths[fifth].held += samples[i].held;
	}
	for (uint32_t i = 1; i < FIFTHS; i++)
		if (fifths[i].held - fifths[i - 1].held <
		    EACH_FIFTH * slope * (fifths[i].at - fifths[i - 1].at))
			return false;
	return true;
}

static bool leaks(const struct holder *h, struct memory_line *ret_line)
{
	const struct sample_of_memory *first = &h->samples[0], *last = &h->samples[SAMPLES - 1];
	double rise = last->held - first->held;

	if (h->n < SAMPLES || rise < (double)RISE_MIN || rise < RISE_SHARE * first->held)
		return false;
	*ret_line = memory_line_of(h->samples, SAMPLES);
	return ret_line->slope > CLEAR * ret_line->error && rises_steadily(h->samples, ret_line->slope) &&
	       (!h->nvml_known || last->nvml - first->nvml > AGREES * rise);
}

/* The stack whose bytes rose the most, by how much; without one that is known all is as it was. */
static void put_site(const struct holder *h, struct analysis_finding *finding)
{
	const struct sample_of_memory *first = &h->samples[0], *last = &h->samples[SAMPLES - 1];
	uint32_t most = 0, rising = 0;

	for (uint32_t i = 0; i < h->sites_n; i++) {
		rising += last->sites[i] > first->sites[i];
		if (last->sites[i] - first->sites[i] > last->sites[most] - first->sites[most])
			most = i;
	}
	if (rising == 0)
		return;
	finding->stack = h->sites[most].stack;
	finding_value(finding, "rise_of_stack", ANALYSIS_BYTES, last->sites[most] - first->sites[most]);
	finding_value(finding, "held_by_stack", ANALYSIS_BYTES, last->sites[most]);
	finding_value(finding, "stacks_rising", ANALYSIS_NUMBER, rising);
}

static void judge_holder(struct analysis *a, const struct holder *h)
{
	struct analysis_finding finding = { .rule = FINDING_LEAK,
					    .node = h->node,
					    .pid = h->pid,
					    .device = h->device,
					    .begin_ns = h->samples[0].ns,
					    .end_ns = h->n > 0 ? h->samples[h->n - 1].ns : 0 };
	struct memory_line line;

	if (!leaks(h, &line))
		return;
	finding.confidence = 0.5 + (h->nvml_known ? 0.3 : 0) + (h->stepped ? 0.15 : 0);
	finding.without =
		(h->nvml_known ? 0 : 1U << EVIDENCE_PROCESS_MEMORY) | (h->stepped ? 0 : 1U << EVIDENCE_STEPS);
	finding_value(&finding, "rate", ANALYSIS_BYTES_PER_SECOND, line.slope);
	finding_value(&finding, "held", ANALYSIS_BYTES, h->samples[SAMPLES - 1].held);
	finding_value(&finding, "rise", ANALYSIS_BYTES, h->samples[SAMPLES - 1].held - h->samples[0].held);
	if (h->nvml_known)
		finding_value(&finding, "rise_of_driver", ANALYSIS_BYTES,
			      h->samples[SAMPLES - 1].nvml - h->samples[0].nvml);
	put_site(h, &finding);
	finding_report(a, &finding);
}

/* Its blocks stay until their places are needed: nobody can ask for them. */
static void remove_holder(struct memory *m, uint32_t i)
{
	const struct holder *h = holder_at(m, i), *last = holder_at(m, m->holders.n - 1);

	hashmap_del(&m->by, (uint64_t)h->node << 32 | h->pid);
	if (h != last) {
		*holder_at(m, i) = *last;
		hashmap_put(&m->by, (uint64_t)last->node << 32 | last->pid, i); /* replaces */
	}
	m->holders.n--;
	if (m->holders.n == 0) {
		hashmap_clear(&m->blocks);
		hashmap_clear(&m->sites);
	}
}

void memory_window(struct analysis *a, void *state, const struct analysis_window *window)
{
	struct memory *m = state;

	for (uint32_t i = m->holders.n; i > 0; i--) {
		struct holder *h = holder_at(m, i - 1);

		if (!h->stepped)
			holder_sample(a, h, window->end_ns);
		judge_holder(a, h);
		if (h->ended)
			remove_holder(m, i - 1);
	}
}
