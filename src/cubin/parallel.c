// SPDX-License-Identifier: Apache-2.0
/*
 * Several threads walk the same file, which takes them a few milliseconds, and each reads the kernels of the
 * parts that it claims: a part goes from one container to the next. Claims are taken in order, so the lowest
 * unfinished part always has a thread.
 */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>

#include "base/thread.h"
#include "cubin/private.h"

/* kernel_name_demangle(), which callbacks may well call, needs 2 MiB. */
enum { STACK_BYTES = 4 << 20 };

struct team {
	const struct cubin_source *source;
	const struct cubin_limits *limits;
	const struct cubin_parts *parts;
	unsigned threads;
	_Atomic uint64_t next; /* part to be claimed */
	atomic_int result; /* the first error */
	atomic_bool readable, found; /* something known; an image of it, or trouble */
};

struct member {
	struct team *team;
	void *userdata;
	pthread_t thread;
};

static int team_fail(struct team *team, int r)
{
	int none = 0;

	if (r < 0)
		atomic_compare_exchange_strong(&team->result, &none, r);
	return atomic_load(&team->result);
}

static int claim(struct reader *reader)
{
	reader->claim = atomic_fetch_add(&reader->team->next, 1);
	reader->troubles = 0;
	return team_fail(reader->team, reader->team->parts->begin(reader->claim, reader->userdata));
}

/* Called in every case, since others wait for it. */
static int member_end(struct reader *reader)
{
	uint64_t troubles = reader->troubles;

	if (troubles)
		atomic_store(&reader->team->found, true);
	return team_fail(reader->team,
			 reader->team->parts->end(troubles - MIN(troubles, (uint64_t)CUBIN_TROUBLES_MAX),
						  reader->userdata));
}

int team_part(struct reader *reader)
{
	int r;

	if (!reader->team)
		return 0;
	r = atomic_load(&reader->team->result);
	if (r < 0)
		return r;
	if (reader->part++ == reader->claim) {
		member_end(reader);
		r = claim(reader);
	}
	reader->passing = reader->part != reader->claim;
	return r;
}

int team_alone(struct reader *reader)
{
	return reader->team ? team_fail(reader->team, reader->team->parts->alone(reader->userdata)) : 0;
}

static void *work(void *userdata)
{
	const struct member *member = userdata;
	struct team *team = member->team;
	_cleanup_(reader_done) struct reader reader = {
		.source = team->source, .ops = team->parts->ops, .userdata = member->userdata, .team = team
	};
	const struct range all = { 0, team->source->size };
	int r;

	reader_init(&reader, team->limits, team->threads);
	r = claim(&reader);
	reader.passing = reader.claim != 0;
	if (r == 0)
		r = read_any(&reader, &all, false);
	/* All threads have counted the same; the last part reports it. */
	if (r == 0)
		reader_sum_up(&reader);
	if (r != -ENOEXEC)
		atomic_store(&team->readable, true);
	if (reader.images)
		atomic_store(&team->found, true);
	team_fail(team, r == -ENOEXEC ? 0 : r);
	member_end(&reader);
	return NULL;
}

static void team_run(struct team *team, struct member *members)
{
	unsigned n = 1;

	/* Fewer threads suffice. */
	while (n < team->threads && thread_start(STACK_BYTES, work, &members[n], &members[n].thread) == 0)
		n++;
	work(&members[0]);
	while (n > 1)
		pthread_join(members[--n].thread, NULL);
}

int cubin_read_parallel(const struct cubin_source *source, const struct cubin_limits *limits,
			const struct cubin_parts *parts, void *const *userdata, unsigned threads)
{
	struct team team = { .source = source,
			     .limits = limits,
			     .parts = parts,
			     .threads = CLAMP(threads, 1u, (unsigned)THREADS_MAX) };
	struct member members[THREADS_MAX];

	for (unsigned i = 0; i < team.threads; i++)
		members[i] = (struct member){ .team = &team, .userdata = userdata[i] };
	team_run(&team, members);
	if (team.result < 0)
		return team.result;
	if (!team.readable)
		return -ENOEXEC;
	return team.found ? 0 : -ENODATA;
}
