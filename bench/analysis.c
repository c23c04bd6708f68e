// SPDX-License-Identifier: Apache-2.0
/*
 * How well src/analysis finds what is known: streams of a program that trains, made by chance, in which
 * something is slow for a while.
 *
 *   bench_analysis CASE SEED TRIALS      quiet, latency, clocks, links or lost; prints a JSON object
 *
 * What is drawn for each trial: the operators, how long they take, how many modes that has and how much it
 * varies, what is slow in an episode, by how much and for how long; and what disturbs without being wrong:
 * calls that stand alone, pauses of the collector, checkpoints. In "lost" several ranks work together, until
 * one of them does nothing any more.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/analysis.h"
#include "base/clock.h"

enum { OPERATORS_MAX = 8, EPISODES = 3, DELAYS_MAX = 4096 };
#define BEGIN 1000.0 /* seconds */
#define SECOND ((double)NSEC_PER_SEC)
#define SETTLES 300.0 /* seconds until the first episode: models have their samples */
#define BETWEEN 150.0 /* from one episode's end to the next one's begin */
#define AFTER 20.0 /* what is reported so long after an episode is of it still: two windows */

enum trouble { QUIET, LATENCY, CLOCKS, LINKS, LOST, TROUBLES };
static const char *const names[TROUBLES] = { "quiet", "latency", "clocks", "links", "lost" };

struct operator_made {
	uint32_t name;
	double median, spread; /* seconds; spread: of its logarithm */
	double slow_median, slow_share; /* of another mode; share 0: it has one */
	double kernel; /* seconds of work on the device, at the highest clock */
	uint64_t bytes;
};

struct episode {
	double begin, end; /* seconds */
	double factor; /* by which it is slow */
	uint32_t which; /* operator */
	bool found;
	double found_s;
};

struct trial {
	struct analysis *analysis;
	uint64_t random;
	enum trouble trouble;
	double now, device_free;
	uint32_t node, device, sync, reduce, thermal;
	uint32_t ranks;
	uint32_t operators_n, calls; /* calls: of each operator in a step */
	struct operator_made operators[OPERATORS_MAX];
	double data, reduce_seconds, lonely; /* lonely: probability of an outlier that stands alone */
	struct episode episodes[EPISODES];
	double next_figures;
};

struct score {
	uint64_t episodes, found, findings, events;
	/* findings: without those that are listed under another, which are symptoms */
	uint64_t within, right; /* findings in an episode; and those of its rule and subject */
	uint64_t symptoms, rightly; /* rightly: under one that is right */
	double hours, delays[DELAYS_MAX];
};

/* ---- chance ---- */

/* Vigna's splitmix64. */
static uint64_t draw(struct trial *t)
{
	uint64_t z = t->random += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return z ^ z >> 31;
}

static double uniform(struct trial *t, double least, double most)
{
	return least + (most - least) * (double)(draw(t) >> 11) * 0x1p-53;
}

static double log_uniform(struct trial *t, double least, double most)
{
	return exp(uniform(t, log(least), log(most)));
}

static double normal(struct trial *t)
{
	return sqrt(-2 * log(1 - uniform(t, 0, 1))) * cos(uniform(t, 0, 2 * M_PI));
}

/* ---- the program ---- */

static uint64_t at(double seconds)
{
	return (uint64_t)(seconds * SECOND);
}

static void add(struct trial *t, struct analysis_event event, double begin, double end)
{
	event.node = t->node;
	event.begin_ns = at(begin);
	event.end_ns = at(MAX(end, begin));
	analysis_add(t->analysis, &event);
}

static struct analysis_event of_process(const struct trial *t, enum analysis_kind kind, uint32_t name)
{
	return (struct analysis_event){
		.kind = (uint8_t)kind, .pid = 4242, .tid = 4242, .device = t->device, .name = name
	};
}

