// SPDX-License-Identifier: Apache-2.0
#include "store/frame.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/macro.h"
#include "config.h"

struct frame_header {
	char version[32];
	uint32_t n[STORE_TABLES];
	uint32_t row_bytes[STORE_TABLES];
	uint32_t texts_n;
	uint32_t pad;
};
_Static_assert(sizeof(struct frame_header) % 8 == 0, "rows follow");

/* A row begins where any of its members may. */
static size_t padded(size_t n)
{
	return (n + 7) / 8 * 8;
}

struct writer {
	const struct snapshot *s;
	struct strbuf *out;
	struct strbuf texts;
	struct frame_header header;
	uint64_t left_out;
};

/* ---- texts ---- */

/* A pointer becomes the offset of its text plus 1; NULL stays 0. */
static uint64_t put_text(struct writer *w, const char *text)
{
	uint64_t at = w->texts.len;

	if (!text)
		return 0;
	strbuf_add(&w->texts, text, strlen(text) + 1);
	return at + 1;
}

static void put_string(struct writer *w, const char **string)
{
	uint64_t offset = put_text(w, *string);

	memcpy(string, &offset, sizeof(offset));
}
_Static_assert(sizeof(char *) == sizeof(uint64_t), "an offset stands in a pointer's place");

/* ---- tables ---- */

static uint32_t begin_table(struct writer *w, enum store_table table, uint32_t n)
{
	uint32_t kept = MIN(n, store_tables[table].rows_max);

	w->left_out += n - kept;
	w->header.n[table] = kept;
	w->header.row_bytes[table] = store_tables[table].row_bytes;
	return kept;
}

static void end_table(struct writer *w, size_t bytes)
{
	static const char zero[8];

	strbuf_add(w->out, zero, padded(bytes) - bytes);
}

static void put_table(struct writer *w, enum store_table table, const void *rows, uint32_t n)
{
	size_t bytes = (size_t)begin_table(w, table, n) * store_tables[table].row_bytes;

	if (bytes > 0)
		strbuf_add(w->out, rows, bytes);
	end_table(w, bytes);
}

static void put_processes(struct writer *w)
{
	uint32_t n = begin_table(w, STORE_PROCESSES, w->s->processes_n);

	for (uint32_t i = 0; i < n; i++) {
		struct process process = w->s->processes[i];

		for (unsigned row = 0; row < PROCESS_METRICS; row++)
			if (process.series[row] == process.v[row] && process.v[row] != 0)
				process.series[row] = SERIES_HAVE_ALL;
		strbuf_add(w->out, &process, sizeof(process));
	}
	end_table(w, n * sizeof(struct process));
}

static void put_exited(struct writer *w, struct frame_mark *mark)
{
	const struct snapshot *s = w->s;
	uint32_t first = 0;

	while (first < s->exited_n && s->exited[first].exit_seq <= mark->exit_seq)
		first++;
	/* After a restart of the agent they are counted from 1 again. */
	if (s->exited_n > 0 && s->exited[s->exited_n - 1].exit_seq < mark->exit_seq)
		first = 0;
	put_table(w, STORE_EXITED, &s->exited[first], s->exited_n - first);
	if (s->exited_n > 0)
		mark->exit_seq = s->exited[s->exited_n - 1].exit_seq;
}

static void put_owner(struct writer *w, const struct owner *owner)
{
	static const struct owner none;

	strbuf_add(w->out, owner ? owner : &none, sizeof(none));
}

static void put_workload_owners(struct writer *w)
{
	uint32_t n = begin_table(w, STORE_WORKLOAD_OWNERS, w->s->workloads_n);

	for (uint32_t i = 0; i < n; i++)
		put_owner(w, w->s->workloads[i].owner);
	end_table(w, n * sizeof(struct owner));
}

static void put_name_owners(struct writer *w)
{
	uint32_t n = begin_table(w, STORE_NAME_OWNERS, w->s->workload_names_n);

	for (uint32_t i = 0; i < n; i++)
		put_owner(w, w->s->workload_names[i].owner);
	end_table(w, n * sizeof(struct owner));
}

