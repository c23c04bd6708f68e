// SPDX-License-Identifier: Apache-2.0
#include "pipeline/native.h"

#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "cubin/name.h"
#include "unwind/names.h"
#include "unwind/unwind.h"

/* How often a walk that met unknown code makes mappings be read of a process that has no list, at most. */
#define AGAIN_NS (100 * NSEC_PER_MSEC)
/* Time for reading files when a process has mapped the first one that is probed. */
#define AT_ONCE_NS (50 * NSEC_PER_MSEC)

struct stack_natives {
	struct stack_natives_config config;
	sd_event *event; /* borrowed */
	sd_event_source *work, *timer; /* timer: until a list is to be read again */
	struct unwind *unwind; /* NULL until the first process */
	struct unwind_names *names;
	int64_t again_ns; /* CLOCK_MONOTONIC */
	uint32_t user; /* of the process whose event is handled */
};

/* Events may come no more: what is to be read again has a time of its own. */
static void native_schedule(struct stack_natives *native)
{
	int64_t next_ns = unwind_next_ns(native->unwind);

	if (next_ns == INT64_MAX)
		return;
	sd_event_source_set_time(native->timer, (uint64_t)next_ns / NSEC_PER_USEC + 1);
	sd_event_source_set_enabled(native->timer, SD_EVENT_ONESHOT);
}

static int on_work(sd_event_source *source, void *userdata)
{
	struct stack_natives *native = userdata;

	if (native->unwind && unwind_work(native->unwind))
		return 0;
	sd_event_source_set_enabled(source, SD_EVENT_OFF);
	if (native->unwind)
		native_schedule(native);
	return 0;
}

static int on_again(_unused_ sd_event_source *source, _unused_ uint64_t usec, void *userdata)
{
	struct stack_natives *native = userdata;

	sd_event_source_set_enabled(native->work, SD_EVENT_ON);
	return 0;
}

static int native_start(struct stack_natives *native, struct trace_engine *engine)
{
	const struct unwind_maps maps = {
		.spaces = trace_engine_map(engine, "spaces"),
		.areas = trace_engine_map(engine, "areas"),
		.rows = trace_engine_map(engine, "rows"),
		.rules = trace_engine_map(engine, "rules"),
	};

	_cleanup_(unwind_freep) struct unwind *unwind = NULL;
	int r;

	if (native->unwind)
		return 0;
	r = unwind_new(&maps, &unwind);
	if (r == 0 && native->config.helper)
		r = unwind_set_reader(unwind, native->event, NULL);
	if (r < 0)
		return r;
	native->unwind = TAKE_PTR(unwind);
	unwind_set_names(native->unwind, native->names);
	return 0;
}

static void native_look(struct stack_natives *native, pid_t pid)
{
	if (native->unwind && unwind_mapped(native->unwind, pid) == 0)
		sd_event_source_set_enabled(native->work, SD_EVENT_ON);
}

void stack_natives_mapped(struct stack_natives *native, struct trace_engine *engine, pid_t pid)
{
	if (native_start(native, engine) < 0)
		return;
	native_look(native, pid);
	/* A command waits for this: its first stacks should be whole. A helper is not waited for. */
	for (int64_t end_ns = clock_mono_ns() + AT_ONCE_NS;
	     unwind_work(native->unwind) && clock_mono_ns() < end_ns;)
		;
}

void stack_natives_remapped(struct stack_natives *native, pid_t pid)
{
	if (native->unwind && unwind_again(native->unwind, pid, true))
		native_schedule(native);
}

void stack_natives_event(struct stack_natives *native, const struct trace_header *event, uint32_t user)
{
	int64_t now = clock_mono_ns();
	uint8_t stop;

	native->user = user;
	if (!native->unwind)
		return;
	unwind_event(native->unwind, event);
	if (event->type != TRACE_EVENT_NATIVE)
		return;
	stop = ((const struct trace_native *)event)->stop;
	if (stop != TRACE_NATIVE_UNMAPPED && stop != TRACE_NATIVE_NO_FILE)
		return;
	/* A child of fork() has its parent's list until then. */
	if (unwind_again(native->unwind, (pid_t)event->tgid, false)) {
		native_schedule(native);
		return;
	}
	if (now < native->again_ns)
		return;
	native->again_ns = now + AGAIN_NS;
	native_look(native, (pid_t)event->tgid);
}

