// SPDX-License-Identifier: Apache-2.0
#include "cmd/trace/stacks.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/hashmap.h"
#include "base/text.h"
#include "python/find.h"
#include "trace/probe.h"

enum { PROCESS_NAME = TRACE_COMM + 16 };
/* Text of a larger one would be more than memory may hold; the protobuf says each name once. */
#define FILE_MAX ((size_t)1 << 30)

struct process {
	uint32_t tgid;
	bool over;
	char comm[TRACE_COMM];
	double busy_s; /* on all devices, estimated, as of the last window */
	double launched; /* in the window */
};

/* A path of a process that ends in one function of CUDA. */
struct row {
	uint32_t path, process;
	uint32_t call;
	uint32_t pad; /* 0: the first three numbers and this are the key */
	double weights[STACK_WEIGHTS];
	double launched, launched_before; /* in the window, in the last one in which the process launched */
};

struct held {
	uint64_t addr, size;
	uint32_t tgid; /* 0: unused */
	uint32_t row;
	double factor; /* of the sample */
};

struct trace_stacks {
	struct event_sink sink;
	struct python_stacks *python;
	struct trace_engine *engine; /* NULL: trace_stacks_mapped() is enough */
	struct process *processes;
	uint32_t processes_n, processes_cap;
	struct hashmap process_by; /* by tgid: of those that run */
	struct row *rows;
	uint32_t rows_n, rows_cap;
	struct hashmap row_by;
	struct held *held;
	uint32_t held_n, held_cap, held_free; /* held_free: one plus the first of a list, linked by .row */
	struct hashmap held_by;
	uint64_t lost_events, lost_rows, lost_held;
	uint64_t unknown_python; /* processes whose interpreter is of a version that is not known */
	uint32_t unknown_version;
	uint64_t unreturned; /* calls of which only the entry was probed */
	uint64_t frameless; /* events whose stack could not be told */
	uint64_t given_up; /* events whose stack was not taken, for the budget */
	bool sampled;
	bool has_gpu_time; /* a window was told */
	int64_t begin_ns;
	struct strbuf said;
};

/* ---- processes and rows ---- */

static int stacks_grow(void **array, uint32_t *cap, uint32_t n, uint32_t max, size_t size)
{
	uint32_t wanted = *cap ? 2 * *cap : 64;
	void *grown;

	if (n < *cap)
		return 0;
	if (n >= max)
		return -ENOBUFS;
	grown = reallocarray(*array, wanted, size);
	if (!grown)
		return -ENOMEM;
	*array = grown;
	*cap = wanted;
	return 0;
}

static int process_get(struct trace_stacks *s, uint32_t tgid, uint32_t *ret_process)
{
	int r;

	if (hashmap_get(&s->process_by, tgid, ret_process))
		return 0;
	r = stacks_grow((void **)&s->processes, &s->processes_cap, s->processes_n, TRACE_STACK_PROCESSES,
			sizeof(*s->processes));
	if (r == 0)
		r = hashmap_put(&s->process_by, tgid, s->processes_n);
	if (r < 0)
		return r;
	s->processes[s->processes_n] = (struct process){ .tgid = tgid };
	*ret_process = s->processes_n++;
	return 0;
}

static int row_get(struct trace_stacks *s, const struct trace_header *event, uint32_t *ret_row)
{
	struct row new = { .path = python_stacks_path(s->python, event), .call = event->call };
	int r = process_get(s, event->tgid, &new.process);
	uint64_t key;

	if (r < 0)
		return r;
	key = hash_bytes_secret(&new, offsetof(struct row, weights));
	if (hashmap_get(&s->row_by, key, ret_row) &&
	    memcmp(&s->rows[*ret_row], &new, offsetof(struct row, weights)) == 0)
		return 0;
	r = stacks_grow((void **)&s->rows, &s->rows_cap, s->rows_n, TRACE_STACK_ROWS, sizeof(*s->rows));
	if (r == 0)
		r = hashmap_put(&s->row_by, key, s->rows_n);
	if (r < 0)
		return r;
	s->rows[s->rows_n] = new;
	*ret_row = s->rows_n++;
	return 0;
}

/* ---- memory ---- */

static uint64_t held_key(uint32_t tgid, uint64_t addr)
{
	const uint64_t id[] = { tgid, addr };

	return hash_bytes_secret(id, sizeof(id));
}

