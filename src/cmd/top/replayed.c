// SPDX-License-Identifier: Apache-2.0
#include "cmd/top/replayed.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "cmd/cmd.h"
#include "cmd/recording/arguments.h"
#include "store/walk.h"
#include "view/findings.h"
#include "view/view.h"

#define GAP_NS (90 * NSEC_PER_SEC)

struct replayed {
	struct store_reader *reader;
	char *path;
	double speed;
	int64_t at_ns; /* where it plays, real time */
	int64_t shown_ns; /* the newest sample's */
};

/* ---- samples ---- */

static void put_page(const struct snapshot *snapshot, enum page page, struct sample *sample)
{
	static const unsigned sections[PAGES] = {
		[PAGE_TRACE] = JSON_TRACE, [PAGE_KERNELS] = JSON_KERNELS, [PAGE_EVENTS] = JSON_EVENTS
	};
	const struct findings *findings = snapshot->trace ? snapshot->trace->findings : NULL;
	struct strbuf text;
	int r = -ENOENT;

	strbuf_init(&text, 0);
	if (sections[page])
		r = view_json_text(snapshot, sections[page], &text);
	else if (page == PAGE_FINDINGS && findings)
		r = json_findings(findings, &text);
	if (r == 0)
		sample->pages[page] = json_loadb(text.data, text.len, 0, NULL);
	strbuf_done(&text);
}

/* Takes @snapshot over. */
static int make_sample(struct replayed *replayed, struct snapshot *snapshot, struct sample **ret_sample)
{
	struct sample *sample = NULL;
	struct strbuf text;
	int r;

	strbuf_init(&text, 0);
	r = view_json_text(snapshot, JSON_GPUS | JSON_PROCESSES | JSON_NODE, &text);
	if (r == 0)
		r = sample_of_text(text.data, text.len, &sample);
	strbuf_done(&text);
	if (r == 0) {
		for (unsigned page = PAGE_NODE + 1; page < PAGES; page++)
			put_page(snapshot, (enum page)page, sample);
		sample->real_ns = replayed->shown_ns = snapshot->real_ns;
		sample->mono_ns = snapshot->boot_ns;
		snprintf(sample->note, sizeof(sample->note), "REPLAY of %.200s", replayed->path);
		*ret_sample = sample;
	}
	restored_free(snapshot);
	return r;
}

/* ---- moments ---- */

/* The first one after what was shown. */
static int next_of(struct replayed *replayed, struct snapshot **ret_snapshot)
{
	int64_t since_ns = replayed->shown_ns + 1;
	struct store_walk walk;
	int r;

	store_walk_begin(&walk, replayed->reader, store_best_tier(replayed->reader, since_ns), since_ns,
			 INT64_MAX);
	r = store_walk_next(&walk, ret_snapshot);
	return r == 0 ? -ENOENT : MIN(r, 0);
}

int replayed_moment(struct replayed *replayed, int64_t real_ns, struct sample **ret_sample)
{
	struct snapshot *snapshot, *next;
	int r;

	/* Documents tell times to the millisecond: this is the whole one. */
	real_ns = MIN(real_ns, INT64_MAX - NSEC_PER_MSEC) / NSEC_PER_MSEC * NSEC_PER_MSEC + NSEC_PER_MSEC - 1;
	r = store_moment(replayed->reader, real_ns, &snapshot);

	if (r < 0)
		return r;
	if (snapshot->real_ns == replayed->shown_ns && real_ns - replayed->shown_ns >= NSEC_PER_MSEC &&
	    next_of(replayed, &next) == 0) {
		restored_free(snapshot);
		snapshot = next;
	}
	replayed->at_ns = snapshot->real_ns;
	return make_sample(replayed, snapshot, ret_sample);
}

int replayed_advance(struct replayed *replayed, int64_t ns, struct sample **ret_sample)
{
	struct snapshot *snapshot, *next;
	int64_t at_ns = replayed->at_ns + (int64_t)((double)ns * replayed->speed);
	int r = next_of(replayed, &next);

	if (r < 0)
		return r == -ENOENT ? 0 : r;
	if (next->real_ns > at_ns && next->real_ns - replayed->shown_ns <= GAP_NS) {
		replayed->at_ns = at_ns;
		restored_free(next);
		return 0;
	}
	replayed->at_ns = MAX(at_ns, next->real_ns);
	/* Of several that are due by now the last one. */
	if (store_moment(replayed->reader, at_ns, &snapshot) == 0) {
		bool later = snapshot->real_ns > next->real_ns;

		restored_free(later ? next : snapshot);
		next = later ? snapshot : next;
	}
	r = make_sample(replayed, next, ret_sample);
	return r < 0 ? r : 1;
}

const char *replayed_error(const struct replayed *replayed, int error)
{
	const char *said = store_reader_error(replayed->reader);

	return error == -ENOENT ? "nothing earlier is recorded" : *said ? said : strerror(-error);
}

/* ---- life ---- */

/* -ENOENT: nothing of that time is recorded. */
static int begin_replay(struct replayed *replayed, int64_t at_ns, double speed)
{
	int64_t first_ns, last_ns;

	if (!store_whole_span(replayed->reader, &first_ns, &last_ns) || at_ns < first_ns)
		return -ENOENT;
	replayed->at_ns = at_ns < INT64_MAX ? at_ns : speed > 0 ? first_ns : last_ns;
	replayed->shown_ns = replayed->at_ns - 1;
	replayed->speed = speed > 0 ? speed : 1;
	return 0;
}

int replayed_open(const char *path, int64_t at_ns, double speed, struct replayed **ret_replayed)
{
	_cleanup_(replayed_freep) struct replayed *replayed = calloc(1, sizeof(*replayed));
	char why[300] = "out of memory";
	int r;

	if (replayed)
		replayed->path = strdup(path);
	if (!replayed || !replayed->path ||
	    store_reader_open(path, &replayed->reader, why, sizeof(why)) < 0) {
		fprintf(stderr, "gpusonde top: %s: %s\n", path, why);
		return EXIT_FAILURE;
	}
	r = begin_replay(replayed, at_ns, speed);
	if (r < 0)
		return replay_report("top", replayed->reader, path, r);
	*ret_replayed = TAKE_PTR(replayed);
	return EXIT_SUCCESS;
}

void replayed_free(struct replayed *replayed)
{
	if (!replayed)
		return;
	store_reader_free(replayed->reader);
	free(replayed->path);
	free(replayed);
}
