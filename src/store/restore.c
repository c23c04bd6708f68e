// SPDX-License-Identifier: Apache-2.0
#include "store/restore.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/macro.h"
#include "store/block_private.h"

struct restored {
	struct snapshot snapshot; /* first: who frees it has a pointer to this */
	uint8_t *rows[STORE_TABLES]; /* of which the snapshot does not own any */
	char *texts; /* of all COLUMN_STRINGs */
	size_t texts_n, texts_room;
};

struct restorer {
	const struct block *block;
	const struct fields *fields;
	struct restored *to;
	uint32_t n[STORE_TABLES];
};

/* ---- rows ---- */

static bool value_is_allowed(const struct restorer *r, const struct column *column, uint64_t cell)
{
	if (column->kind == COLUMN_PRESENCE)
		return (cell & ~(uint64_t)PRESENCE_ESTIMATED) < PRESENCE_MAX;
	if (column->is_bool)
		return cell < 2;
	if (column->none && cell == column->none)
		return true;
	if (column->rows)
		return cell < r->n[column->rows - 1];
	return !column->limit || cell < column->limit;
}

/* Valid UTF-8 or not, it is what was recorded: views look at that. */
static const char *keep_text(struct restored *to, const char *text)
{
	size_t n = strlen(text) + 1;
	char *kept = to->texts + to->texts_n;

	if (n > to->texts_room - to->texts_n)
		return NULL;
	memcpy(kept, text, n);
	to->texts_n += n;
	return kept;
}

static void store_number(uint8_t *at, unsigned size, uint64_t cell)
{
	uint32_t u32 = (uint32_t)cell;
	uint16_t u16 = (uint16_t)cell;

	switch (size) {
	case 1:
		*at = (uint8_t)cell;
		break;
	case 2:
		memcpy(at, &u16, sizeof(u16));
		break;
	case 4:
		memcpy(at, &u32, sizeof(u32));
		break;
	default:
		memcpy(at, &cell, sizeof(cell));
	}
}

static bool number_fits(const struct field *field, uint64_t cell)
{
	unsigned bits = field->size * 8;

	if (bits == 64)
		return true;
	if (field->kind == COLUMN_INT)
		return (int64_t)cell >= -(INT64_C(1) << (bits - 1)) && (int64_t)cell < INT64_C(1)
											       << (bits - 1);
	return cell >> bits == 0;
}

static int store_text(const struct restorer *r, const struct field *field, uint64_t cell, uint8_t *at)
{
	const char *text = block_text(r->block, cell);
	size_t n;

	if (!text)
		return 0;
	if (field->kind == COLUMN_STRING) {
		text = keep_text(r->to, text);
		if (!text)
			return -EBADMSG;
		memcpy(at, &text, sizeof(text));
		return 0;
	}
	n = strlen(text);
	if (n >= field->size)
		return -EBADMSG;
	memcpy(at, text, n + 1);
	return 0;
}

static int store_field(const struct restorer *r, const struct field *field, uint64_t cell, uint8_t *row)
{
	if (field->kind == COLUMN_TEXT || field->kind == COLUMN_STRING)
		return store_text(r, field, cell, row + field->offset);
	if (field->kind != COLUMN_REAL &&
	    (!number_fits(field, cell) || !value_is_allowed(r, field->column, cell)))
		return -EBADMSG;
	store_number(row + field->offset, field->size, cell);
	return 0;
}

static int store_row(const struct restorer *r, enum store_table table, uint32_t i, uint8_t *row)
{
	const uint64_t *cells = block_row(r->block, table, i);
	const struct fields *fields = &r->fields[table];
	int result = 0;

	for (uint32_t f = 0; f < fields->n && result == 0; f++)
		if (cells[f] || fields->list[f].column->rows)
			result = store_field(r, &fields->list[f], cells[f], row);
	return result;
}