/* Not freed by the program, as far as is seen: its row keeps the bytes if @keep. */
static void held_drop(struct trace_stacks *s, uint32_t index, bool keep)
{
	struct held *held = &s->held[index];

	if (!keep)
		s->rows[held->row].weights[STACK_BYTES_HELD] -= (double)held->size * held->factor;
	hashmap_del(&s->held_by, held_key(held->tgid, held->addr));
	*held = (struct held){ .row = s->held_free };
	s->held_free = index + 1;
}

static void on_free(struct trace_stacks *s, const struct trace_call *event)
{
	uint32_t index;

	if (hashmap_get(&s->held_by, held_key(event->header.tgid, event->addr), &index) &&
	    s->held[index].tgid == event->header.tgid && s->held[index].addr == event->addr)
		held_drop(s, index, false);
}

static int on_alloc(struct trace_stacks *s, const struct trace_call *event, uint32_t row, double factor)
{
	uint32_t index;
	int r = 0;

	on_free(s, event); /* its free was not seen */
	if (s->held_free) {
		index = s->held_free - 1;
	} else {
		r = stacks_grow((void **)&s->held, &s->held_cap, s->held_n, TRACE_STACK_HELD,
				sizeof(*s->held));
		index = s->held_n;
	}
	if (r == 0)
		r = hashmap_put(&s->held_by, held_key(event->header.tgid, event->addr), index);
	if (r < 0) {
		s->lost_held++;
		return r;
	}
	if (s->held_free)
		s->held_free = s->held[index].row;
	else
		s->held_n++;
	s->held[index] = (struct held){ event->addr, event->size, event->header.tgid, row, factor };
	s->rows[row].weights[STACK_BYTES_HELD] += (double)event->size * factor;
	return 0;
}

/* ---- events ---- */

static bool is_wait(uint8_t op)
{
	return op == TRACE_OP_SYNC_STREAM || op == TRACE_OP_SYNC_EVENT || op == TRACE_OP_SYNC_CONTEXT ||
	       op == TRACE_OP_SYNC_DEVICE;
}

static void add_launch(struct row *row, double factor)
{
	row->weights[STACK_LAUNCHES] += factor;
	row->launched += factor;
}

static int add_call(struct trace_stacks *s, const struct trace_call *event, uint32_t row, double factor)
{
	bool moved = !(event->header.flags & TRACE_FLAG_NO_RESULT) && event->result == 0;
	double *weights = s->rows[row].weights;
	uint8_t op = event->header.op;

	s->unreturned +=
		event->header.flags & TRACE_FLAG_NO_RESULT &&
		(is_wait(op) || op == TRACE_OP_COPY || op == TRACE_OP_SET || op == TRACE_OP_ALLOC);
	if (is_wait(op))
		weights[STACK_SYNC_WAIT] += (double)event->duration_ns * factor;
	else if ((op == TRACE_OP_COPY || op == TRACE_OP_SET) && moved)
		weights[STACK_BYTES_COPIED] += (double)event->size * factor;
	else if (op == TRACE_OP_GRAPH_LAUNCH && event->result == 0)
		add_launch(&s->rows[row], factor);
	else if (op == TRACE_OP_ALLOC && moved)
		return on_alloc(s, event, row, factor);
	return 0;
}

static int add_event(struct trace_stacks *s, const struct trace_header *event)
{
	unsigned shift = event->flags >> TRACE_FLAG_SAMPLED_SHIFT & TRACE_FLAG_SAMPLED_BITS;
	uint32_t row;
	int r;

	/* Others have no stack, and cost nothing that is shown. */
	if (event->stack == TRACE_STACK_OFF)
		return 0;
	s->sampled |= shift > 0;
	if (event->stack == TRACE_STACK_SKIPPED)
		return 0;
	r = row_get(s, event, &row);
	if (r < 0) {
		s->lost_rows++;
		return r;
	}
	s->given_up += event->stack == TRACE_STACK_GIVEN_UP;
	s->frameless += event->stack == TRACE_STACK_LOST || event->stack == TRACE_STACK_AMBIGUOUS ||
			event->stack == TRACE_STACK_UNREAD || s->rows[row].path == PYTHON_PATH_UNKNOWN ||
			s->rows[row].path == PYTHON_PATH_MORE;
	if (event->type == TRACE_EVENT_CALL)
		return add_call(s, (const struct trace_call *)event, row, (double)(1U << shift));
	if (((const struct trace_launch *)event)->result == 0)
		add_launch(&s->rows[row], (double)(1U << shift));
	return 0;
}