static uint32_t native_number(const struct trace_native *event, uint32_t i, void *userdata)
{
	struct stack_natives *native = userdata;
	struct unwind_place place = { .address = event->pcs[i] };
	uint32_t number = 0;

	if (!native->unwind)
		return 0;
	unwind_find(native->unwind, event->space, event->pcs[i], &place);
	return unwind_names_add(native->names, &place, native->user, &number) < 0 ? 0 : number;
}

/* Begins to name what has come, if a helper does; else all is named here. */
void stack_natives_resolve(struct stack_natives *native)
{
	if (native->unwind && native->config.helper)
		unwind_work(native->unwind);
	else if (native->unwind)
		unwind_names_resolve(native->names, native->unwind);
}

void stack_natives_place(const struct stack_natives *native, uint32_t number, struct stack_place *ret_place)
{
	*ret_place = (struct stack_place){ 0 };
	ret_place->name = unwind_names_text(native->names, number, &ret_place->file);
}

bool stack_natives_reader_stats(const struct stack_natives *native, struct helper_stats *ret_stats)
{
	return native->unwind && unwind_reader_stats(native->unwind, ret_stats);
}

uint64_t stack_natives_lost(const struct stack_natives *native, uint64_t *ret_crowded)
{
	*ret_crowded = native->unwind ? unwind_crowded(native->unwind) : 0;
	return unwind_names_lost(native->names);
}

static void readable(const char *symbol, char *buf, size_t size)
{
	kernel_name_demangle(symbol, buf, size);
}

static int names_new(struct stack_natives *native)
{
	const struct unwind_names_limits limits = { native->config.names, native->config.names_bytes };
	int r = unwind_names_new(readable, &limits, &native->names);

	if (r == 0 && native->config.shares)
		unwind_names_share(native->names, native->config.shares, native->config.texts_table);
	return r;
}

int stack_natives_renew(struct stack_natives *native, struct python_stacks *python)
{
	struct unwind_names *before = native->names;
	int r = names_new(native);

	if (r < 0) {
		native->names = before;
		return r;
	}
	if (native->unwind) {
		unwind_set_names(native->unwind, native->names);
		unwind_forget_names(native->unwind);
	}
	unwind_names_free(before);
	python_stacks_name_natives(python, native_number, native);
	return 0;
}

uint32_t stack_natives_names(const struct stack_natives *native)
{
	return unwind_names_n(native->names);
}

int stack_natives_new(sd_event *event, const struct stack_natives_config *config,
		      struct python_stacks *python, struct stack_natives **ret_native)
{
	struct stack_natives *native = calloc(1, sizeof(*native));
	int r;

	if (!native)
		return -ENOMEM;
	native->config = *config;
	native->event = event;
	r = names_new(native);
	if (r == 0)
		r = sd_event_add_defer(event, &native->work, on_work, native);
	if (r >= 0)
		r = sd_event_source_set_enabled(native->work, SD_EVENT_OFF);
	if (r >= 0)
		r = sd_event_source_set_priority(native->work, SD_EVENT_PRIORITY_IDLE);
	if (r >= 0)
		r = sd_event_add_time(event, &native->timer, CLOCK_MONOTONIC, UINT64_MAX, 0, on_again,
				      native);
	if (r >= 0)
		r = sd_event_source_set_enabled(native->timer, SD_EVENT_OFF);
	if (r < 0) {
		stack_natives_free(native);
		return r;
	}
	python_stacks_name_natives(python, native_number, native);
	*ret_native = native;
	return 0;
}

void stack_natives_free(struct stack_natives *native)
{
	if (!native)
		return;
	sd_event_source_unref(native->work);
	sd_event_source_unref(native->timer);
	unwind_free(native->unwind);
	unwind_names_free(native->names);
	free(native);
}