static int restore_table(struct restorer *r, enum store_table table)
{
	uint32_t row_bytes = store_tables[table].row_bytes;
	uint8_t *rows = calloc((size_t)r->n[table] + 1, row_bytes);
	int result = rows ? 0 : -ENOMEM;

	r->to->rows[table] = rows;
	for (uint32_t i = 0; i < r->n[table] && result == 0; i++)
		result = store_row(r, table, i, rows + (size_t)i * row_bytes);
	return result;
}

static size_t strings_of(const struct restorer *r, enum store_table table)
{
	const struct fields *fields = &r->fields[table];
	size_t n = 0;

	for (uint32_t f = 0; f < fields->n; f++)
		for (uint32_t i = 0; fields->list[f].kind == COLUMN_STRING && i < r->n[table]; i++) {
			const char *text = block_text(r->block, block_row(r->block, table, i)[f]);

			n += text ? strlen(text) + 1 : 0;
		}
	return n;
}

/* ---- the snapshot ---- */

#define ROWS(type_, table_) ((struct type_ *)(void *)r->to->rows[STORE_##table_])

/* Of a table whose rows stand beside those of another one; short of some when that was cut. */
static const struct owner *owner_beside(const struct restorer *r, enum store_table table, uint32_t i)
{
	const struct owner *owners = (const struct owner *)(const void *)r->to->rows[table];
	const struct owner *owner = i < r->n[table] ? &owners[i] : NULL;

	return owner && (owner->workload != WORKLOAD_NONE || owner->pod[0] || owner->container[0]) ? owner :
												     NULL;
}

static int restore_header(struct restorer *r)
{
	struct snapshot *s = &r->to->snapshot;

	if (r->n[STORE_NODE] != 1)
		return -EBADMSG;
	*s = *ROWS(snapshot, NODE);
	if (!store_time_is_sane(s->real_ns) || !store_time_is_sane(s->boot_ns))
		return -EBADMSG;
	for (uint32_t i = 0; i < r->n[STORE_SOURCES]; i++)
		s->sources[i] = ROWS(source, SOURCES)[i];
	return 0;
}

static int restore_entities(struct restorer *r)
{
	struct snapshot *s = &r->to->snapshot;

	s->entities = ROWS(entity, GPUS);
	s->entities_n = r->n[STORE_GPUS];
	s->slot_sources = (uint8_t(*)[GPU_SLOTS])(void *)r->to->rows[STORE_SLOT_SOURCES];
	s->slot_sources_n = r->n[STORE_SLOT_SOURCES];
	for (uint32_t i = 0; i < s->entities_n; i++) {
		struct entity *e = &s->entities[i];

		e->stamped_boot_ns = store_time_is_sane(e->stamped_boot_ns) ? e->stamped_boot_ns : 0;
		reading_check_stamps(&e->id.stamps, e->stamped_boot_ns);
		if (e->mixed > s->slot_sources_n || (e->id.parent != READING_NONE && e->id.parent >= i))
			return -EBADMSG;
	}
	return 0;
}

static int restore_workloads(struct restorer *r)
{
	struct snapshot *s = &r->to->snapshot;

	s->workloads = ROWS(workload, WORKLOADS);
	s->workloads_n = r->n[STORE_WORKLOADS];
	s->allocated = ROWS(allocated, ALLOCATED);
	s->allocated_n = r->n[STORE_ALLOCATED];
	for (uint32_t i = 0; i < s->workloads_n; i++) {
		s->workloads[i].owner = owner_beside(r, STORE_WORKLOAD_OWNERS, i);
		if (s->workloads[i].allocated > s->allocated_n)
			return -EBADMSG;
	}
	return 0;
}

static int restore_owners(struct restorer *r)
{
	uint32_t n = r->n[STORE_OWNERS];
	struct owner *list;

	if (n == 0)
		return 0;
	r->to->snapshot.owners = owners_new(n, &list);
	if (!r->to->snapshot.owners)
		return -ENOMEM;
	memcpy(list, r->to->rows[STORE_OWNERS], n * sizeof(*list));
	return 0;
}

static void restore_series(struct process *process)
{
	for (unsigned row = 0; row < PROCESS_METRICS; row++)
		if (process->series[row] == SERIES_HAVE_ALL)
			process->series[row] = process->v[row];
}

