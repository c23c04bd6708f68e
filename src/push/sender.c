// SPDX-License-Identifier: Apache-2.0
#include "push/sender.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

enum {
	ATTEMPTS = 5,
	DELAY_FACTOR = 8,
};
#define FIRST_DELAY_NS (50 * NSEC_PER_MSEC)
#define JITTER 0.15
#define KEEP_NS (2 * NSEC_PER_SEC) /* unanswered for so long, a batch is kept */
#define IDLE_NS (3600 * NSEC_PER_SEC)

struct sender {
	const struct push_kind *kind;
	void *state; /* of the kind */
	struct post *post;
	struct queue *queue;
	char key[PUSH_KEY_MAX];
	bool keyless; /* it should have a key, and has none */
	struct batch batch; /* that is sent now, or next; n 0: none */
	uint64_t number; /* of it in the queue; 0: it is not there */
	struct batches next; /* of what was handed over with it, in memory alone */
	bool busy; /* a request is under way */
	bool waits; /* for the next batch to come */
	unsigned attempts;
	int64_t begun_ns, due_ns;
	int64_t not_before_ns; /* as the server wants it */
	struct sender_figures figures;
	int kept_error; /* -errno of the newest try to keep one */
	bool untold; /* error is of samples that are lost, and was not taken yet: no success hides it */
	char error[440];
};

int64_t sender_delay_ns(unsigned attempts, double random)
{
	int64_t delay_ns = FIRST_DELAY_NS;

	for (unsigned i = 1; i < attempts; i++)
		delay_ns *= DELAY_FACTOR;
	return (int64_t)((double)delay_ns * (1 + JITTER * (2 * random - 1)));
}

bool sender_is_refusal(long status)
{
	/* Of the key, the address, a proxy, the time or the rate. */
	static const long others[] = { 401, 403, 404, 407, 408, 421, 425, 429 };

	for (size_t i = 0; i < ARRAY_SIZE(others); i++)
		if (status == others[i])
			return false;
	return status >= 400 && status < 500;
}

/* Whether it is worth another attempt at once. */
static bool is_passing(long status)
{
	return status < 400 || status >= 500;
}

/* ---- the queue ---- */

static int keep(struct sender *s, const struct batch *batch, uint64_t *ret_number)
{
	int r = s->queue ? queue_add(s->queue, batch, ret_number) : -ENOENT;

	s->kept_error = r;
	s->figures.queued += r == 0;
	return r;
}

static void count_loss(struct sender *s)
{
	if (s->kept_error == -EFBIG)
		s->figures.full++;
	else
		s->figures.lost++;
}

static void keep_or_lose(struct sender *s, struct batch *batch)
{
	uint64_t number;

	if (keep(s, batch, &number) < 0)
		count_loss(s);
	batch_done(batch);
}

static void keep_next(struct sender *s)
{
	for (unsigned i = 0; i < s->next.n; i++)
		keep_or_lose(s, &s->next.list[i]);
	s->next.n = 0;
}

/* The batch under way, so that it outlives this process. If it cannot be kept it is only tried. */
static void keep_current(struct sender *s)
{
	if (s->batch.n == 0 || s->number != 0)
		return;
	if (keep(s, &s->batch, &s->number) < 0)
		return;
	queue_hold(s->queue, s->number);
	keep_next(s);
}

static void forget_current(struct sender *s)
{
	if (s->queue) {
		queue_hold(s->queue, 0);
		if (s->number)
			queue_remove(s->queue, s->number);
	}
	batch_done(&s->batch);
	s->number = 0;
	s->attempts = 0;
}

static void take_from_memory(struct sender *s)
{
	if (s->next.n == 0)
		return;
	s->batch = s->next.list[0];
	s->next.n--;
	memmove(&s->next.list[0], &s->next.list[1], s->next.n * sizeof(s->next.list[0]));
}

/* What is on the disk is older than what is in memory. */
static void take_next(struct sender *s)
{
	if (s->batch.n > 0)
		return;
	if (s->queue && queue_first(s->queue, &s->number, &s->batch) == 0)
		queue_hold(s->queue, s->number);
	else
		take_from_memory(s);
	s->attempts = 0;
	s->due_ns = 0;
}

static bool may_send(const struct sender *s)
{
	return !s->keyless;
}

/* @alone: nothing from before waits, so what cannot be kept is at least tried. */
static void put_batch(struct sender *s, struct batch *batch, bool alone)
{
	/* One behind what is in memory alone would come before it. */
	bool goes_to_disk = s->next.n == 0 && (s->batch.n > 0 || s->kind->keeps_first || !may_send(s));
	uint64_t number;

	if (goes_to_disk && keep(s, batch, &number) == 0) {
		batch_done(batch);
	} else if (alone) {
		(void)batches_add(&s->next, batch);
	} else {
		count_loss(s);
		batch_done(batch);
	}
	take_next(s);
}

void sender_put(struct sender *s, struct batches *batches)
{
	bool alone;

	s->waits = false;
	if (s->number == 0)
		keep_current(s);
	keep_next(s);
	take_next(s);
	alone = s->batch.n == 0;
	for (unsigned i = 0; i < batches->n; i++)
		put_batch(s, &batches->list[i], alone);
	batches->n = 0;
}

/* ---- requests ---- */

/* A batch of a former process, or from before the server has refused its form. */
static bool is_fit(struct sender *s)
{
	if (!s->kind->fit || s->kind->fit(s->state, &s->batch) == 0)
		return true;
	s->figures.lost++;
	forget_current(s);
	return false;
}