static const struct episode *episode_now(const struct trial *t)
{
	for (unsigned i = 0; i < EPISODES; i++)
		if (t->now >= t->episodes[i].begin && t->now < t->episodes[i].end)
			return &t->episodes[i];
	return NULL;
}

static double clock_now(const struct trial *t)
{
	const struct episode *episode = t->trouble == CLOCKS ? episode_now(t) : NULL;

	return episode ? 1 / episode->factor : 1;
}

static void figure(struct trial *t, enum analysis_counter counter, double value)
{
	const struct analysis_event event = {
		.kind = ANALYSIS_COUNTER, .counter = (uint8_t)counter, .device = t->device, .value = value
	};

	add(t, event, t->now, t->now);
}

/* Once a second, as the driver is asked. */
static void figures(struct trial *t)
{
	double clock = clock_now(t);

	if (t->now < t->next_figures)
		return;
	t->next_figures = t->now + 1;
	figure(t, ANALYSIS_COUNTER_UTILIZATION, CLAMP(0.9 + 0.05 * normal(t), 0.0, 1.0));
	figure(t, ANALYSIS_COUNTER_CLOCK_SM, 1.98e9 * clock * (1 + 0.005 * normal(t)));
	figure(t, ANALYSIS_COUNTER_CLOCK_SM_MAX, 1.98e9);
	figure(t, ANALYSIS_COUNTER_POWER, 600 * clock + 10 * normal(t));
	if (clock < 1)
		add(t,
		    (struct analysis_event){
			    .kind = ANALYSIS_THROTTLE, .device = t->device, .name = t->thermal },
		    t->now - 1, t->now);
}

static double duration(struct trial *t, const struct operator_made *o, uint32_t index)
{
	const struct episode *episode = t->trouble == LATENCY ? episode_now(t) : NULL;
	double median = uniform(t, 0, 1) < o->slow_share ? o->slow_median : o->median;
	double seconds = median * exp(o->spread * normal(t));

	if (episode && episode->which == index && uniform(t, 0, 1) < 0.5)
		seconds *= episode->factor;
	if (uniform(t, 0, 1) < t->lonely)
		seconds *= uniform(t, 3, 20);
	return seconds;
}

static void work(struct trial *t, struct analysis_event event, double seconds)
{
	double begin = MAX(t->now, t->device_free);

	t->device_free = begin + seconds;
	event.flags = ANALYSIS_TRUE;
	add(t, event, begin, t->device_free);
}

static void run_operator(struct trial *t, uint32_t index)
{
	const struct operator_made *o = &t->operators[index];
	struct analysis_event event = of_process(t, ANALYSIS_OPERATOR, o->name);
	double seconds = duration(t, o, index);

	event.bytes = o->bytes;
	t->now += seconds;
	add(t, event, t->now - seconds, t->now);
	event = of_process(t, ANALYSIS_LAUNCH, o->name);
	seconds = 5e-6 * exp(0.1 * normal(t));
	t->now += seconds;
	add(t, event, t->now - seconds, t->now);
	work(t, of_process(t, ANALYSIS_WORK, o->name), o->kernel / clock_now(t) * exp(0.02 * normal(t)));
}

static void run_collective(struct trial *t)
{
	const struct episode *episode = t->trouble == LINKS ? episode_now(t) : NULL;
	struct analysis_event event = of_process(t, ANALYSIS_COLLECTIVE, t->reduce);
	double seconds;

	event.bytes = 100 << 20;
	event.communicator = 77;
	event.ranks = 8;
	seconds = 2e-5 * exp(0.1 * normal(t));
	t->now += seconds;
	add(t, event, t->now - seconds, t->now);
	work(t, event, t->reduce_seconds * (episode ? episode->factor : 1) * exp(0.05 * normal(t)));
}

