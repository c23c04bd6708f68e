// SPDX-License-Identifier: Apache-2.0
#include "model/server.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/macro.h"
#include "base/text.h"
#include "model/private.h"
#include "model/rounding.h"

/* Ratios are of the pages within so long, at most SERVER_MARKS_MAX. */
#define WINDOW_NS (60 * NSEC_PER_SEC)

const struct server_row server_kinds[SERVER_KINDS] = {
#define SERVER(id_, name_, port_, flag_, remedy_) [SERVER_##id_] = { name_, port_, flag_, remedy_ },
#include "model/servers.def"
#undef SERVER
};

const struct server_state_row server_states[SERVER_STATES] = {
#define SERVER_STATE(id_, name_, words_) [SERVER_STATE_##id_] = { name_, words_ },
#include "model/server_states.def"
};

static struct tracked_server *server_find(struct model *model, struct process_id id)
{
	for (uint32_t i = 0; i < model->servers.n; i++)
		if (process_id_equal(model->servers.list[i].s.id, id))
			return &model->servers.list[i];
	return NULL;
}

static void take_found(struct tracked_server *server, const struct found_server *found)
{
	server->s.id = found->id;
	server->s.uid = found->uid;
	server->s.kind = found->kind;
	server->s.port = found->port;
	server->members_n = MIN(found->members_n, (uint32_t)SERVER_MEMBERS_MAX);
	memcpy(server->members, found->members, server->members_n * sizeof(found->members[0]));
	if (found->state != SERVER_STATE_NEW) {
		server->s.state = found->state;
		server->s.error[0] = '\0';
	} else if (server->s.state > SERVER_STATE_FAILED) {
		server->s.state = SERVER_STATE_NEW;
	}
}

void model_set_servers(struct model *model, const struct found_server *list, uint32_t n, uint64_t left_out)
{
	const struct server_table before = model->servers;
	struct server_table *table = &model->servers;

	table->read = true;
	table->n = MIN(n, (uint32_t)SERVERS_MAX);
	table->left_out = left_out;
	for (uint32_t i = 0; i < table->n; i++) {
		table->list[i] = (struct tracked_server){ 0 };
		for (uint32_t k = 0; k < before.n; k++)
			if (process_id_equal(before.list[k].s.id, list[i].id) &&
			    before.list[k].s.kind == list[i].kind)
				table->list[i] = before.list[k];
		take_found(&table->list[i], &list[i]);
	}
}

/* ---- pages ---- */

/* A counter that fell has begun anew. */
static void take_figure(struct tracked_server *server, unsigned row, double now)
{
	struct inference_server *s = &server->s;
	double risen = now - server->raw[row];

	if (server_metrics[row].kind != METRIC_COUNTER || !presence_is(s->p[row]))
		s->v[row] = now;
	else
		s->v[row] += risen < 0 ? now : risen;
	s->p[row] = PRESENCE_PRESENT;
	server->raw[row] = now;
}

/* Of the sums at two pages; absent where one of them is unknown or did not grow. */
static void take_ratio(struct inference_server *s, const struct server_mark *from, enum server_metric row,
		       enum server_metric by)
{
	double tokens = s->v[SERVER_TOKENS_GENERATED] - from->v[SERVER_TOKENS_GENERATED];
	double used = s->v[by] - from->v[by];

	s->p[row] = PRESENCE_ABSENT;
	if (!presence_is(from->p[by]) || !presence_is(s->p[by]) || used <= 0 ||
	    !presence_is(from->p[SERVER_TOKENS_GENERATED]) || !presence_is(s->p[SERVER_TOKENS_GENERATED]))
		return;
	s->v[row] = tokens / used;
	s->p[row] = s->p[by];
}

static void take_ratios(struct tracked_server *server, int64_t now_ns)
{
	struct inference_server *s = &server->s;
	struct server_mark *newest;
	uint32_t first = 0;

	while (first < server->marks_n && now_ns - server->marks[first].boot_ns > WINDOW_NS)
		first++;
	/* One that is older than the window is its beginning. */
	first -= first > 0;
	if (first == 0 && server->marks_n == SERVER_MARKS_MAX)
		first = 1;
	server->marks_n -= first;
	memmove(server->marks, server->marks + first, server->marks_n * sizeof(server->marks[0]));
	if (server->marks_n > 0) {
		take_ratio(s, &server->marks[0], SERVER_TOKENS_PER_JOULE, SERVER_ENERGY);
		take_ratio(s, &server->marks[0], SERVER_TOKENS_PER_GPU_SECOND, SERVER_GPU_SECONDS);
	}
	newest = &server->marks[server->marks_n++];
	newest->boot_ns = now_ns;
	memcpy(newest->v, s->v, sizeof(s->v));
	memcpy(newest->p, s->p, sizeof(s->p));
}

void model_set_server_page(struct model *model, struct process_id id, const struct server_page *page,
			   const char *error)
{
	struct tracked_server *server = server_find(model, id);
	const int64_t now_ns = clock_boot_ns();

	if (!server)
		return;
	snprintf(server->s.error, sizeof(server->s.error), "%s", error);
	utf8_sanitize(server->s.error);
	server->s.state = page ? SERVER_STATE_READ : SERVER_STATE_FAILED;
	for (unsigned row = 0; row < SERVER_TOLD; row++) {
		if (page && presence_is(page->p[row]))
			take_figure(server, row, page->v[row]);
		else if (server_metrics[row].kind != METRIC_COUNTER)
			server->s.p[row] = PRESENCE_ABSENT;
	}
	if (!page) {
		server->s.p[SERVER_TOKENS_PER_JOULE] = PRESENCE_ABSENT;
		server->s.p[SERVER_TOKENS_PER_GPU_SECOND] = PRESENCE_ABSENT;
		server->marks_n = 0;
		return;
	}
	server->s.read_boot_ns = now_ns;
	take_ratios(server, now_ns);
}

