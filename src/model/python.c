// SPDX-License-Identifier: Apache-2.0
#include "model/python.h"

#include <stdlib.h>

#include "base/macro.h"

struct python_view *python_view_new(uint32_t processes, uint32_t waiters)
{
	size_t head = sizeof(struct python_view) + processes * sizeof(struct python_process);
	struct python_view *view = calloc(1, head + waiters * sizeof(struct python_waiter));

	if (!view)
		return NULL;
	view->processes = (struct python_process *)(view + 1);
	view->waiters = (struct python_waiter *)(view->processes + processes);
	return view;
}

void python_sum_add(struct python_sum *sum, uint64_t count, uint64_t total_ns, uint64_t longest_ns)
{
	sum->count += count;
	sum->total_ns += total_ns;
	sum->longest_ns = MAX(sum->longest_ns, longest_ns);
}

const char *python_generation_name(unsigned generation)
{
	static const char *const names[PYTHON_COLLECTIONS] = { "0", "1", "2", "unknown" };

	return generation < PYTHON_COLLECTIONS ? names[generation] : "unknown";
}