static void run_step(struct trial *t, uint64_t step)
{
	double begin = t->now;

	figures(t);
	t->now += t->data * exp(0.2 * normal(t));
	add(t, of_process(t, ANALYSIS_DATA, 0), begin, t->now);
	for (uint32_t call = 0; call < t->calls; call++)
		for (uint32_t i = 0; i < t->operators_n; i++)
			run_operator(t, i);
	run_collective(t);
	begin = t->now;
	t->now = MAX(t->now, t->device_free) + 1e-5;
	add(t, of_process(t, ANALYSIS_SYNC, t->sync), begin, t->now);
	if (uniform(t, 0, 1) < 0.01) {
		begin = t->now;
		t->now += uniform(t, 0.01, 0.1);
		add(t, of_process(t, ANALYSIS_GC, 0), begin, t->now);
	}
	if (step % 1000 == 999)
		t->now += uniform(t, 1, 5); /* a checkpoint */
}

/* ---- a trial ---- */

static uint32_t text(struct trial *t, const char *name)
{
	uint32_t number = 0;

	analysis_text(t->analysis, name, &number);
	return number;
}

static void make_operators(struct trial *t)
{
	t->operators_n = (uint32_t)uniform(t, 3, OPERATORS_MAX);
	t->calls = (uint32_t)uniform(t, 1, 4);
	for (uint32_t i = 0; i < t->operators_n; i++) {
		struct operator_made *o = &t->operators[i];
		char name[32];

		snprintf(name, sizeof(name), "aten::operator_%" PRIu32, i);
		*o = (struct operator_made){ .name = text(t, name),
					     .median = log_uniform(t, 1e-5, 1e-3),
					     .spread = uniform(t, 0.03, 0.25),
					     .kernel = log_uniform(t, 5e-5, 2e-3),
					     .bytes = UINT64_C(1) << (unsigned)uniform(t, 10, 26) };
		if (uniform(t, 0, 1) < 0.4) {
			o->slow_share = uniform(t, 0.05, 0.5);
			o->slow_median = o->median * uniform(t, 2, 10);
		}
	}
}

static void make_episodes(struct trial *t)
{
	double begin = t->now + SETTLES;

	for (unsigned i = 0; i < EPISODES; i++) {
		struct episode *e = &t->episodes[i];
		double slow;

		*e = (struct episode){ .begin = INFINITY, .end = INFINITY };
		if (t->trouble == QUIET)
			continue;

		e->begin = begin + uniform(t, 0, 30);
		e->end = e->begin + uniform(t, 30, 120);
		e->which = (uint32_t)uniform(t, 0, t->operators_n);
		e->factor = uniform(t, 1.5, t->trouble == CLOCKS ? 3 : 6);
		/* Slower than all of what it does usually: else nobody could say that it is wrong. */
		slow = t->operators[e->which].slow_share > 0 ?
			       t->operators[e->which].slow_median / t->operators[e->which].median :
			       1;
		if (t->trouble == LATENCY)
			e->factor *= slow;
		begin = e->end + BETWEEN;
	}
}

static bool is_step(const struct trial *t, const struct analysis_finding *finding,
		    enum analysis_step_part part)
{
	return finding->rule == FINDING_STEP_SLOWER &&
	       STRV_EQ(analysis_text_get(t->analysis, finding->subject), analysis_step_part_name(part));
}

/* What is wrong in the episode, by its own name: what follows from it is not. */
static bool is_right(const struct trial *t, const struct episode *e, const struct analysis_finding *finding)
{
	bool latency =
		finding->rule == FINDING_LATENCY_OUTLIERS || finding->rule == FINDING_LATENCY_IN_CONTEXT;

	switch (t->trouble) {
	case LATENCY:
		return latency && finding->subject == t->operators[e->which].name;
	case CLOCKS:
		return finding->rule == FINDING_CLOCKS_THROTTLED && finding->subject == t->thermal;
	case LINKS:
		return (latency && finding->subject == t->reduce) ||
		       is_step(t, finding, ANALYSIS_STEP_COLLECTIVES);
	default:
		return false;
	}
}

/* The episode that a time belongs to. */
static struct episode *episode_of(struct trial *t, double seconds)
{
	for (unsigned i = 0; i < EPISODES; i++)
		if (seconds >= t->episodes[i].begin && seconds < t->episodes[i].end + AFTER)
			return &t->episodes[i];
	return NULL;
}

