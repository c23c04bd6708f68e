// SPDX-License-Identifier: Apache-2.0
#include "pipeline/measured.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/hashmap.h"
#include "base/row_list.h"
#include "base/saturated.h"
#include "base/user_shares.h"
#include "pipeline/work_names.h"

enum { NAMES_MAX = 1 << 14, NAMES_BYTES = 4 << 20, NAMES_TABLE = 0 };

/* A program's plugin. */
struct connection {
	uint32_t pid, uid;
	uint64_t since_boot_ns;
	uint32_t user, names_bytes; /* user: index of his share, who has these */
	bool there, on;
	uint64_t ended_ns; /* 0: it is there */
	char uuid[TRACED_UUID]; /* of the newest work, and in its own words */
	uint8_t told_uuid[16];
	uint32_t times_n;
	struct time_part times[MEASURED_TIMES]; /* that were measured: sorted, apart */
};

struct measured {
	struct measured_config config;
	struct work_sinks sinks;
	struct row_list connections; /* struct connection */
	struct hashmap by; /* by PID */
	struct work_names names;
	struct user_shares shares; /* of names' bytes */
	uint64_t dropped;
};

/* ---- connections ---- */

static struct connection *connection_at(const struct measured *m, uint32_t index)
{
	return &((struct connection *)m->connections.list)[index];
}

static struct connection *connection_find(const struct measured *m, uint32_t pid)
{
	uint32_t index;

	return hashmap_get(&m->by, pid, &index) ? connection_at(m, index) : NULL;
}

static void forget_names(struct measured *m, struct connection *c)
{
	work_names_forget(&m->names, c->pid);
	user_shares_give(&m->shares, c->user, NAMES_TABLE, c->names_bytes);
	c->names_bytes = 0;
}

static void connection_init(const struct measured *m, struct connection *c, const struct gpu_work *work)
{
	*c = (struct connection){ .pid = work->pid,
				  .uid = work->uid,
				  .since_boot_ns = work->since_boot_ns,
				  .on = m->config.expects,
				  .there = true };
}

/* NULL: no room, or a newer one of the process is there. */
static struct connection *connection_of(struct measured *m, const struct gpu_work *work)
{
	struct connection *c = connection_find(m, work->pid);

	if (c && c->since_boot_ns == work->since_boot_ns)
		return c;
	if (c && c->since_boot_ns > work->since_boot_ns)
		return NULL;
	if (c) {
		forget_names(m, c);
		connection_init(m, c, work);
		return c;
	}
	c = row_list_add(&m->connections);
	if (c && hashmap_put(&m->by, work->pid, m->connections.n - 1) < 0) {
		m->connections.n--;
		c = NULL;
	}
	if (c)
		connection_init(m, c, work);
	return c;
}

static void connection_remove(struct measured *m, uint32_t i)
{
	struct connection *c = connection_at(m, i);

	forget_names(m, c);
	hashmap_del(&m->by, c->pid);
	*c = *connection_at(m, --m->connections.n);
	if (i < m->connections.n)
		hashmap_put(&m->by, c->pid, i); /* replaces, so that it cannot fail */
}

/* What was told of it is wanted for a while after its end. */
static void forget_ended(struct measured *m, const struct gpu_times *times, uint64_t now_ns)
{
	for (uint32_t i = 0; i < m->connections.n; i++)
		connection_at(m, i)->there = false;
	for (uint32_t i = 0; i < times->n; i++) {
		struct connection *c = connection_find(m, times->rows[i].pid);

		if (c && c->since_boot_ns == times->rows[i].since_boot_ns)
			c->there |= !times->rows[i].gone;
	}
	for (uint32_t i = m->connections.n; i > 0; i--) {
		struct connection *c = connection_at(m, i - 1);

		if (c->there)
			c->ended_ns = 0;
		else if (c->ended_ns == 0)
			c->ended_ns = now_ns;
		else if (now_ns - c->ended_ns > 2 * MEASURED_LATE_NS)
			connection_remove(m, i - 1);
	}
}

/* ---- records ---- */

static void take_kernel_name(struct measured *m, struct connection *c, const struct cupti_name *name)
{
	uint32_t bytes;

	if (c->names_bytes == 0)
		c->user = user_shares_charged(&m->shares, c->uid);
	if (name->at == 0 &&
	    !user_shares_have(&m->shares, c->user, NAMES_TABLE, work_names_bytes(name))) {
		m->dropped++;
		return;
	}
	bytes = work_names_told(&m->names, c->pid, name);
	user_shares_take(&m->shares, c->user, NAMES_TABLE, bytes);
	c->names_bytes += bytes;
}

/* "" for one that the node does not have: what a program makes up names nothing. */
static const char *uuid_of(const struct measured *m, struct connection *c, const struct gpu_work *work)
{
	if (!gpu_uuid_is_known(work->uuid))
		return "";
	if (memcmp(c->told_uuid, work->uuid, sizeof(c->told_uuid)) == 0)
		return c->uuid;
	memcpy(c->told_uuid, work->uuid, sizeof(c->told_uuid));
	gpu_uuid_text(c->uuid, sizeof(c->uuid), work->uuid);
	if (!m->config.has_device || m->config.has_device(c->uuid, m->config.userdata))
		return c->uuid;
	memset(c->told_uuid, 0, sizeof(c->told_uuid));
	return "";
}

