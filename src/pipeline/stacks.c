// SPDX-License-Identifier: Apache-2.0
#include "pipeline/stacks.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/saturated.h"
#include "pipeline/stacks_private.h"
#include "proc/user.h"
#include "python/find.h"
#include "trace/probe.h"

/* ---- processes and rows ---- */

static int stacks_grow(void **array, uint32_t *cap, uint32_t n, uint32_t max, size_t size)
{
	uint32_t wanted = *cap ? 2 * *cap : 64;
	void *grown;

	if (n >= max)
		return -ENOBUFS;
	if (n < *cap)
		return 0;
	grown = reallocarray(*array, wanted, size);
	if (!grown)
		return -ENOMEM;
	*array = grown;
	*cap = wanted;
	return 0;
}

/* UINT64_MAX: of those of whom it cannot be told. */
static uint32_t user_of(struct stack_sums *s, uint32_t tgid)
{
	uint64_t id;
	uint32_t uid;

	return user_shares_user(&s->shares,
				proc_answers_for("/proc", tgid, &id, &uid) == 0 ? id : UINT64_MAX);
}

static bool table_has_room(const struct stack_sums *s, uint32_t process, enum stacks_table table)
{
	return user_shares_have(&s->shares, s->processes[process].user, table, 1);
}

static void charge(struct stack_sums *s, uint32_t process, enum stacks_table table, uint32_t n)
{
	user_shares_take(&s->shares, s->processes[process].user, table, n);
}

static void discharge(struct stack_sums *s, uint32_t process, enum stacks_table table)
{
	user_shares_give(&s->shares, s->processes[process].user, table, 1);
}

static int process_get(struct stack_sums *s, uint32_t tgid, uint32_t *ret_process)
{
	int r;

	if (hashmap_get(&s->process_by, tgid, ret_process))
		return 0;
	r = stacks_grow((void **)&s->processes, &s->processes_cap, s->processes_n, s->limits.processes,
			sizeof(*s->processes));
	if (r == 0)
		r = hashmap_put(&s->process_by, tgid, s->processes_n);
	if (r < 0)
		return r;
	s->processes[s->processes_n] = (struct stacks_process){
		.id.pid = tgid,
		.incarnation = incarnations_of(&s->incarnations, tgid),
		.rows = STACKS_NONE,
		.held = STACKS_NONE,
		.user = user_of(s, tgid),
	};
	*ret_process = s->processes_n++;
	return 0;
}

static int sums_row_add(struct stack_sums *s, struct stacks_row *new, uint64_t key, uint32_t *ret_row)
{
	struct stacks_process *process = &s->processes[new->process];
	bool more = new->path == PYTHON_PATH_MORE; /* for which there is always room */
	int r;

	if (!more && !table_has_room(s, new->process, STACKS_ROWS))
		return -ENOBUFS;
	r = stacks_grow((void **)&s->rows, &s->rows_cap, s->rows_n,
			s->limits.rows + (more ? s->limits.processes : 0), sizeof(*s->rows));
	if (r == 0)
		r = hashmap_put(&s->row_by, key, s->rows_n);
	if (r < 0)
		return r;
	charge(s, new->process, STACKS_ROWS, !more);
	new->next = process->rows;
	process->rows = s->rows_n;
	s->rows[s->rows_n] = *new;
	*ret_row = s->rows_n++;
	return 0;
}

static int row_get(struct stack_sums *s, const struct trace_header *event, uint32_t *ret_row)
{
	struct stacks_row new = { .path = python_stacks_path(s->python, event), .call = event->call };
	int r = process_get(s, event->tgid, &new.process);
	uint64_t key;

	if (r < 0)
		return r;
	for (unsigned i = 0; i < 2; i++) {
		key = hash_bytes_secret(&new, offsetof(struct stacks_row, next));
		if (hashmap_get(&s->row_by, key, ret_row) &&
		    memcmp(&s->rows[*ret_row], &new, offsetof(struct stacks_row, next)) == 0)
			return 0;
		r = sums_row_add(s, &new, key, ret_row);
		if (r == 0)
			return 0;
		new.path = PYTHON_PATH_MORE; /* one row of the process for what has no room */
	}
	return r;
}