static void begin_request(struct sender *s, int64_t now_ns)
{
	if (!is_fit(s))
		return;
	if (post_begin(s->post, s->key, &s->batch) < 0) {
		s->due_ns = now_ns + NSEC_PER_SEC;
		return;
	}
	s->busy = true;
	s->begun_ns = now_ns;
	s->attempts++;
}

/* After the last attempt of several, or one that says that there need be no other. */
static void wait_for_next(struct sender *s)
{
	s->waits = true;
	s->attempts = 0;
	if (s->number == 0) {
		count_loss(s);
		forget_current(s);
		keep_next(s);
	}
}

/* Counts what the server has not taken of the batch, and says it. */
static void count_partial(struct sender *s, const struct post_result *result)
{
	uint64_t refused = MIN(result->refused, (uint64_t)s->batch.samples);

	if (result->written >= 0 && result->written < (int64_t)s->batch.samples)
		refused = s->batch.samples - (uint64_t)result->written;
	if (refused == 0)
		return;
	s->figures.refused_samples += refused;
	s->untold = true;
	snprintf(s->error, sizeof(s->error), "the server has refused %" PRIu64 " of %u samples%s%.300s",
		 refused, s->batch.samples, *result->words ? ": " : "", result->words);
}

/* The batch is done with; a server of remote write 2.0 may have written a part of it. */
static void take_refusal(struct sender *s, const struct post_result *result)
{
	s->figures.refused++;
	if (result->written > 0) {
		count_partial(s, result);
	} else {
		s->figures.refused_samples += s->batch.samples;
		s->untold = true;
		snprintf(s->error, sizeof(s->error), "%s: the batch is dropped", result->words);
	}
	forget_current(s);
}

static void take_failure(struct sender *s, const struct post_result *result, int64_t now_ns)
{
	s->figures.failures[result->failure]++;
	s->figures.outcome = PUSH_FAILS;
	snprintf(s->error, sizeof(s->error), "%s", result->words);
	if (sender_is_refusal(result->status)) {
		take_refusal(s, result);
		return;
	}
	keep_current(s);
	if (result->retry_after_ns > 0)
		s->not_before_ns = now_ns + result->retry_after_ns;
	if (!is_passing(result->status) || s->attempts >= ATTEMPTS)
		wait_for_next(s);
	else
		s->due_ns = MAX(now_ns + sender_delay_ns(s->attempts, drand48()), s->not_before_ns);
}

static void take_result(struct sender *s, const struct post_result *result, int64_t now_ns)
{
	s->busy = false;
	if (s->kind->is_unfit && s->kind->is_unfit(s->state, &s->batch, result)) {
		s->due_ns = now_ns;
		return;
	}
	if (result->status < 200 || result->status >= 300) {
		take_failure(s, result, now_ns);
		return;
	}
	s->figures.sent++;
	s->figures.outcome = PUSH_OK;
	if (!s->untold)
		s->error[0] = '\0';
	count_partial(s, result);
	forget_current(s);
}

static bool may_begin(const struct sender *s, int64_t now_ns)
{
	return !s->busy && !s->waits && may_send(s) && s->batch.n > 0 &&
	       now_ns >= MAX(s->due_ns, s->not_before_ns);
}

bool sender_is_busy(const struct sender *s)
{
	return s->busy || (!s->waits && may_send(s) && s->batch.n > 0);
}

static int64_t next_step_ns(const struct sender *s, int64_t now_ns)
{
	if (s->busy)
		return s->number ? now_ns + NSEC_PER_SEC : MAX(s->begun_ns + KEEP_NS, now_ns + NSEC_PER_MSEC);
	if (!sender_is_busy(s))
		return now_ns + IDLE_NS;
	return MAX(MAX(s->due_ns, s->not_before_ns), now_ns);
}

int64_t sender_step(struct sender *s, int64_t now_ns)
{
	struct post_result result;

	if (s->busy && post_step(s->post, &result))
		take_result(s, &result, now_ns);
	if (!s->busy && !s->waits && may_send(s))
		take_next(s);
	if (may_begin(s, now_ns)) {
		begin_request(s, now_ns);
		if (s->busy && post_step(s->post, &result))
			take_result(s, &result, now_ns);
	}
	/* A request that has ended at once: there may be more to send. */
	if (!s->busy && !s->waits && may_send(s))
		take_next(s);
	if (s->busy && now_ns - s->begun_ns >= KEEP_NS && s->number == 0 && s->kept_error == 0)
		keep_current(s);
	return next_step_ns(s, now_ns);
}

/* ---- life ---- */

void sender_set_key(struct sender *s, const char *key, bool waits)
{
	s->keyless = waits;
	/* What is known of another key counts no more. */
	if (!STRV_EQ(s->key, key))
		s->waits = false;
	snprintf(s->key, sizeof(s->key), "%s", key);
}

void sender_take_figures(struct sender *s, struct sender_figures *ret_figures)
{
	*ret_figures = s->figures;
	ret_figures->error = s->error;
	s->untold = false;
	s->figures = (struct sender_figures){ .outcome = s->figures.outcome };
}

int sender_new(const struct push_kind *kind, void *state, struct post *post, struct queue *queue,
	       struct sender **ret_sender)
{
	struct sender *s = calloc(1, sizeof(*s));

	if (!s)
		return -ENOMEM;
	s->kind = kind;
	s->state = state;
	s->post = post;
	s->queue = queue;
	/* Whatever differs between nodes: it only keeps them from coming at the same time. */
	srand48(clock_real_ns());
	*ret_sender = s;
	return 0;
}

void sender_free(struct sender *s)
{
	if (!s)
		return;
	batch_done(&s->batch);
	batches_done(&s->next);
	explicit_bzero(s->key, sizeof(s->key));
	free(s);
}