static void restore_processes(struct restorer *r)
{
	struct snapshot *s = &r->to->snapshot;

	s->jobs = ROWS(job, JOBS);
	s->jobs_n = r->n[STORE_JOBS];
	s->processes = ROWS(process, PROCESSES);
	s->processes_n = r->n[STORE_PROCESSES];
	s->exited = ROWS(process, EXITED);
	s->exited_n = r->n[STORE_EXITED];
	for (uint32_t i = 0; i < s->exited_n; i++)
		s->exited[i].traced = TRACED_NONE;
	for (uint32_t i = 0; i < s->processes_n; i++) {
		s->processes[i].traced = TRACED_NONE;
		restore_series(&s->processes[i]);
	}
	s->xids = ROWS(xid, XIDS);
	s->xids_n = r->n[STORE_XIDS];
	s->xid_events = ROWS(xid_event, XID_EVENTS);
	s->xid_events_n = r->n[STORE_XID_EVENTS];
}

/* ---- tracing ---- */

static int restore_calls(const struct restorer *r, enum store_table table, struct traced_call *to)
{
	const struct traced_call *from = (const struct traced_call *)(const void *)r->to->rows[table];

	for (uint32_t i = 0; i < r->n[table]; i++) {
		to[i] = from[i];
		if (!to[i].api || to[i].errors_n > r->n[STORE_TRACED_ERRORS] ||
		    to[i].errors_first > r->n[STORE_TRACED_ERRORS] - to[i].errors_n)
			return -EBADMSG;
	}
	return 0;
}

static int restore_kernel(const struct stored_kernel *from, struct traced_kernel *to)
{
	struct kernel kernel = { .source = (enum kernel_source)from->source,
				 .symbol = from->symbol,
				 .name = from->name,
				 .brief = from->brief,
				 .file = from->file,
				 .offset = from->offset,
				 .arch = { from->sm, from->variant },
				 .jit = from->jit };

	*to = from->launches;
	if (!from->symbol)
		return 0;
	if (!from->name || !from->brief || !from->file)
		return -EBADMSG;
	memcpy(kernel.figures, from->figures, sizeof(kernel.figures));
	return kernel_new(&kernel, &to->kernel);
}

/* Ranges of processes, by whose the rows are, which stand together. */
#define FIND_RANGE(view_, list_, n_, first_, count_)                                  \
	for (uint32_t i_ = 0; i_ < (n_); i_++) {                                      \
		struct traced_process *p_ = &(view_)->processes[(list_)[i_].process]; \
                                                                                      \
		if (p_->count_ > 0 && p_->first_ + p_->count_ != i_)                  \
			return -EBADMSG;                                              \
		p_->first_ = p_->count_ > 0 ? p_->first_ : i_;                        \
		p_->count_++;                                                         \
	}

static int find_ranges(struct trace_view *view)
{
	for (uint32_t i = 0; i < view->calls_n; i++)
		if (view->calls[i].process == UINT32_MAX)
			return -EBADMSG;
	FIND_RANGE(view, view->devices, view->devices_n, devices_first, devices_n)
	FIND_RANGE(view, view->calls, view->calls_n, calls_first, calls_n)
	FIND_RANGE(view, view->kernels, view->kernels_n, kernels_first, kernels_n)
	return 0;
}