/* ---- GPUs' time and energy ---- */

struct device_use {
	double seconds, joules; /* by which the device's sums have grown */
	bool joules_known, is_gpu;
	double busy; /* of all processes */
	uint32_t processes;
};

static bool is_member(const struct tracked_server *server, struct process_id id)
{
	for (uint32_t i = 0; i < server->members_n; i++)
		if (process_id_equal(server->members[i], id))
			return true;
	return false;
}

/* What has grown since the reading before this one. Instances have neither time nor energy of a GPU. */
static void look_at_device(struct device *device, struct device_use *ret_use)
{
	const struct entity *e = &device->e;
	struct device_growth *known = &device->server_growth;
	const double seconds = e->id.v[SLOT_OBSERVED], joules = e->id.v[SLOT_ENERGY];
	const bool has_seconds = presence_is(e->id.p[SLOT_OBSERVED]);
	const bool has_joules = presence_is(e->id.p[SLOT_ENERGY]);

	*ret_use = (struct device_use){ .is_gpu = e->id.gi == UINT32_MAX };
	if (has_seconds && known->has_seconds)
		ret_use->seconds = MAX(seconds - known->seconds, 0.0);
	if (has_joules && known->has_joules)
		ret_use->joules = MAX(joules - known->joules, 0.0);
	ret_use->joules_known = has_joules;
	*known = (struct device_growth){ seconds, joules, has_seconds, has_joules };
}

static double busy_since(struct tracked *t)
{
	double busy = MAX(t->p.v[PROCESS_BUSY] - t->counted_busy, 0.0);

	t->counted_busy = t->p.v[PROCESS_BUSY];
	return busy;
}

static void credit_row(struct inference_server *s, enum server_metric row, double grown, bool shared)
{
	s->v[row] = presence_is(s->p[row]) ? s->v[row] + grown : grown;
	s->p[row] = PRESENCE_PRESENT | (s->p[row] & PRESENCE_ESTIMATED) | (shared ? PRESENCE_ESTIMATED : 0);
}

/* Of one server, by device. */
struct server_use {
	double busy[DEVICES_MAX];
	uint32_t processes[DEVICES_MAX];
};

static void credit_device_use(struct inference_server *s, const struct device_use *use, double busy,
			      uint32_t processes)
{
	const bool shared = processes < use->processes;
	double share = 1;

	if (shared)
		share = use->busy > 0 ? busy / use->busy : (double)processes / use->processes;
	credit_row(s, SERVER_GPU_SECONDS, use->seconds * share, shared);
	credit_row(s, SERVER_ENERGY, use->joules * share, shared);
}

/* A sum that lacks the energy of one of its GPUs would be none. */
static void credit_server(struct model *model, struct inference_server *s, const struct server_use *use,
			  const struct device_use *devices)
{
	bool joules_known = true;

	for (uint32_t i = 0; i < model->devices_n; i++) {
		const uint16_t d = model->order[i];

		if (use->processes[d] == 0 || !devices[d].is_gpu)
			continue;
		credit_device_use(s, &devices[d], use->busy[d], use->processes[d]);
		joules_known &= devices[d].joules_known;
	}
	if (!joules_known) {
		s->p[SERVER_ENERGY] = PRESENCE_ABSENT;
		s->v[SERVER_ENERGY] = 0;
	}
}

static void look_at_processes(struct model *model, struct device_use *devices, struct server_use *uses)
{
	const struct server_table *table = &model->servers;

	for (uint32_t i = 0; i < model->processes_n; i++) {
		struct tracked *t = &model->processes[i];
		const double busy = busy_since(t);

		devices[t->device].busy += busy;
		devices[t->device].processes++;
		for (uint32_t k = 0; k < table->n; k++)
			if (is_member(&table->list[k], t->p.id)) {
				uses[k].busy[t->device] += busy;
				uses[k].processes[t->device]++;
			}
	}
}

void servers_count(struct model *model)
{
	struct device_use devices[DEVICES_MAX];
	struct server_table *table = &model->servers;
	struct server_use uses[SERVERS_MAX] = { 0 };

	if (!table->read)
		return;
	for (uint32_t i = 0; i < model->devices_n; i++)
		look_at_device(model->devices[model->order[i]], &devices[model->order[i]]);
	look_at_processes(model, devices, uses);
	for (uint32_t k = 0; k < table->n; k++)
		credit_server(model, &table->list[k].s, &uses[k], devices);
}

/* ---- what views see ---- */

void servers_publish(const struct server_table *table, struct servers *ret_servers)
{
	*ret_servers = (struct servers){ .read = table->read, .n = table->n, .left_out = table->left_out };
	for (uint32_t i = 0; i < table->n; i++) {
		struct inference_server *s = &ret_servers->list[i];

		*s = table->list[i].s;
		for (unsigned row = 0; row < SERVER_METRICS; row++)
			s->v[row] = metric_rounded(&server_metrics[row], s->v[row]);
	}
}