static void process_over(struct trace_stacks *s, uint32_t tgid)
{
	uint32_t process;

	if (!hashmap_get(&s->process_by, tgid, &process))
		return;
	hashmap_del(&s->process_by, tgid);
	s->processes[process].over = true;
	for (uint32_t i = 0; i < s->held_n; i++)
		if (s->held[i].tgid == tgid)
			held_drop(s, i, true);
}

static int stacks_event(const struct trace_header *event, uint32_t size, void *userdata)
{
	struct trace_stacks *s = userdata;
	uint32_t process;
	int r = python_stacks_event(s->python, event, size);

	switch (event->type) {
	case TRACE_EVENT_PROCESS:
		if (s->engine)
			trace_stacks_mapped(s, s->engine, (pid_t)event->tgid);
		r = process_get(s, event->tgid, &process);
		if (r == 0)
			memcpy(s->processes[process].comm, ((const struct trace_process *)event)->comm,
			       TRACE_COMM);
		break;
	case TRACE_EVENT_EXEC:
	case TRACE_EVENT_EXIT:
		process_over(s, event->tgid);
		break;
	case TRACE_EVENT_CALL:
		if (event->op == TRACE_OP_FREE &&
		    (event->flags & TRACE_FLAG_NO_RESULT || ((const struct trace_call *)event)->result == 0))
			on_free(s, (const struct trace_call *)event);
		/* fallthrough */
	case TRACE_EVENT_LAUNCH:
		r = add_event(s, event);
		break;
	}
	return r;
}

static void stacks_lost(uint64_t events, void *userdata)
{
	((struct trace_stacks *)userdata)->lost_events += events;
}

void trace_stacks_set_engine(struct trace_stacks *s, struct trace_engine *engine)
{
	s->engine = engine;
}

struct event_sink *trace_stacks_sink(struct trace_stacks *s)
{
	return &s->sink;
}

void trace_stacks_mapped(struct trace_stacks *s, struct trace_engine *engine, pid_t pid)
{
	struct trace_python python;
	uint32_t version = 0;
	int r = python_find("/proc", pid, &version, &python);

	if (r == 0)
		r = trace_engine_set_python(engine, pid, &python);
	if (r < 0 && r != -ENOENT && r != -ESRCH) {
		s->unknown_python++;
		s->unknown_version = version;
	}
}

/* ---- estimated time ---- */

/* The newest one with this PID; NULL: none launched anything. */
static struct process *process_of(const struct trace_stacks *s, uint32_t tgid, bool over)
{
	for (uint32_t i = s->processes_n; i > 0; i--)
		if (s->processes[i - 1].tgid == tgid && s->processes[i - 1].over == over)
			return &s->processes[i - 1];
	return over ? process_of(s, tgid, false) : NULL; /* its end may be in the next events */
}

static double busy_of(const struct trace_view *view, const struct traced_process *process)
{
	double seconds = 0;

	for (uint32_t i = 0; i < process->devices_n; i++) {
		const struct traced_device *device = &view->devices[process->devices_first + i];

		if (device->p[TRACED_BUSY_ESTIMATED] != PRESENCE_ABSENT)
			seconds += device->v[TRACED_BUSY_ESTIMATED];
	}
	return seconds;
}

/* Splits what a process's time has grown by among what it launched in the window, else in the one before. */
static void share_time(struct trace_stacks *s, uint32_t process, double ns)
{
	double launched = s->processes[process].launched, of = 0;

	for (uint32_t i = 0; i < s->rows_n; i++) {
		struct row *row = &s->rows[i];

		if (row->process != process)
			continue;
		if (launched > 0) {
			row->launched_before = row->launched;
			row->launched = 0;
		}
		of += row->launched_before;
	}
	for (uint32_t i = 0; of > 0 && i < s->rows_n; i++)
		if (s->rows[i].process == process)
			s->rows[i].weights[STACK_GPU_TIME] += ns * s->rows[i].launched_before / of;
	s->processes[process].launched = 0;
}