static void put_calls(struct writer *w, enum store_table table, const struct traced_call *calls, uint32_t n)
{
	n = begin_table(w, table, n);
	for (uint32_t i = 0; i < n; i++) {
		struct traced_call call = calls[i];

		put_string(w, &call.api);
		put_string(w, &call.layer);
		put_string(w, &call.library);
		call.arguments_first = call.arguments_n = 0;
		strbuf_add(w->out, &call, sizeof(call));
	}
	end_table(w, n * sizeof(*calls));
}

static void put_errors(struct writer *w, const struct trace_view *view)
{
	uint32_t n = begin_table(w, STORE_TRACED_ERRORS, view->errors_n);

	for (uint32_t i = 0; i < n; i++) {
		struct traced_error error = view->errors[i];

		put_string(w, &error.words);
		strbuf_add(w->out, &error, sizeof(error));
	}
	end_table(w, n * sizeof(struct traced_error));
}

static void put_kernel(struct writer *w, const struct traced_kernel *launches)
{
	const struct kernel *kernel = launches->kernel;
	struct stored_kernel row;

	memset(&row, 0, sizeof(row));
	row.launches = *launches;
	row.launches.kernel = NULL;
	if (kernel) {
		row.symbol = kernel->symbol;
		row.name = kernel->name;
		row.brief = kernel->brief;
		row.file = kernel->file;
		row.offset = kernel->offset;
		row.source = kernel->source;
		row.sm = kernel->arch.sm;
		row.variant = kernel->arch.variant;
		row.jit = kernel->jit;
		memcpy(row.figures, kernel->figures, sizeof(row.figures));
	}
	put_string(w, &row.symbol);
	put_string(w, &row.name);
	put_string(w, &row.brief);
	put_string(w, &row.file);
	strbuf_add(w->out, &row, sizeof(row));
}

static int by_seconds(const void *a, const void *b)
{
	const struct traced_kernel *const *x = a, *const *y = b;

	if ((*x)->all.seconds != (*y)->all.seconds)
		return (*x)->all.seconds > (*y)->all.seconds ? -1 : 1;
	return *x < *y ? -1 : *x > *y;
}

static int by_view_place(const void *a, const void *b)
{
	const struct traced_kernel *const *x = a, *const *y = b;

	return *x < *y ? -1 : *x > *y;
}

/* Those with most time, in the view's order. */
static int put_kernels(struct writer *w, const struct trace_view *view)
{
	_cleanup_free_ const struct traced_kernel **list = calloc(view->kernels_n + 1, sizeof(*list));
	uint32_t n = begin_table(w, STORE_KERNELS, view->kernels_n);

	if (!list)
		return -ENOMEM;
	for (uint32_t i = 0; i < view->kernels_n; i++)
		list[i] = &view->kernels[i];
	if (n < view->kernels_n)
		qsort(list, view->kernels_n, sizeof(*list), by_seconds);
	qsort(list, n, sizeof(*list), by_view_place);
	for (uint32_t i = 0; i < n; i++)
		put_kernel(w, list[i]);
	end_table(w, n * sizeof(struct stored_kernel));
	return 0;
}

/* Of the traced process with this PID, the newest that had it; SIZE_MAX: none. */
static size_t traced_index(const struct trace_view *view, uint32_t pid)
{
	uint32_t at = trace_view_find(view, view->processes_n, pid), found = UINT32_MAX;

	for (; at < view->processes_n && view->processes[at].id.pid == pid; at++)
		found = at;
	return found == UINT32_MAX ? SIZE_MAX : found;
}

static uint32_t process_operators(const struct trace_view *view)
{
	uint32_t n = 0;

	for (uint32_t i = 0; view->torch && i < view->torch->processes_n; i++)
		if (traced_index(view, view->torch->processes[i].pid) != SIZE_MAX)
			n += view->torch->processes[i].operators_n;
	return n;
}

