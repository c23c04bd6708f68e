// SPDX-License-Identifier: Apache-2.0
#include "push/remote_write.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/hashmap.h"
#include "base/macro.h"
#include "push/points.h"
#include "push/post.h"
#include "push/remote_write_pack.h"

#define METADATA_NS (60 * NSEC_PER_SEC) /* as often as Prometheus sends them */

struct remote_write {
	char labels[sizeof(((struct push_settings *)NULL)->labels)];
	uint32_t samples_max;
	bool version_2, whole_histograms;
	struct points known; /* of the page before */
	int64_t last_ns; /* of that one */
	int64_t metadata_ns; /* monotonic clock; 0: never */
	uint32_t families; /* that had series then */
};

static double stale_nan(void)
{
	const uint64_t bits = STALE_NAN_BITS;
	double value;

	memcpy(&value, &bits, sizeof(value));
	return value;
}

/* ---- what has ended ---- */

static uint64_t point_key(const struct points *points, const struct point *point)
{
	return hash_bytes_secret(point_labels(points, point), point->bytes);
}

/* Adds a stale marker of each of @known that is not among the first @n of @points. */
static int add_ended(struct points *points, const struct points *known)
{
	struct hashmap now = { 0 };
	int r = hashmap_init(&now, points->n);

	for (uint32_t i = 0; i < points->n && r == 0; i++)
		r = hashmap_put(&now, point_key(points, &points->list[i]), 0);
	for (uint32_t i = 0; i < known->n && r == 0; i++) {
		uint32_t there;

		if (!hashmap_get(&now, point_key(known, &known->list[i]), &there))
			points_add_ended(points, known, &known->list[i], stale_nan());
	}
	hashmap_done(&now);
	return r < 0 || points->failed || points->text.failed ? -ENOMEM : 0;
}

/* ---- batches ---- */

static uint32_t shown_families(const struct samples *samples)
{
	uint32_t n = 0;

	for (uint32_t i = 0; samples && i < samples->n[PAGE_FAMILIES]; i++)
		n += samples->families[i].n > 0;
	return n;
}

/* From time to time, and when there are other families than before. */
static bool metadata_is_due(struct remote_write *rw, const struct samples *samples)
{
	uint32_t families = shown_families(samples);
	int64_t now_ns = clock_mono_ns();

	if (rw->metadata_ns && families == rw->families && now_ns - rw->metadata_ns < METADATA_NS)
		return false;
	rw->metadata_ns = now_ns;
	rw->families = families;
	return true;
}

static int pack_all(struct remote_write *rw, const struct remote_write_page *page, struct batches *batches)
{
	uint32_t all = page->points->n;
	int r = 0;

	for (uint32_t first = 0; first < all && r == 0; first += rw->samples_max) {
		uint32_t n = MIN(all - first, rw->samples_max);
		struct batch batch = { 0 };

		if (rw->version_2)
			r = remote_write_pack_2(page, first, n, &batch);
		else
			r = remote_write_pack_1(page, first, n,
						first == 0 && metadata_is_due(rw, page->samples), &batch);
		if (r == 0)
			r = batches_add(batches, &batch);
	}
	return r;
}

/* The points of the page are known from now on, those that have ended are not. */
static void remember_alive(struct remote_write *rw, struct points *points, uint32_t alive, int64_t real_ns)
{
	points_done(&rw->known);
	rw->known = *points;
	rw->known.n = alive;
	points_init(points);
	rw->last_ns = real_ns;
}

/* -EALREADY: the clock was set back, and a server would refuse it. */
static int check_time(const struct remote_write *rw, int64_t real_ns)
{
	return real_ns / NSEC_PER_MSEC > rw->last_ns / NSEC_PER_MSEC ? 0 : -EALREADY;
}

static int make_page(void *state, const void *data, size_t n, struct batches *batches)
{
	struct remote_write *rw = state;
	const struct points_style style = { rw->labels, rw->whole_histograms };
	struct remote_write_page page;
	struct samples samples;
	struct points points;
	uint32_t alive;
	int r = samples_read(data, n, &samples);

	if (r == 0)
		r = check_time(rw, samples.real_ns);
	if (r < 0)
		return r;
	points_init(&points);
	r = points_add(&points, &samples, &style);
	alive = points.n;
	if (r == 0)
		r = add_ended(&points, &rw->known);
	page = (struct remote_write_page){ &samples, &points, samples.real_ns };
	if (r == 0)
		r = pack_all(rw, &page, batches);
	if (r == 0)
		remember_alive(rw, &points, alive, samples.real_ns);
	points_done(&points);
	return r;
}

static int make_last(void *state, int64_t real_ns, struct batches *batches)
{
	struct remote_write *rw = state;
	struct points points;
	int r;

	points_init(&points);
	r = add_ended(&points, &rw->known);
	if (r == 0)
		r = pack_all(rw,
			     &(struct remote_write_page){ NULL, &points,
							  MAX(real_ns, rw->last_ns + NSEC_PER_MSEC) },
			     batches);
	points_done(&points);
	return r;
}

/* ---- what a server takes ---- */

static int fit_batch(void *state, struct batch *batch)
{
	const struct remote_write *rw = state;
	struct batch fitting;
	int r;

	if (rw->version_2 || batch->format == REMOTE_WRITE_1)
		return 0;
	r = remote_write_convert(batch, &fitting);
	if (r < 0)
		return r;
	batch_done(batch);
	*batch = fitting;
	return 0;
}

/* A server of 1.0 may take 2.0 for an empty request, and says nothing of what it has written. */
static bool is_unfit(void *state, const struct batch *batch, const struct post_result *result)
{
	struct remote_write *rw = state;
	bool taken = result->status >= 200 && result->status < 300;

	if (batch->format != REMOTE_WRITE_2 || (result->status != 415 && !(taken && result->written < 0)))
		return false;
	rw->version_2 = false;
	return true;
}

static const char *const *headers_of(uint32_t format)
{
	static const char *const headers_1[] = { "Content-Type: application/x-protobuf",
						 "Content-Encoding: snappy",
						 "X-Prometheus-Remote-Write-Version: 0.1.0", NULL };
	static const char *const headers_2[] = {
		"Content-Type: application/x-protobuf;proto=io.prometheus.write.v2.Request",
		"Content-Encoding: snappy", "X-Prometheus-Remote-Write-Version: 2.0.0", NULL
	};

	return format == REMOTE_WRITE_2 ? headers_2 : headers_1;
}

/* ---- life ---- */

static int begin_remote_write(const struct push_settings *settings, void **ret_state)
{
	struct remote_write *rw = calloc(1, sizeof(*rw));

	if (!rw)
		return -ENOMEM;
	memcpy(rw->labels, settings->labels, sizeof(rw->labels));
	rw->samples_max = MAX(settings->samples_max, 1u);
	rw->version_2 = settings->protocol == 2;
	rw->whole_histograms = settings->native_histograms;
	points_init(&rw->known);
	*ret_state = rw;
	return 0;
}

static void end_remote_write(void *state)
{
	struct remote_write *rw = state;

	points_done(&rw->known);
	free(rw);
}

const struct push_kind remote_write_kind = {
	.name = "remote_write",
	.section = "remote_write",
	.url = "url",
	.key_header = "Authorization",
	.headers = headers_of,
	.keeps_first = true,
	.repeats_answers = true,
	.begin = begin_remote_write,
	.end = end_remote_write,
	.make = make_page,
	.finish = make_last,
	.fit = fit_batch,
	.is_unfit = is_unfit,
};