/* ---- memory ---- */

static uint64_t held_key(uint32_t tgid, uint64_t addr)
{
	const uint64_t id[] = { tgid, addr };

	return hash_bytes_secret(id, sizeof(id));
}

static void held_link(struct stack_sums *s, uint32_t index)
{
	struct stacks_held *held = &s->held[index];
	uint32_t *first = &s->processes[s->rows[held->row].process].held;

	held->before = STACKS_NONE;
	held->after = *first;
	if (*first != STACKS_NONE)
		s->held[*first].before = index;
	*first = index;
}

static void held_unlink(struct stack_sums *s, const struct stacks_held *held)
{
	if (held->after != STACKS_NONE)
		s->held[held->after].before = held->before;
	if (held->before != STACKS_NONE)
		s->held[held->before].after = held->after;
	else
		s->processes[s->rows[held->row].process].held = held->after;
}

/* Not freed by the program, as far as is seen: its row keeps the bytes if @keep. */
static void held_drop(struct stack_sums *s, uint32_t index, bool keep)
{
	struct stacks_held *held = &s->held[index];

	if (!keep)
		s->rows[held->row].weights[STACK_BYTES_HELD] -= (double)held->size * held->factor;
	discharge(s, s->rows[held->row].process, STACKS_HELD);
	hashmap_del(&s->held_by, held_key(held->tgid, held->addr));
	held_unlink(s, held);
	*held = (struct stacks_held){ .row = s->held_free };
	s->held_free = index + 1;
}

static void on_free(struct stack_sums *s, const struct trace_call *event)
{
	uint32_t index;

	if (hashmap_get(&s->held_by, held_key(event->header.tgid, event->addr), &index) &&
	    s->held[index].tgid == event->header.tgid && s->held[index].addr == event->addr)
		held_drop(s, index, false);
}