static int fill_trace(struct restorer *r, struct trace_view *view)
{
	const struct trace_view *row = ROWS(trace_view, TRACE);
	int result;

	view->enabled = row->enabled;
	memcpy(view->why, row->why, sizeof(view->why));
	memcpy(view->backend, row->backend, sizeof(view->backend));
	view->boot_ns = row->boot_ns;
	view->left_out = row->left_out;
	view->stacks_error = row->stacks_error;
	memcpy(view->agent, row->agent, sizeof(view->agent));
	memcpy(view->agent_p, row->agent_p, sizeof(view->agent_p));
	memcpy(view->processes, r->to->rows[STORE_TRACED_PROCESSES],
	       r->n[STORE_TRACED_PROCESSES] * sizeof(*view->processes));
	view->processes_n = r->n[STORE_TRACED_PROCESSES];
	memcpy(view->devices, r->to->rows[STORE_TRACED_DEVICES],
	       r->n[STORE_TRACED_DEVICES] * sizeof(*view->devices));
	view->devices_n = r->n[STORE_TRACED_DEVICES];
	memcpy(view->errors, r->to->rows[STORE_TRACED_ERRORS],
	       r->n[STORE_TRACED_ERRORS] * sizeof(*view->errors));
	view->errors_n = r->n[STORE_TRACED_ERRORS];
	memcpy(view->totals, r->to->rows[STORE_TRACED_TOTALS],
	       r->n[STORE_TRACED_TOTALS] * sizeof(*view->totals));
	view->totals_n = r->n[STORE_TRACED_TOTALS];
	result = restore_calls(r, STORE_TRACED_CALLS, view->calls);
	view->calls_n = r->n[STORE_TRACED_CALLS];
	if (result == 0)
		result = restore_calls(r, STORE_ALL_CALLS, view->all_calls);
	view->all_calls_n = r->n[STORE_ALL_CALLS];
	while (result == 0 && view->kernels_n < r->n[STORE_KERNELS]) {
		result = restore_kernel(&ROWS(stored_kernel, KERNELS)[view->kernels_n],
					&view->kernels[view->kernels_n]);
		view->kernels_n++;
	}
	return result == 0 ? find_ranges(view) : result;
}

static bool finding_is_whole(const struct finding *f)
{
	for (uint32_t i = 0; i < f->values_n; i++)
		if (!f->values[i].name)
			return false;
	return store_time_is_sane((int64_t)f->begin_ns) && store_time_is_sane((int64_t)f->end_ns);
}

static bool rule_is_whole(const struct finding_rule *rule)
{
	return rule->name && rule->title && rule->remedy;
}

static int restore_findings(struct restorer *r, struct trace_view *view)
{
	uint32_t n = r->n[STORE_FINDINGS], rules_n = r->n[STORE_FINDING_RULES];
	const struct findings *row = ROWS(findings, ANALYSIS);
	struct findings *findings;

	if (r->n[STORE_ANALYSIS] == 0)
		return 0;
	if (row->real_offset_ns < 0 ? !store_time_is_sane(-(row->real_offset_ns + 1)) :
				      !store_time_is_sane(row->real_offset_ns))
		return -EBADMSG;
	view->findings = findings = findings_new(n, rules_n, 0, 0, NULL);
	if (!findings)
		return -ENOMEM;
	memcpy(findings->evidence, row->evidence, sizeof(findings->evidence));
	findings->real_offset_ns = row->real_offset_ns;
	findings->events = row->events;
	findings->late = row->late;
	findings->beyond = row->beyond;
	memcpy(findings->rules, r->to->rows[STORE_FINDING_RULES], rules_n * sizeof(*findings->rules));
	memcpy(findings->list, r->to->rows[STORE_FINDINGS], n * sizeof(*findings->list));
	findings->rules_n = rules_n;
	findings->n = n;
	for (uint32_t i = 0; i < rules_n; i++)
		if (!rule_is_whole(&findings->rules[i]))
			return -EBADMSG;
	for (uint32_t i = 0; i < n; i++)
		if (!finding_is_whole(&findings->list[i]))
			return -EBADMSG;
	return 0;
}

static int restore_operators(struct restorer *r, struct trace_view *view)
{
	uint32_t n = r->n[STORE_OPERATORS];

	if (n == 0)
		return 0;
	view->operators = calloc(n, sizeof(*view->operators));
	if (!view->operators)
		return -ENOMEM;
	memcpy(view->operators, r->to->rows[STORE_OPERATORS], n * sizeof(*view->operators));
	view->operators_n = n;
	return 0;
}