static void score_symptom(struct trial *t, const struct analysis_finding *findings, uint32_t n,
			  const struct analysis_finding *symptom, struct score *score)
{
	score->symptoms++;
	for (uint32_t i = 0; i < n; i++) {
		struct episode *e = episode_of(t, (double)findings[i].told_ns / SECOND);

		if (findings[i].number == symptom->cause)
			score->rightly += e && is_right(t, e, &findings[i]);
	}
}

static void score_findings(struct trial *t, struct score *score)
{
	uint32_t n;
	const struct analysis_finding *findings = analysis_findings(t->analysis, &n);

	for (uint32_t i = 0; i < n; i++) {
		double told = (double)findings[i].told_ns / SECOND;
		struct episode *e = episode_of(t, told);

		if (findings[i].cause != 0) {
			score_symptom(t, findings, n, &findings[i], score);
			continue;
		}
		score->findings++;
		score->within += e != NULL;
		if (!e || !is_right(t, e, &findings[i]))
			continue;
		score->right++;
		if (!e->found || told < e->found_s)
			e->found_s = told;
		e->found = true;
	}
	for (unsigned i = 0; i < EPISODES && t->trouble != QUIET; i++) {
		const struct episode *e = &t->episodes[i];

		score->episodes++;
		if (e->found && score->found < DELAYS_MAX)
			score->delays[score->found++] = e->found_s - e->begin;
	}
}

/* ---- a rank that is lost ---- */

enum { RANKS_MAX = 8, FIRST_PID = 5000 };

static void enqueue(struct trial *t, uint32_t rank, uint64_t sequence, double when)
{
	struct analysis_event event = of_process(t, ANALYSIS_COLLECTIVE, t->reduce);

	event.pid = event.tid = FIRST_PID + rank;
	event.bytes = 100 << 20;
	event.count = 25 << 20;
	event.datatype = 7;
	event.communicator = 77;
	event.ranks = t->ranks;
	event.rank = (int32_t)rank;
	event.sequence = sequence;
	add(t, event, when, when + 2e-5);
}

/* Each rank enqueues once in a step; @lost does not, RANKS_MAX: all do. */
static void run_ranks(struct trial *t, uint64_t sequence, double step, uint32_t lost)
{
	for (uint32_t rank = 0; rank < t->ranks; rank++)
		if (rank != lost)
			enqueue(t, rank, sequence, t->now + 1e-4 * (rank + uniform(t, 0, 1)));
	t->now += step * exp(0.05 * normal(t));
	if (lost == RANKS_MAX && uniform(t, 0, 1) < 0.002)
		t->now += uniform(t, 1, 20); /* a checkpoint */
}

static void score_lost(struct trial *t, struct score *score, uint32_t lost, double since)
{
	uint32_t n;
	const struct analysis_finding *findings = analysis_findings(t->analysis, &n);
	bool found = false;

	for (uint32_t i = 0; i < n; i++) {
		bool right = findings[i].rule == FINDING_HANG && findings[i].pid == FIRST_PID + lost;

		if (findings[i].cause != 0) {
			score->symptoms++;
			continue;
		}
		score->right += right;
		score->within += (double)findings[i].told_ns / SECOND >= since;
		score->findings++;
		if (right && !found && score->found < DELAYS_MAX)
			score->delays[score->found++] = (double)findings[i].told_ns / SECOND - since;
		found |= right;
	}
	score->episodes++;
}

