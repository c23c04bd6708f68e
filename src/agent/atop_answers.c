// SPDX-License-Identifier: Apache-2.0
#include "agent/atop_answers.h"

#include <string.h>

#include "view/view.h"

_Static_assert((int)ATOP_ANSWER_MAX == (int)ATOP_TEXT_MAX, "view and server must agree on atop's limit");

static int answer_types(unsigned version, struct strbuf *out, void *userdata)
{
	struct atop_answers *a = userdata;
	struct snapshot *snapshot = collector_snapshot(a->collector);
	int r = view_atop_types(snapshot, version, out);

	snapshot_unref(snapshot);
	return r;
}

static int answer_stats(unsigned version, uint64_t exit_seq, struct strbuf *out, uint64_t *ret_exit_seq,
			void *userdata)
{
	struct atop_answers *a = userdata;
	struct snapshot *snapshot = collector_snapshot(a->collector);
	unsigned truncated = 0;
	int r = 0;

	if (a->cached.seq != snapshot->seq || a->cached.version != version ||
	    a->cached.exit_seq != exit_seq) {
		strbuf_reset(&a->cached.text);
		r = view_atop_stats(snapshot, version, exit_seq, &a->cached.text, &a->cached.next_exit_seq,
				    &truncated);
		a->cached.seq = r < 0 ? 0 : snapshot->seq;
		a->cached.version = version;
		a->cached.exit_seq = exit_seq;
		a->truncated += truncated > 0;
	}
	snapshot_unref(snapshot);
	if (r < 0)
		return r;
	strbuf_add(out, a->cached.text.data, a->cached.text.len);
	*ret_exit_seq = a->cached.next_exit_seq;
	return 0;
}

uint64_t atop_newest_exit(const struct snapshot *snapshot)
{
	return snapshot->exited_n ? snapshot->exited[snapshot->exited_n - 1].exit_seq : 0;
}

static uint64_t newest_exit(void *userdata)
{
	struct atop_answers *a = userdata;
	struct snapshot *snapshot = collector_snapshot(a->collector);
	uint64_t seq = atop_newest_exit(snapshot);

	snapshot_unref(snapshot);
	return seq;
}

static uint64_t layout(void *userdata)
{
	struct atop_answers *a = userdata;
	struct snapshot *snapshot = collector_snapshot(a->collector);
	uint64_t value = view_atop_layout(snapshot);

	snapshot_unref(snapshot);
	return value;
}

const struct atop_source atop_answers = { answer_types, answer_stats, layout, newest_exit };

void atop_answers_init(struct atop_answers *answers, struct collector *collector)
{
	memset(answers, 0, sizeof(*answers));
	answers->collector = collector;
	strbuf_init(&answers->cached.text, ATOP_ANSWER_MAX);
}

void atop_answers_done(struct atop_answers *answers)
{
	strbuf_done(&answers->cached.text);
}
