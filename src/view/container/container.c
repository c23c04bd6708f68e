// SPDX-License-Identifier: Apache-2.0
#include "view/container/container.h"

#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/macro.h"
#include "view/container/go_writer.h"
#include "view/container/rows.h"
#include "view/gpu_summary.h"
#include "view/shown.h"

/* After so long without a success, or two intervals if these are longer, zxporter has no rows. */
#define ZXPORTER_STALE_NS (20 * NSEC_PER_SEC)
/* A snapshot is published every period; what is older than this is of a main loop that stands still. */
#define LOOP_STALE_NS (10 * NSEC_PER_SEC)

enum { SCHEMA_VERSION = 1 };

const char *container_state_name(enum container_state state)
{
	static const char *const names[] = {
		[CONTAINER_READY] = "ready",
		[CONTAINER_STALE] = "stale",
		[CONTAINER_NOT_READY] = "not_ready",
		[CONTAINER_DISABLED] = "disabled",
	};

	return names[state];
}

/* ---- how old the data are ---- */

struct newest {
	int64_t real_ns, boot_ns; /* 0: none */
	bool fresh;
};

static void see(struct newest *newest, int64_t real_ns, int64_t boot_ns)
{
	if (boot_ns <= newest->boot_ns)
		return;
	newest->boot_ns = boot_ns;
	newest->real_ns = real_ns;
}

static void see_sources(struct newest *newest, const struct snapshot *s)
{
	for (unsigned i = 0; i < SOURCES; i++)
		if (source_rows[i].kind == SOURCE_DEVICES && s->sources[i].fresh_ns != 0)
			see(newest, s->sources[i].fresh_real_ns, s->sources[i].fresh_ns);
	/* Known to have no GPU, which no reading says. */
	if (s->fresh && newest->boot_ns == 0)
		see(newest, s->real_ns, s->boot_ns);
	newest->fresh |= s->fresh;
}

static void see_scraped(struct newest *newest, const struct snapshot *s)
{
	for (uint32_t i = 0; s->scraped && i < s->scraped->n; i++) {
		const struct scraped_row *row = &s->scraped->rows[i];

		see(newest, row->real_ns, row->boot_ns);
		newest->fresh |= !scraped_is_stale(s->scraped, row, s->boot_ns);
	}
}

struct container_status container_status(const struct snapshot *s, int64_t now_boot_ns)
{
	struct newest newest = { 0 };
	struct container_status status = { .state = CONTAINER_STALE };

	see_sources(&newest, s);
	see_scraped(&newest, s);
	if (newest.boot_ns == 0)
		return (struct container_status){ .state = CONTAINER_NOT_READY };
	if (newest.fresh && now_boot_ns - s->boot_ns <= LOOP_STALE_NS + 3 * s->period_ns)
		status.state = CONTAINER_READY;
	status.real_ns = newest.real_ns;
	status.age_seconds = (double)MAX(now_boot_ns - newest.boot_ns, INT64_C(0)) / NSEC_PER_SEC;
	return status;
}

/* ---- rows ---- */

static void add_omitted(struct go_writer *w, const char *name, const char *text)
{
	if (text[0])
		go_text(w, name, text);
}

static void add_row_object(struct go_writer *w, const struct container_row *row, bool absent_null, bool more)
{
	static const char *const scopes[] = {
		[ROW_DEVICE] = "device", [ROW_OWN] = "own", [ROW_REST] = "rest"
	};

	go_open(w, NULL, '{');
	go_text(w, "node_name", row->node);
	go_text(w, "model_name", row->model);
	go_text(w, "device", row->device);
	go_text(w, "device_id", row->gpu);
	go_text(w, "device_uuid", row->uuid);
	add_omitted(w, "mig_profile", row->mig_profile);
	add_omitted(w, "mig_instance_id", row->mig_instance);
	go_text(w, "pod", row->pod);
	go_text(w, "container", row->container);
	go_text(w, "namespace", row->namespace);
	add_omitted(w, "workload_name", row->owner_name);
	add_omitted(w, "workload_kind", row->owner_kind);
	for (unsigned m = 0; m < CONTRACT_METRICS; m++) {
		if (absent_null && !container_row_has(row, m))
			go_null(w, contract_rows[m].member);
		else
			go_number(w, contract_rows[m].member, row->v[m]);
	}
	go_time(w, "timestamp", row->real_ns);
	if (more) {
		go_text(w, "scope", scopes[row->scope]);
		go_name(w, "stale");
		strbuf_adds(w->out, row->stale ? "true" : "false");
	}
	go_close(w, '}');
}

static void add_row_array(struct go_writer *w, const char *name, const struct container_rows *rows,
			  unsigned flags, int64_t oldest_boot_ns)
{
	uint32_t n;
	const struct container_row *list = container_rows_list(rows, &n);

	go_open(w, name, '[');
	for (uint32_t i = 0; i < n; i++)
		if (list[i].boot_ns >= oldest_boot_ns)
			add_row_object(w, &list[i], flags & CONTAINER_ABSENT_NULL, name != NULL);
	go_close(w, ']');
}