/* It follows what was told before; false: it does not. */
static bool add_time(struct connection *c, struct time_part part)
{
	struct time_part *last = c->times_n > 0 ? &c->times[c->times_n - 1] : NULL;

	if (part.end_ns <= part.begin_ns || (last && part.end_ns <= last->end_ns))
		return false;
	if (last && part.begin_ns <= last->end_ns) {
		last->end_ns = part.end_ns;
		return true;
	}
	if (c->times_n == MEASURED_TIMES)
		memmove(c->times, c->times + 1, --c->times_n * sizeof(c->times[0]));
	c->times[c->times_n++] = part;
	return true;
}

static void take_slice(struct measured *m, struct connection *c, const struct gpu_work *work)
{
	const struct cupti_slice *slice = &work->record.slice;
	const struct time_part part = { slice->start_ns, slice->end_ns };
	const char *uuid = uuid_of(m, c, work);

	c->on = slice->state == CUPTI_ON;
	if (work->missing > 0 || part.begin_ns == part.end_ns)
		return;
	if (add_time(c, part))
		work_sinks_measured(&m->sinks, c->pid, part);
	if (m->config.busy && *uuid)
		m->config.busy(c->pid, c->since_boot_ns, uuid, part, work->busy_ns, m->config.userdata);
}

static void take_work(struct measured *m, struct connection *c, const struct gpu_work *work)
{
	const struct cupti_work *w = &work->record.work;
	const struct measured_work told = {
		.tgid = c->pid,
		.uuid = uuid_of(m, c, work),
		.symbol = w->kind == CUPTI_KERNEL ?
				  work_names_symbol(&m->names, work_names_find(&m->names, c->pid, w->name)) :
				  "",
		.work = w,
	};

	work_sinks_work(&m->sinks, &told);
}

void measured_take(struct measured *m, const struct gpu_works *works, uint64_t now_ns)
{
	work_sinks_turn(&m->sinks);
	for (uint32_t i = 0; i < works->n; i++) {
		const struct gpu_work *work = &works->list[i];
		struct connection *c = connection_of(m, work);

		if (!c)
			m->dropped++;
		else if (work->record.kind == CUPTI_NAME)
			take_kernel_name(m, c, &work->record.name);
		else if (work->record.kind == CUPTI_SLICE)
			take_slice(m, c, work);
		else
			take_work(m, c, work);
	}
	if (works->times)
		forget_ended(m, works->times, now_ns);
}

/* ---- questions ---- */

bool measured_has(const struct measured *m, uint32_t pid)
{
	return m->config.expects || connection_find(m, pid);
}

bool measured_is_on(const struct measured *m, uint32_t pid)
{
	const struct connection *c = connection_find(m, pid);

	return c ? c->on : m->config.expects;
}

uint32_t measured_rest(const struct measured *m, uint32_t pid, struct time_part time,
		       struct time_part rest[static MEASURED_RESTS])
{
	const struct connection *c = connection_find(m, pid);
	uint64_t at_ns = time.begin_ns;
	uint32_t n = 0;

	for (uint32_t i = 0; c && i < c->times_n && at_ns <= time.end_ns; i++) {
		const struct time_part *measured = &c->times[i];

		if (measured->end_ns <= at_ns)
			continue;
		if (measured->begin_ns >= time.end_ns && measured->begin_ns > at_ns)
			break;
		if (measured->begin_ns > at_ns)
			rest[n++] = (struct time_part){ at_ns, measured->begin_ns };
		at_ns = measured->end_ns;
	}
	/* One of no length is a moment. */
	if (at_ns < time.end_ns || (at_ns == time.end_ns && time.begin_ns == time.end_ns))
		rest[n++] = (struct time_part){ at_ns, time.end_ns };
	return n;
}

uint64_t measured_dropped(const struct measured *m)
{
	return add_saturated(m->dropped, work_sinks_not_taken(&m->sinks));
}

struct work_sinks *measured_sinks(struct measured *m)
{
	return &m->sinks;
}

int measured_new(const struct measured_config *config, struct measured **ret_measured)
{
	struct measured *m = calloc(1, sizeof(*m));

	if (!m)
		return -ENOMEM;
	m->config = *config;
	m->connections = (struct row_list){ .size = sizeof(struct connection), .max = MEASURED_PROCESSES };
	work_names_init(&m->names, NAMES_MAX);
	m->shares.room[NAMES_TABLE] = NAMES_BYTES;
	*ret_measured = m;
	return 0;
}

void measured_free(struct measured *m)
{
	if (!m)
		return;
	row_list_done(&m->connections);
	hashmap_done(&m->by);
	work_names_done(&m->names);
	free(m);
}