static void put_process_operators(struct writer *w, const struct trace_view *view)
{
	uint32_t n = begin_table(w, STORE_PROCESS_OPERATORS, process_operators(view)), put = 0;

	for (uint32_t i = 0; put < n; i++) {
		const struct torch_process *p = &view->torch->processes[i];
		size_t process = traced_index(view, p->pid);

		for (uint32_t k = 0; process != SIZE_MAX && put < n && k < p->operators_n; k++, put++) {
			const struct process_operator row = {
				.process = (uint32_t)process,
				.op = view->torch->operators[p->operators_first + k],
			};

			strbuf_add(w->out, &row, sizeof(row));
		}
	}
	end_table(w, n * sizeof(struct process_operator));
}

static int put_trace(struct writer *w)
{
	const struct trace_view *view = w->s->trace;

	if (!view)
		return 0;
	put_table(w, STORE_TRACE, view, 1);
	put_table(w, STORE_TRACED_PROCESSES, view->processes, view->processes_n);
	put_table(w, STORE_TRACED_DEVICES, view->devices, view->devices_n);
	put_calls(w, STORE_TRACED_CALLS, view->calls, view->calls_n);
	put_calls(w, STORE_ALL_CALLS, view->all_calls, view->all_calls_n);
	put_errors(w, view);
	put_table(w, STORE_TRACED_TOTALS, view->totals, view->totals_n);
	if (put_kernels(w, view) < 0)
		return -ENOMEM;
	put_table(w, STORE_OPERATORS, view->operators, view->operators_n);
	put_process_operators(w, view);
	put_table(w, STORE_TRACED_WORKLOADS, w->s->traced_workloads, view->processes_n);
	return 0;
}

static void put_analysis(struct writer *w, const struct findings *findings)
{
	struct findings row = *findings;

	begin_table(w, STORE_ANALYSIS, 1);
	row.list = NULL;
	row.rules = NULL;
	row.frames = NULL;
	for (unsigned i = 0; i < FINDING_EVIDENCE; i++)
		put_string(w, &row.evidence[i]);
	strbuf_add(w->out, &row, sizeof(row));
	end_table(w, sizeof(row));
}

static void put_finding_rules(struct writer *w, const struct findings *findings)
{
	uint32_t n = begin_table(w, STORE_FINDING_RULES, findings->rules_n);

	for (uint32_t i = 0; i < n; i++) {
		struct finding_rule rule = findings->rules[i];

		put_string(w, &rule.name);
		put_string(w, &rule.title);
		put_string(w, &rule.remedy);
		strbuf_add(w->out, &rule, sizeof(rule));
	}
	end_table(w, n * sizeof(struct finding_rule));
}

static void put_findings(struct writer *w, const struct findings *findings)
{
	uint32_t n = begin_table(w, STORE_FINDINGS, findings->n);

	for (uint32_t i = 0; i < n; i++) {
		struct finding finding = findings->list[i];

		finding.frames_at = finding.frames_n = 0;
		for (uint32_t k = 0; k < FINDING_VALUES; k++)
			put_string(w, &finding.values[k].name);
		strbuf_add(w->out, &finding, sizeof(finding));
	}
	end_table(w, n * sizeof(struct finding));
}

static int put_slow(struct writer *w)
{
	uint32_t n;
	const struct owner *owners = owners_list(w->s->owners, &n);

	put_table(w, STORE_OWNERS, owners, n);
	if (put_trace(w) < 0)
		return -ENOMEM;
	put_table(w, STORE_WORKLOAD_NAMES, w->s->workload_names, w->s->workload_names_n);
	put_name_owners(w);
	put_table(w, STORE_TRACED_USES, w->s->traced_uses, w->s->traced_uses_n);
	if (w->s->trace && w->s->trace->findings) {
		put_analysis(w, w->s->trace->findings);
		put_finding_rules(w, w->s->trace->findings);
		put_findings(w, w->s->trace->findings);
	}
	return 0;
}