static int on_alloc(struct stack_sums *s, const struct trace_call *event, uint32_t row, double factor)
{
	uint32_t process = s->rows[row].process, index = 0;
	int r = 0;

	on_free(s, event); /* its free was not seen */
	if (!table_has_room(s, process, STACKS_HELD)) {
		r = -ENOBUFS;
	} else if (s->held_free) {
		index = s->held_free - 1;
	} else {
		r = stacks_grow((void **)&s->held, &s->held_cap, s->held_n, s->limits.held, sizeof(*s->held));
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
	s->held[index] = (struct stacks_held){
		.addr = event->addr,
		.size = event->size,
		.tgid = event->header.tgid,
		.row = row,
		.factor = factor,
	};
	held_link(s, index);
	charge(s, process, STACKS_HELD, 1);
	s->rows[row].weights[STACK_BYTES_HELD] += (double)event->size * factor;
	return 0;
}

/* ---- events ---- */

static bool is_wait(uint8_t op)
{
	return op == TRACE_OP_SYNC_STREAM || op == TRACE_OP_SYNC_EVENT || op == TRACE_OP_SYNC_CONTEXT ||
	       op == TRACE_OP_SYNC_DEVICE;
}

static void add_launch(struct stacks_row *row, double factor)
{
	row->weights[STACK_LAUNCHES] += factor;
	row->launched += factor;
}

static int add_call(struct stack_sums *s, const struct trace_call *event, uint32_t row, double factor)
{
	bool moved = !(event->header.flags & TRACE_FLAG_NO_RESULT) && event->result == 0;
	double *weights = s->rows[row].weights;
	uint8_t op = event->header.op;

	s->unreturned += event->header.flags & TRACE_FLAG_NO_RESULT &&
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

static int add_event(struct stack_sums *s, const struct trace_header *event)
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
	s->rows[row].weights[STACK_CALLS] += (double)(1U << shift);
	if (event->type == TRACE_EVENT_CALL)
		return add_call(s, (const struct trace_call *)event, row, (double)(1U << shift));
	if (((const struct trace_launch *)event)->result == 0)
		add_launch(&s->rows[row], (double)(1U << shift));
	return 0;
}

/* ---- processes ---- */

static struct stacks_process *process_find(const struct stack_sums *s, uint32_t tgid)
{
	uint32_t process;

	return hashmap_get(&s->process_by, tgid, &process) ? &s->processes[process] : NULL;
}

static void process_over(struct stack_sums *s, uint32_t tgid)
{
	const struct trace_header end = { .type = TRACE_EVENT_EXIT, .tgid = tgid };
	uint32_t process;

	if (s->native)
		stack_natives_event(s->native, &end, 0);
	python_stacks_event(s->python, &end, sizeof(end), 0);
	if (!hashmap_get(&s->process_by, tgid, &process))
		return;
	hashmap_del(&s->process_by, tgid);
	hashmap_put(&s->over_by, tgid, process); /* without memory its time on the GPU is not split */
	s->processes[process].over = true;
	while (s->processes[process].held != STACKS_NONE) {
		held_drop(s, s->processes[process].held, s->limits.keep_held);
		s->steps++;
	}
}

static bool is_end(const struct trace_header *event)
{
	return event->type == TRACE_EVENT_EXEC || event->type == TRACE_EVENT_EXIT;
}

/* Ends the process that had this PID, if the event is its end or another one's beginning. */
static void process_life(struct stack_sums *s, const struct trace_header *event, uint32_t size)
{
	struct stacks_process *process = process_find(s, event->tgid);
	/* Known without an event: its interpreter was looked for. */
	uint64_t seen_ns = process && process->seen_ns ? process->seen_ns : UINT64_MAX;

	incarnations_event(&s->incarnations, event, size);
	if (process ? incarnation_ends(&process->incarnation, seen_ns, event, size) : is_end(event))
		process_over(s, event->tgid);
}

static void stacks_process_over(uint32_t tgid, uint64_t incarnation, void *userdata)
{
	struct stack_sums *s = userdata;
	const struct stacks_process *process = process_find(s, tgid);

	if (process && incarnation_is(process->incarnation, incarnation))
		process_over(s, tgid);
}

static int process_named(struct stack_sums *s, const struct trace_process *event)
{
	struct stacks_process *process;
	uint32_t index;
	int r = process_get(s, event->header.tgid, &index);

	if (r < 0)
		return r;
	process = &s->processes[index];
	process->id.start_ticks = process_ticks(event->start_boot_ns);
	memcpy(process->comm, event->comm, TRACE_COMM);
	if (s->engine)
		stack_sums_mapped(s, s->engine, (pid_t)event->header.tgid);
	return 0;
}

/* ---- functions and stacks ---- */

static void charge_new(struct stack_sums *s, uint32_t process, const struct python_stacks_used *before)
{
	struct python_stacks_used now = python_stacks_used(s->python);

	charge(s, process, STACKS_ROWS, now.paths - before->paths);
	charge(s, process, STACKS_PLACES, now.places - before->places);
	charge(s, process, STACKS_FRAMES, now.frames - before->frames);
	charge(s, process, STACKS_TEXTS, now.text_bytes - before->text_bytes);
}

static bool may_add(const struct stack_sums *s, uint32_t process)
{
	return table_has_room(s, process, STACKS_ROWS) && table_has_room(s, process, STACKS_PLACES) &&
	       table_has_room(s, process, STACKS_FRAMES) && table_has_room(s, process, STACKS_TEXTS) &&
	       (!s->native || table_has_room(s, process, STACKS_NAMES));
}

/* What is new in them is charged to the process's user. */
static int functions_event(struct stack_sums *s, const struct trace_header *event, uint32_t size)
{
	bool adds = event->type == TRACE_EVENT_CODE || event->type == TRACE_EVENT_STACK;
	struct python_stacks_used before = python_stacks_used(s->python);
	uint32_t names = s->native ? stack_natives_names(s->native) : 0, process, user;
	int r = adds ? process_get(s, event->tgid, &process) : 0;

	if (r < 0)
		return r;
	if (adds && !may_add(s, process)) {
		s->refused++;
		return -ENOBUFS;
	}
	user = adds ? s->processes[process].user : 0;
	if (s->native)
		stack_natives_event(s->native, event, user);
	r = python_stacks_event(s->python, event, size, user);
	if (adds)
		charge_new(s, process, &before);
	if (adds && s->native)
		charge(s, process, STACKS_NAMES, stack_natives_names(s->native) - names);
	return r;
}

/* ---- all events ---- */

static void note_time(struct stack_sums *s, const struct trace_header *event)
{
	struct stacks_process *process = process_find(s, event->tgid);
	uint64_t duration_ns =
		event->type == TRACE_EVENT_CALL ? ((const struct trace_call *)event)->duration_ns : 0;

	if (process && process->incarnation == 0)
		process->seen_ns = MAX(process->seen_ns, add_saturated(event->time_ns, duration_ns));
}

static int stacks_event(const struct trace_header *event, uint32_t size, void *userdata)
{
	struct stack_sums *s = userdata;
	int r = 0;

	switch (event->type) {
	case TRACE_EVENT_PROCESS:
		process_life(s, event, size);
		return process_named(s, (const struct trace_process *)event);
	case TRACE_EVENT_EXEC:
		if (s->finder)
			python_finder_exec(s->finder, (pid_t)event->tgid, event->time_ns);
		/* fallthrough */
	case TRACE_EVENT_EXIT:
		process_life(s, event, size);
		return 0;
	case TRACE_EVENT_CODE:
	case TRACE_EVENT_NATIVE:
	case TRACE_EVENT_STACK:
		r = functions_event(s, event, size);
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
	note_time(s, event);
	return r;
}

static void stacks_lost(uint64_t events, void *userdata)
{
	((struct stack_sums *)userdata)->lost_events += events;
}

void stack_sums_set_engine(struct stack_sums *s, struct trace_engine *engine)
{
	s->engine = engine;
}

struct event_sink *stack_sums_sink(struct stack_sums *s)
{
	return &s->sink;
}

/* ---- interpreters ---- */

/* Who cannot be asked about now is asked about again, who makes the helper hang only a few times. */
static enum stacks_python python_state(struct stacks_process *process, int r)
{
	if (r == 0 || r == -ENOENT || r == -ESRCH)
		return STACKS_PYTHON_ASKED;
	if (r == -EAGAIN || (r == -EIO && ++process->python_tries < STACKS_PYTHON_TRIES))
		return STACKS_PYTHON_AGAIN;
	return STACKS_PYTHON_UNKNOWN;
}

void stack_sums_found(struct stack_sums *s, pid_t pid, int r, uint32_t version)
{
	uint32_t process;

	if (process_get(s, (uint32_t)pid, &process) < 0)
		return;
	s->processes[process].python = (uint8_t)python_state(&s->processes[process], r);
	if (s->processes[process].python == STACKS_PYTHON_UNKNOWN)
		s->unknown_version = version;
}

void stack_sums_use_finder(struct stack_sums *s, struct python_finder *finder)
{
	s->finder = finder;
}

void stack_sums_mapped(struct stack_sums *s, struct trace_engine *engine, pid_t pid)
{
	struct trace_python python;
	uint32_t version = 0;
	int r;

	if (s->native)
		stack_natives_mapped(s->native, engine, pid);
	if (s->finder) {
		r = python_finder_ask(s->finder, pid);
		if (r < 0)
			stack_sums_found(s, pid, r, version);
		return;
	}
	r = python_find("/proc", pid, &version, &python);
	if (r == 0)
		r = trace_engine_set_python(engine, pid, &python);
	stack_sums_found(s, pid, r, version);
}

void stack_sums_remapped(struct stack_sums *s, pid_t pid)
{
	if (s->native)
		stack_natives_remapped(s->native, pid);
}

/* Some in each window, in turn. */
static void ask_again(struct stack_sums *s)
{
	uint32_t asked = 0;

	for (uint32_t i = 0; s->engine && i < s->processes_n && asked < STACKS_PYTHON_ASKS; i++) {
		struct stacks_process *process = &s->processes[s->ask_next++ % s->processes_n];

		if (process->over || process->python != STACKS_PYTHON_AGAIN)
			continue;
		process->python = STACKS_PYTHON_ASKED;
		stack_sums_mapped(s, s->engine, (pid_t)process->id.pid);
		asked++;
	}
}

/* ---- estimated time ---- */

/* NULL: it launched nothing that was seen. */
static struct stacks_process *process_of(const struct stack_sums *s, const struct traced_process *of)
{
	struct stacks_process *running = process_find(s, of->id.pid);
	uint32_t over;

	if (of->exited && hashmap_get(&s->over_by, of->id.pid, &over) &&
	    process_id_may_equal(s->processes[over].id, of->id))
		return &s->processes[over];
	/* Its end may be in the next events. */
	return running && process_id_may_equal(running->id, of->id) ? running : NULL;
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
static void share_time(struct stack_sums *s, struct stacks_process *process, double ns)
{
	double of = 0;

	for (uint32_t i = process->rows; i != STACKS_NONE; i = s->rows[i].next, s->steps++) {
		struct stacks_row *row = &s->rows[i];

		if (process->launched > 0) {
			row->launched_before = row->launched;
			row->launched = 0;
		}
		of += row->launched_before;
	}
	for (uint32_t i = process->rows; of > 0 && i != STACKS_NONE; i = s->rows[i].next)
		s->rows[i].weights[STACK_GPU_TIME] += ns * s->rows[i].launched_before / of;
}

static void renew(struct stack_sums *s);

void stack_sums_window(struct stack_sums *s, const struct trace_view *view)
{
	if (s->limits.renew_ns > 0)
		renew(s);
	s->has_gpu_time = true;
	for (uint32_t i = 0; i < s->rows_n; i++)
		s->processes[s->rows[i].process].launched += s->rows[i].launched;
	for (uint32_t i = 0; i < view->processes_n; i++) {
		struct stacks_process *process = process_of(s, &view->processes[i]);
		double busy_s = busy_of(view, &view->processes[i]);

		if (!process || busy_s <= process->busy_s)
			continue;
		share_time(s, process, (busy_s - process->busy_s) * NSEC_PER_SEC);
		process->busy_s = busy_s;
	}
	for (uint32_t i = 0; i < s->processes_n; i++)
		s->processes[i].launched = 0;
	ask_again(s);
}

/* ---- start and end ---- */

static void tables_done(struct stack_sums *s)
{
	python_stacks_free(TAKE_PTR(s->python));
	free(TAKE_PTR(s->rows));
	free(TAKE_PTR(s->held));
	hashmap_done(&s->over_by);
	hashmap_done(&s->row_by);
	hashmap_done(&s->held_by);
}

/* Old entries make room for new ones. */
static bool table_renews_itself(enum stacks_table table)
{
	return table == STACKS_LINES || table == STACKS_CODES || table == STACKS_IDS;
}

static bool is_full(const struct stack_sums *s)
{
	uint64_t crowded = 0;

	for (unsigned i = 0; i < STACKS_TABLES; i++)
		if (!table_renews_itself(i) && s->shares.room[i] > 0 &&
		    s->shares.used[i] >= s->shares.room[i] / 8 * 7)
			return true;
	if (s->native && (stack_natives_lost(s->native, &crowded) > 0 || crowded > s->crowded))
		return true;
	return s->processes_n >= s->limits.processes || s->refused > 0 || s->lost_held > 0 ||
	       s->rows_n >= s->limits.rows || python_stacks_lost(s->python) > 0;
}

/*
 * Those that run stay: their names are not told again, and their time on devices goes on from what it was.
 * So do their users.
 */
static void keep_running(struct stack_sums *s)
{
	uint64_t users[USER_SHARES_USERS];
	uint32_t n = 0;

	for (uint32_t i = 0; i < s->shares.users_n; i++)
		users[i] = s->shares.users[i].id;
	s->shares.users_n = 0;
	memset(s->shares.used, 0, sizeof(s->shares.used));
	hashmap_clear(&s->process_by);
	for (uint32_t i = 0; i < s->processes_n; i++) {
		struct stacks_process process = s->processes[i];

		if (process.over || hashmap_put(&s->process_by, process.id.pid, n) < 0)
			continue;
		process.rows = process.held = STACKS_NONE;
		process.launched = 0;
		process.user = user_shares_user(&s->shares, users[process.user]);
		s->processes[n++] = process;
	}
	s->processes_n = n;
}

static int python_new(struct stack_sums *s, struct python_stacks **ret_python)
{
	const struct python_shares shares = { &s->shares, STACKS_LINES, STACKS_CODES, STACKS_IDS };
	int r = python_stacks_new(ret_python);

	if (r == 0)
		python_stacks_share(*ret_python, &shares);
	return r;
}

/* The kernel side sends each function and stack once, and has to send them again. */
static void renew(struct stack_sums *s)
{
	struct python_stacks *python;

	if (clock_mono_ns() - s->begin_ns < s->limits.renew_ns || !is_full(s) || python_new(s, &python) < 0)
		return;
	if (s->native && stack_natives_renew(s->native, python) < 0) {
		python_stacks_free(python);
		return;
	}
	tables_done(s);
	s->python = python;
	keep_running(s);
	s->rows_n = s->rows_cap = 0;
	s->held_n = s->held_cap = s->held_free = 0;
	if (s->native)
		stack_natives_lost(s->native, &s->crowded);
	s->lost_events = s->lost_rows = s->lost_held = s->refused = 0;
	s->unreturned = s->frameless = s->given_up = 0;
	s->sampled = false;
	s->begin_ns = clock_mono_ns();
	if (s->engine)
		trace_engine_forget_stacks(s->engine);
}

int stack_sums_new(const struct stack_limits *limits, struct stack_sums **ret_stacks)
{
	_cleanup_(stack_sums_freep) struct stack_sums *s = calloc(1, sizeof(*s));
	int r;

	if (!s)
		return -ENOMEM;
	s->limits = *limits;
	s->shares.room[STACKS_ROWS] = limits->rows + limits->paths;
	s->shares.room[STACKS_HELD] = limits->held;
	s->shares.room[STACKS_PLACES] = limits->places;
	s->shares.room[STACKS_FRAMES] = limits->frames;
	s->shares.room[STACKS_TEXTS] = limits->text_bytes;
	s->shares.room[STACKS_LINES] = limits->lines_bytes;
	s->shares.room[STACKS_CODES] = PYTHON_CODES;
	s->shares.room[STACKS_IDS] = PYTHON_IDS;
	s->shares.room[STACKS_NAMES] = limits->names;
	s->shares.room[STACKS_NAME_TEXTS] = limits->names_bytes;
	strbuf_init(&s->said, 0);
	s->begin_ns = clock_mono_ns();
	s->sink = (struct event_sink){
		.sink = { .name = "stacks", .userdata = s },
		.event = stacks_event,
		.lost = stacks_lost,
		.process_over = stacks_process_over,
	};
	r = python_new(s, &s->python);
	if (r < 0)
		return r;
	*ret_stacks = TAKE_PTR(s);
	return 0;
}

int stack_sums_add_native(struct stack_sums *s, sd_event *event, bool helper)
{
	const struct stack_natives_config config = {
		.helper = helper,
		.names = s->limits.names,
		.names_bytes = s->limits.names_bytes,
		.shares = &s->shares,
		.texts_table = STACKS_NAME_TEXTS,
	};

	return stack_natives_new(event, &config, s->python, &s->native);
}

void stack_sums_free(struct stack_sums *s)
{
	if (!s)
		return;
	stack_natives_free(s->native);
	tables_done(s);
	free(s->processes);
	hashmap_done(&s->process_by);
	strbuf_done(&s->said);
	free(s);
}

bool stack_sums_reader_stats(const struct stack_sums *s, struct helper_stats *ret_stats)
{
	return s->native && stack_natives_reader_stats(s->native, ret_stats);
}

uint64_t stack_sums_steps(const struct stack_sums *s)
{
	return s->steps;
}