void trace_stacks_window(struct trace_stacks *s, const struct trace_view *view)
{
	s->has_gpu_time = true;
	for (uint32_t i = 0; i < s->rows_n; i++)
		s->processes[s->rows[i].process].launched += s->rows[i].launched;
	for (uint32_t i = 0; i < view->processes_n; i++) {
		struct process *process = process_of(s, (uint32_t)view->processes[i].id.pid,
						     view->processes[i].exited);
		double busy_s = busy_of(view, &view->processes[i]);

		if (!process || busy_s <= process->busy_s)
			continue;
		share_time(s, (uint32_t)(process - s->processes), (busy_s - process->busy_s) * NSEC_PER_SEC);
		process->busy_s = busy_s;
	}
	for (uint32_t i = 0; i < s->processes_n; i++)
		s->processes[i].launched = 0;
}

/* ---- writing ---- */

bool trace_stacks_format(const char *path, enum trace_stacks_format *ret_format)
{
	static const struct {
		const char *end;
		enum trace_stacks_format format;
	} ends[] = {
		{ ".folded", TRACE_STACKS_FOLDED },
		{ ".pb.gz", TRACE_STACKS_PPROF },
		{ ".html", TRACE_STACKS_HTML },
	};
	size_t n = strlen(path);

	for (size_t i = 0; i < ARRAY_SIZE(ends); i++) {
		size_t end = strlen(ends[i].end);

		if (n > end && strcmp(path + n - end, ends[i].end) == 0) {
			*ret_format = ends[i].format;
			return true;
		}
	}
	return false;
}

static void stacks_say(struct trace_stacks *s, const char *before, uint64_t n, const char *after)
{
	if (n > 0)
		strbuf_addf(&s->said, "%s%s%" PRIu64 "%s", s->said.len > 0 ? "; " : "", before, n, after);
}

static void stacks_say_missing(struct trace_stacks *s)
{
	strbuf_reset(&s->said);
	stacks_say(s, "", s->lost_events, " events were lost");
	stacks_say(s, "the stacks of ", s->frameless, " calls could not be told");
	stacks_say(s, "the stacks of ", s->given_up, " calls were not taken, for trace.max_overhead");
	stacks_say(s, "the bytes and waits of ", s->unreturned, " calls are not known: no return probe");
	stacks_say(s, "", s->lost_rows, " calls are left out: there are too many stacks");
	stacks_say(s, "", s->lost_held, " allocations are left out: too many are held");
	stacks_say(s, "", python_stacks_lost(s->python), " functions or stacks did not fit");
	stacks_say(s, "the Python of ", s->unknown_python, " processes is not known");
	if (s->unknown_version)
		strbuf_addf(&s->said, " (3.%u)", s->unknown_version >> 16 & 0xff);
}

struct made {
	struct stack_place *places;
	struct stack_row *rows;
	char (*names)[PROCESS_NAME];
};

static void made_done(struct made *made)
{
	free(made->places);
	free(made->rows);
	free(made->names);
}

/* The places of all paths: python_stacks has no count of them, so they are copied as they are met. */
static int make_places(const struct trace_stacks *s, struct stack_place **ret_places)
{
	uint32_t most = 0, n;
	struct stack_place *places;

	for (uint32_t path = 0; path < python_stacks_paths(s->python); path++) {
		const uint32_t *of = python_stacks_places(s->python, path, &n);

		for (uint32_t i = 0; i < n; i++)
			most = MAX(most, of[i]);
	}
	places = calloc(most + 1, sizeof(*places));
	if (!places)
		return -ENOMEM;
	for (uint32_t i = 0; i <= most; i++) {
		const struct python_place *place = python_stacks_place(s->python, i);

		places[i] = (struct stack_place){
			.name = python_stacks_text(s->python, place->name),
			.file = python_stacks_text(s->python, place->file),
			.line = place->line,
			.first_line = place->first_line,
		};
	}
	*ret_places = places;
	return 0;
}

/* A process's user chooses its name. */
static void name_process(const struct process *process, char name[static PROCESS_NAME])
{
	snprintf(name, PROCESS_NAME, "%.*s %" PRIu32, (int)TRACE_COMM, process->comm, process->tgid);
	utf8_sanitize(name);
	for (char *c = name; *c; c++)
		if ((unsigned char)*c < ' ' || *c == 0x7f)
			*c = '?';
}

