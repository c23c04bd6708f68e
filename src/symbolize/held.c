// SPDX-License-Identifier: Apache-2.0
/*
 * Handles stored in variables of a file's stubs, in a process.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "symbolize/file.h"
#include "symbolize/process.h"
#include "symbolize/stubs.h"
#include "symbolize/worker.h"

enum { HELD_MAX = 1 << 20, WINDOW = 64 << 10 };

struct gathering {
	const struct stub_table *stubs;
	struct held *held;
	uint32_t n, cap;
};

static int gather(struct gathering *gathering, uint32_t stub, uint64_t value)
{
	struct held *held;

	if (value == 0 || gathering->n == HELD_MAX)
		return 0;
	if (gathering->n == gathering->cap) {
		uint32_t cap = gathering->cap ? gathering->cap * 2 : 64;

		held = reallocarray(gathering->held, cap, sizeof(*held));
		if (!held)
			return -ENOMEM;
		gathering->held = held;
		gathering->cap = cap;
	}
	gathering->held[gathering->n++] = (struct held){ value, stub };
	return 0;
}

/* The variables are close together, so several are read at once. Returns how many this window contained. */
static int read_window(struct gathering *gathering, pid_t pid, uint64_t bias, uint32_t first, uint32_t *ret_n)
{
	const struct stub_table *stubs = gathering->stubs;
	uint64_t from = stubs->entries[stubs->by_handle[first]].handle_address;
	uint64_t buf[WINDOW / 8];
	uint32_t n = 1;
	ssize_t got;

	while (first + n < stubs->handles_n &&
	       stubs->entries[stubs->by_handle[first + n]].handle_address - from <= WINDOW - 8)
		n++;
	got = process_peek(pid, from + bias, buf,
			   stubs->entries[stubs->by_handle[first + n - 1]].handle_address - from + 8);
	for (uint32_t i = 0; i < n && got >= 8; i++) {
		uint32_t stub = stubs->by_handle[first + i];
		uint64_t at = stubs->entries[stub].handle_address - from, value;

		if (at > (uint64_t)got - 8)
			break;
		memcpy(&value, (const char *)buf + at, sizeof(value));
		if (gather(gathering, stub, value) < 0)
			return -ENOMEM;
	}
	*ret_n = n;
	return 0;
}

static int by_value(const void *a, const void *b)
{
	const struct held *x = a, *y = b;

	return (x->value > y->value) - (x->value < y->value);
}

static int read_held(struct process *process, struct area *area, const struct stub_table *stubs)
{
	struct gathering gathering = { .stubs = stubs };
	struct file *file = process->mapped[area->mapped].file;
	uint64_t bias;
	uint32_t n;
	int r = area_bias(area, file, &bias);

	for (uint32_t i = 0; r == 0 && i < stubs->handles_n; i += n)
		r = read_window(&gathering, (pid_t)process->id.pid, bias, i, &n);
	if (r < 0) {
		free(gathering.held);
		return r;
	}
	if (gathering.n > 1)
		qsort(gathering.held, gathering.n, sizeof(gathering.held[0]), by_value);
	free(area->held);
	area->held = gathering.held;
	area->held_n = gathering.n;
	return 0;
}

int area_handle(struct symbolizer *symbolizer, struct process *process, struct area *area,
		const struct stub_table *stubs, int64_t since_ns, uint64_t handle,
		const struct stub_entry **ret_entry)
{
	const struct stub_entry *found = NULL;
	int64_t now = clock_mono_ns();

	int r;

	/* A dropped stub's variable may hold the handle, too. */
	if (stubs->cut)
		return -ENOENT;
	if (area->held_ns < since_ns && !process->gone && symbolizer->config.read_memory) {
		r = read_held(process, area, stubs);
		if (r < 0)
			return r == -ENOMEM ? r : -ENOENT;
		area->held_ns = now;
		process_weigh(symbolizer, process);
	}
	for (uint32_t i = 0; i < area->held_n; i++) {
		const struct stub_entry *entry;

		if (area->held[i].value != handle || area->held[i].stub >= stubs->n)
			continue;
		entry = &stubs->entries[area->held[i].stub];
		/* The variable belongs to several kernels. */
		if (entry->ambiguous)
			continue;
		if (found && (found->hash != entry->hash || found->check != entry->check))
			return -ENOTUNIQ;
		found = entry;
	}
	if (!found)
		return -ENOENT;
	*ret_entry = found;
	return 0;
}