static int64_t zxporter_stale_ns(const struct snapshot *s)
{
	int64_t scraped_ns = s->scraped ? s->scraped->stale_after_ns : 0;

	return MAX(MAX(ZXPORTER_STALE_NS, 2 * s->period_ns), scraped_ns);
}

int view_container_metrics(const struct snapshot *snapshot, unsigned flags, int64_t now_boot_ns,
			   struct strbuf *out)
{
	struct go_writer w = { .out = out };
	struct container_rows *rows;
	int r = container_rows_new(snapshot, &rows);

	if (r < 0)
		return r;
	add_row_array(&w, NULL, rows, flags,
		      flags & CONTAINER_ZXPORTER ? now_boot_ns - zxporter_stale_ns(snapshot) : INT64_MIN);
	container_rows_free(rows);
	return out->failed ? -ENOMEM : 0;
}

/* ---- sections ---- */

static void add_section(struct go_writer *w, const char *name, enum container_state state, int64_t real_ns)
{
	go_open(w, name, '{');
	go_text(w, "state", container_state_name(state));
	if (real_ns > 0)
		go_time(w, "collected_at", real_ns);
	go_close(w, '}');
}

static enum container_state source_section(const struct source *source)
{
	if (!source->in_use)
		return CONTAINER_DISABLED;
	if (source->fresh)
		return CONTAINER_READY;
	return source->fresh_ns ? CONTAINER_STALE : CONTAINER_NOT_READY;
}

/* What was asked for, what this agent does not read, and what the first is made of. */
static void add_sections(struct go_writer *w, const struct snapshot *s, const char *name,
			 const struct container_status *status, const char *disabled)
{
	go_open(w, "sections", '{');
	add_section(w, name, status->state, status->real_ns);
	add_section(w, disabled, CONTAINER_DISABLED, 0);
	for (unsigned i = 0; i < SOURCES; i++)
		if (source_rows[i].kind != SOURCE_EVENTS)
			add_section(w, source_rows[i].name, source_section(&s->sources[i]),
				    s->sources[i].fresh_real_ns);
	go_close(w, '}');
}

int view_container_snapshot(const struct snapshot *snapshot, int64_t now_boot_ns, struct strbuf *out)
{
	struct container_status status = container_status(snapshot, now_boot_ns);
	struct go_writer w = { .out = out };
	struct container_rows *rows;
	int r = container_rows_new(snapshot, &rows);

	if (r < 0)
		return r;
	go_open(&w, NULL, '{');
	go_number(&w, "schema_version", SCHEMA_VERSION);
	if (status.state != CONTAINER_NOT_READY)
		add_row_array(&w, "container_metrics", rows, CONTAINER_ABSENT_NULL, INT64_MIN);
	add_sections(&w, snapshot, "containers", &status, "runtime");
	go_close(&w, '}');
	container_rows_free(rows);
	return out->failed ? -ENOMEM : 0;
}

/* ---- the node ---- */

static int add_summary(struct go_writer *w, const struct snapshot *snapshot)
{
	struct container_rows *rows;
	int r = container_rows_new(snapshot, &rows);

	if (r < 0)
		return r;
	r = gpu_summary_add(w, rows);
	container_rows_free(rows);
	return r;
}

int view_node_metrics(const struct snapshot *snapshot, int64_t now_boot_ns, struct strbuf *out)
{
	struct container_status status = container_status(snapshot, now_boot_ns);
	struct go_writer w = { .out = out };
	int r = 0;

	go_open(&w, NULL, '{');
	go_text(&w, "node_name", snapshot_node_name(snapshot));
	go_text(&w, "state", container_state_name(status.state));
	if (status.state != CONTAINER_NOT_READY) {
		go_time(&w, "timestamp", status.real_ns);
		r = add_summary(&w, snapshot);
	}
	go_close(&w, '}');
	return r == 0 && out->failed ? -ENOMEM : r;
}

int view_node_snapshot(const struct snapshot *snapshot, int64_t now_boot_ns, struct strbuf *out)
{
	struct container_status status = container_status(snapshot, now_boot_ns);
	struct go_writer w = { .out = out };
	int r = 0;

	go_open(&w, NULL, '{');
	go_number(&w, "schema_version", SCHEMA_VERSION);
	if (status.state != CONTAINER_NOT_READY) {
		go_open(&w, "gpu_summary", '{');
		r = add_summary(&w, snapshot);
		go_close(&w, '}');
	}
	add_sections(&w, snapshot, "gpu", &status, "node");
	go_close(&w, '}');
	return r == 0 && out->failed ? -ENOMEM : r;
}