static void put_fast(struct writer *w, struct frame_mark *mark)
{
	const struct snapshot *s = w->s;

	put_table(w, STORE_NODE, s, 1);
	put_table(w, STORE_SOURCES, s->sources, SOURCES);
	put_table(w, STORE_GPUS, s->entities, s->entities_n);
	put_processes(w);
	put_exited(w, mark);
	put_table(w, STORE_WORKLOADS, s->workloads, s->workloads_n);
	put_workload_owners(w);
	put_table(w, STORE_ALLOCATED, s->allocated, s->allocated_n);
	put_table(w, STORE_JOBS, s->jobs, s->jobs_n);
	put_table(w, STORE_XIDS, s->xids, s->xids_n);
	put_table(w, STORE_XID_EVENTS, s->xid_events, s->xid_events_n);
	put_table(w, STORE_SLOT_SOURCES, s->slot_sources, s->slot_sources_n);
}

static int write_frame(struct writer *w, bool slow, struct frame_mark *mark)
{
	size_t start = w->out->len;
	int r = 0;

	strcpy(w->header.version, GPUSONDE_VERSION);
	strbuf_add(w->out, &w->header, sizeof(w->header));
	put_fast(w, mark);
	if (slow)
		r = put_slow(w);
	for (unsigned t = STORE_SLOW; !slow && t < STORE_TABLES; t++)
		w->header.n[t] = FRAME_UNCHANGED;
	strbuf_addc(&w->texts, '\0');
	w->header.texts_n = (uint32_t)w->texts.len;
	strbuf_add(w->out, w->texts.data, w->texts.len);
	if (r < 0 || w->texts.failed || w->out->failed)
		return -ENOMEM;
	memcpy(w->out->data + start, &w->header, sizeof(w->header));
	return 0;
}

int frame_write(const struct snapshot *snapshot, bool slow, struct frame_mark *mark, struct strbuf *out,
		uint64_t *ret_left_out)
{
	struct writer w = { .s = snapshot, .out = out };
	int r;

	strbuf_init(&w.texts, FRAME_BYTES_MAX / 2);
	r = write_frame(&w, slow, mark);
	strbuf_done(&w.texts);
	if (r == 0)
		*ret_left_out = w.left_out;
	return r;
}

/* ---- reading ---- */

static int read_tables(const struct frame_header *header, const uint8_t *at, size_t left, struct frame *frame)
{
	for (unsigned t = 0; t < STORE_TABLES; t++) {
		size_t bytes;

		frame->n[t] = header->n[t];
		frame->rows[t] = at;
		if (header->n[t] == 0 || header->n[t] == FRAME_UNCHANGED)
			continue;
		if (header->n[t] > store_tables[t].rows_max ||
		    header->row_bytes[t] != store_tables[t].row_bytes)
			return -EBADMSG;
		bytes = padded((size_t)header->n[t] * header->row_bytes[t]);
		if (bytes > left)
			return -EBADMSG;
		at += bytes;
		left -= bytes;
	}
	if (header->texts_n == 0 || header->texts_n != left || at[left - 1] != '\0')
		return -EBADMSG;
	frame->texts = (const char *)at;
	frame->texts_n = header->texts_n;
	return 0;
}

int frame_read(const void *data, size_t n, struct frame *ret_frame)
{
	struct frame_header header;

	if (n < sizeof(header))
		return -EBADMSG;
	memcpy(&header, data, sizeof(header));
	if (!memchr(header.version, '\0', sizeof(header.version)))
		return -EBADMSG;
	if (!STRV_EQ(header.version, GPUSONDE_VERSION))
		return -EPROTONOSUPPORT;
	return read_tables(&header, (const uint8_t *)data + sizeof(header), n - sizeof(header), ret_frame);
}

const char *frame_string(const struct frame *frame, const uint8_t *row, const struct field *field)
{
	uint64_t offset;

	memcpy(&offset, row + field->offset, sizeof(offset));
	return offset > 0 && offset <= frame->texts_n ? frame->texts + offset - 1 : NULL;
}