static int page_make(const struct trace_stacks *s, struct made *made)
{
	int r = make_places(s, &made->places);

	made->rows = calloc(s->rows_n + 1, sizeof(*made->rows));
	made->names = calloc(s->processes_n + 1, sizeof(*made->names));
	if (r < 0 || !made->rows || !made->names)
		return -ENOMEM;
	for (uint32_t i = 0; i < s->processes_n; i++)
		name_process(&s->processes[i], made->names[i]);
	for (uint32_t i = 0; i < s->rows_n; i++) {
		struct stack_row *row = &made->rows[i];

		row->places = python_stacks_places(s->python, s->rows[i].path, &row->n);
		row->process = made->names[s->rows[i].process];
		row->call = probe_at((uint16_t)s->rows[i].call)->symbol;
		memcpy(row->weights, s->rows[i].weights, sizeof(row->weights));
	}
	return 0;
}

static int render(struct trace_stacks *s, const struct made *made, const char *path, enum stack_weight weight,
		  struct strbuf *out)
{
	const struct stack_page page = {
		.places = made->places,
		.rows = made->rows,
		.rows_n = s->rows_n,
		.estimated = s->sampled,
		.has_gpu_time = s->has_gpu_time,
		.incomplete = s->said.len > 0 ? s->said.data : NULL,
		.real_ns = clock_real_ns() - (clock_mono_ns() - s->begin_ns),
		.duration_ns = clock_mono_ns() - s->begin_ns,
	};
	enum trace_stacks_format format = TRACE_STACKS_FOLDED;

	trace_stacks_format(path, &format);
	if (format == TRACE_STACKS_PPROF)
		return view_stacks_pprof(&page, out);
	if (format == TRACE_STACKS_HTML)
		return view_stacks_html(&page, out);
	return view_stacks_folded(&page, weight, out);
}

static int write_beside(const char *path, const struct strbuf *text)
{
	char beside[PATH_MAX];
	_cleanup_close_ int fd = -1;
	ssize_t n;

	if ((size_t)snprintf(beside, sizeof(beside), "%s.%d", path, (int)getpid()) >= sizeof(beside))
		return -ENAMETOOLONG;
	fd = open(beside, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
	if (fd < 0)
		return -errno;
	n = write_all(fd, text->data, text->len);
	if (n >= 0 && rename(beside, path) == 0)
		return 0;
	n = n < 0 ? n : -errno;
	unlink(beside);
	return (int)n;
}

int trace_stacks_write(struct trace_stacks *s, struct trace_engine *engine, const char *path,
		       enum stack_weight weight, const char **ret_said)
{
	struct made made = { NULL, NULL, NULL };
	struct strbuf out;
	int r;

	trace_engine_drain(engine);
	stacks_say_missing(s);
	strbuf_init(&out, FILE_MAX);
	r = page_make(s, &made);
	if (r == 0)
		r = render(s, &made, path, weight, &out);
	if (r == 0)
		r = write_beside(path, &out);
	made_done(&made);
	strbuf_done(&out);
	*ret_said = s->said.data;
	return r;
}

/* ---- start and end ---- */

int trace_stacks_new(struct trace_stacks **ret_stacks)
{
	_cleanup_(trace_stacks_freep) struct trace_stacks *s = calloc(1, sizeof(*s));
	int r;

	if (!s)
		return -ENOMEM;
	strbuf_init(&s->said, 0);
	s->begin_ns = clock_mono_ns();
	s->sink = (struct event_sink){
		.sink = { .name = "stacks", .userdata = s },
		.event = stacks_event,
		.lost = stacks_lost,
	};
	r = python_stacks_new(&s->python);
	if (r < 0)
		return r;
	*ret_stacks = TAKE_PTR(s);
	return 0;
}

void trace_stacks_free(struct trace_stacks *s)
{
	if (!s)
		return;
	python_stacks_free(s->python);
	free(s->processes);
	free(s->rows);
	free(s->held);
	hashmap_done(&s->process_by);
	hashmap_done(&s->row_by);
	hashmap_done(&s->held_by);
	strbuf_done(&s->said);
	free(s);
}