static int restore_process_operators(struct restorer *r, struct trace_view *view)
{
	uint32_t n = r->n[STORE_PROCESS_OPERATORS];

	view->process_operators = calloc(n + 1, sizeof(*view->process_operators));
	if (!view->process_operators)
		return -ENOMEM;
	memcpy(view->process_operators, r->to->rows[STORE_PROCESS_OPERATORS],
	       n * sizeof(*view->process_operators));
	view->process_operators_n = n;
	return 0;
}

static int restore_traced_names(struct restorer *r)
{
	struct snapshot *s = &r->to->snapshot;

	s->workload_names = ROWS(workload_name, WORKLOAD_NAMES);
	s->workload_names_n = r->n[STORE_WORKLOAD_NAMES];
	s->traced_uses = ROWS(traced_use, TRACED_USES);
	s->traced_uses_n = r->n[STORE_TRACED_USES];
	for (uint32_t i = 0; i < s->workload_names_n; i++)
		s->workload_names[i].owner = owner_beside(r, STORE_NAME_OWNERS, i);
	return 0;
}

static int restore_trace(struct restorer *r)
{
	struct snapshot *s = &r->to->snapshot;
	const uint32_t *n = r->n;
	int result;

	restore_traced_names(r);
	if (n[STORE_TRACE] == 0)
		return 0;
	if (n[STORE_TRACED_WORKLOADS] != n[STORE_TRACED_PROCESSES])
		return -EBADMSG;
	result = trace_view_new(n[STORE_TRACED_PROCESSES], n[STORE_TRACED_DEVICES], n[STORE_TRACED_CALLS],
				n[STORE_ALL_CALLS], n[STORE_TRACED_ERRORS], n[STORE_TRACED_TOTALS],
				n[STORE_KERNELS], &s->trace);
	if (result == 0)
		result = fill_trace(r, s->trace);
	if (result == 0)
		result = restore_operators(r, s->trace);
	if (result == 0)
		result = restore_process_operators(r, s->trace);
	if (result == 0)
		result = restore_findings(r, s->trace);
	if (result < 0)
		return result;
	s->traced_workloads = (uint16_t *)(void *)r->to->rows[STORE_TRACED_WORKLOADS];
	s->traced_places = calloc(n[STORE_TRACED_DEVICES] + 1, sizeof(*s->traced_places));
	if (!s->traced_places)
		return -ENOMEM;
	snapshot_join_trace(s);
	return 0;
}

static int restore(struct restorer *r)
{
	size_t strings = 0;
	int result = 0;

	for (unsigned t = 0; t < STORE_TABLES; t++) {
		r->n[t] = block_rows(r->block, t);
		strings += strings_of(r, t);
	}
	r->to->texts = malloc(strings + 1);
	r->to->texts_room = strings;
	if (!r->to->texts)
		return -ENOMEM;
	for (unsigned t = 0; t < STORE_TABLES && result == 0; t++)
		result = restore_table(r, t);
	if (result == 0)
		result = restore_header(r);
	if (result == 0)
		result = restore_entities(r);
	if (result == 0)
		result = restore_workloads(r);
	if (result == 0)
		result = restore_owners(r);
	if (result < 0)
		return result;
	restore_processes(r);
	return restore_trace(r);
}

int restore_snapshot(const struct block *block, const struct fields fields[STORE_TABLES],
		     struct snapshot **ret_snapshot)
{
	struct restorer r = { .block = block, .fields = fields, .to = calloc(1, sizeof(*r.to)) };
	int result = r.to ? restore(&r) : -ENOMEM;

	if (result < 0) {
		restored_free(r.to ? &r.to->snapshot : NULL);
		return result;
	}
	*ret_snapshot = &r.to->snapshot;
	return 0;
}

void restored_free(struct snapshot *snapshot)
{
	struct restored *restored = (struct restored *)snapshot;

	if (!snapshot)
		return;
	trace_view_unref(snapshot->trace);
	owners_unref(snapshot->owners);
	free(snapshot->traced_places);
	for (unsigned t = 0; t < STORE_TABLES; t++)
		free(restored->rows[t]);
	free(restored->texts);
	free(restored);
}
