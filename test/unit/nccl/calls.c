// SPDX-License-Identifier: Apache-2.0
#include "calls.h"

#include <stdlib.h>

static struct nccl_view *newest;
static uint64_t now_ns = 1;

void call(struct nccl *nccl, const struct trace_call *event)
{
	nccl_event(nccl, &event->header, sizeof(*event));
}

void life(struct nccl *nccl, uint8_t type, uint64_t incarnation)
{
	const struct trace_process event = { .header = { .tgid = PID, .type = type },
					     .incarnation = incarnation };

	nccl_event(nccl, &event.header, sizeof(event));
}

const struct nccl_view *figures(struct nccl *nccl)
{
	free(newest);
	newest = nccl_window(nccl, now_ns);
	now_ns += 1000000000;
	assert_non_null(newest);
	return newest;
}

const struct nccl_row *row_of(const struct nccl_view *view, enum nccl_operation operation, uint32_t ranks)
{
	for (uint32_t i = 0; i < view->rows_n; i++)
		if (view->rows[i].operation == operation && view->rows[i].ranks == ranks)
			return &view->rows[i];
	return NULL;
}

int setup(void **state)
{
	*state = nccl_new(4, false);
	return *state ? 0 : -1;
}

int teardown(void **state)
{
	nccl_free(*state);
	free(newest);
	newest = NULL;
	return 0;
}