static void run_lost(struct trial *t, struct score *score)
{
	uint64_t sequence = 1, ahead, steps = (uint64_t)uniform(t, 200, 2000);
	double step = log_uniform(t, 0.02, 1), since;
	uint32_t lost;

	t->ranks = (uint32_t)uniform(t, 2, RANKS_MAX + 1);
	lost = (uint32_t)uniform(t, 0, t->ranks);
	while (sequence <= steps)
		run_ranks(t, sequence++, step, RANKS_MAX);
	since = t->now;
	/* The others run ahead of their devices before they wait. */
	ahead = (uint64_t)uniform(t, 1, 4);
	while (ahead-- > 0)
		run_ranks(t, sequence++, step, lost);
	if (uniform(t, 0, 1) < 0.3) {
		struct analysis_event event = of_process(t, ANALYSIS_EXIT, 0);

		event.pid = FIRST_PID + lost;
		add(t, event, t->now, t->now);
	}
	for (unsigned second = 0; second < 120; second++)
		analysis_tick(t->analysis, at(t->now + second));
	score_lost(t, score, lost, since);
}

static void run_slow(struct trial *t, struct score *score)
{
	uint64_t step = 0;
	double end;

	t->data = log_uniform(t, 1e-4, 2e-3);
	t->reduce_seconds = log_uniform(t, 2e-2, 1e-1);
	t->lonely = uniform(t, 0, 0.002);
	make_operators(t);
	make_episodes(t);
	end = t->trouble == QUIET ? t->now + 1200 : t->episodes[EPISODES - 1].end + 60;
	while (t->now < end)
		run_step(t, step++);
	analysis_finish(t->analysis);
	score_findings(t, score);
}

static int run_trial(enum trouble trouble, uint64_t seed, struct score *score)
{
	/* As a reader of files has it: no model waits for its turn. */
	const struct analysis_options options = { .fits = 64 };
	struct trial t = { .random = seed, .trouble = trouble, .now = BEGIN };
	int r = analysis_new(&options, &t.analysis);

	if (r < 0)
		return r;
	t.node = text(&t, "node");
	t.device = text(&t, "GPU-0");
	t.sync = text(&t, "cudaStreamSynchronize");
	t.reduce = text(&t, "ncclAllReduce");
	t.thermal = text(&t, "sw_thermal_slowdown");
	if (trouble == LOST)
		run_lost(&t, score);
	else
		run_slow(&t, score);
	score->hours += (t.now - BEGIN) / 3600;
	score->events += analysis_counts(t.analysis)->events;
	analysis_free(t.analysis);
	return 0;
}

static int compare(const void *a, const void *b)
{
	double first = *(const double *)a, other = *(const double *)b;

	return (first > other) - (first < other);
}

int main(int argc, char **argv)
{
	static struct score score;
	unsigned trouble = 0;
	uint64_t seed, trials;
	int64_t begin_ns = clock_thread_cpu_ns();

	while (argc == 4 && trouble < TROUBLES && !STRV_EQ(argv[1], names[trouble]))
		trouble++;
	if (argc != 4 || trouble == TROUBLES) {
		fprintf(stderr, "usage: bench_analysis quiet|latency|clocks|links|lost SEED TRIALS\n");
		return 2;
	}
	seed = strtoull(argv[2], NULL, 10);
	trials = strtoull(argv[3], NULL, 10);
	for (uint64_t i = 0; i < trials; i++)
		if (run_trial((enum trouble)trouble, seed * 1000003 + i, &score) < 0)
			return 1;
	qsort(score.delays, score.found, sizeof(*score.delays), compare);
	printf("{\"episodes\": %" PRIu64 ", \"found\": %" PRIu64 ", \"findings\": %" PRIu64
	       ", \"within\": %" PRIu64 ", \"right\": %" PRIu64 ", \"symptoms\": %" PRIu64
	       ", \"rightly\": %" PRIu64 ", \"hours\": %.3f, \"delay\": %.3f, \"events\": %" PRIu64
	       ", \"cpu\": %.3f}\n",
	       score.episodes, score.found, score.findings, score.within, score.right, score.symptoms,
	       score.rightly, score.hours, score.found > 0 ? score.delays[score.found / 2] : 0, score.events,
	       (double)(clock_thread_cpu_ns() - begin_ns) / SECOND);
	return 0;
}
