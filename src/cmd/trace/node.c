// SPDX-License-Identifier: Apache-2.0
#include "cmd/trace/node.h"

#include <errno.h>
#include <stdlib.h>

#include "agent/driver/collector.h"
#include "base/clock.h"
#include "cmd/snapshot_client.h"
#include "view/snapshot/read.h"

#define FIRST_READING_NS (3 * NSEC_PER_SEC) /* timeout; a healthy driver needs well under one second */
#define STEP_NS (100 * NSEC_PER_MSEC)

struct trace_node {
	const struct options *options;
	struct collector *collector; /* NULL: an agent has answered */
	struct snapshot *snapshot; /* the agent's newest, or a reference to the collector's */
	uint64_t read; /* so often */
	bool gone; /* the agent did not answer: it is not asked again, since a request may take seconds */
};

static int read_agent(struct trace_node *node)
{
	struct snapshot *snapshot;
	json_t *document = NULL;
	struct strbuf text;
	unsigned status = 0;
	int r;

	strbuf_init(&text, 0);
	r = agent_request(node->options, "GET", "/api/v1/snapshot", &status, &text);
	if (r == 0 && status == 200)
		document = json_loadb(text.data, text.len, 0, NULL);
	strbuf_done(&text);
	r = document ? snapshot_read(document, &snapshot) : -ENODATA;
	json_decref(document);
	if (r < 0)
		return r;
	snapshot->seq = ++node->read;
	snapshot_read_free(node->snapshot);
	node->snapshot = snapshot;
	return 0;
}

static void read_collector(struct trace_node *node)
{
	snapshot_unref(node->snapshot);
	node->snapshot = collector_snapshot(node->collector);
	collector_tick(node->collector);
}

static int begin_collecting(struct trace_node *node, sd_event *event)
{
	const struct collector_config config = { .quiet = true };
	int r = collector_new(event, node->options, &config, &node->collector);

	for (int64_t waited = 0;
	     r >= 0 && waited < FIRST_READING_NS && collector_readings(node->collector) == 0;
	     waited += STEP_NS) {
		struct nvml_status status;

		if (waited % NSEC_PER_SEC == 0)
			collector_tick(node->collector);
		collector_status(node->collector, &status);
		if (!status.running)
			break;
		r = sd_event_run(event, STEP_NS / NSEC_PER_USEC);
	}
	/* A signal has ended the loop. */
	return r == -ESTALE ? -EINTR : MIN(r, 0);
}

int trace_node_new(sd_event *event, const struct options *options, struct trace_node **ret_node)
{
	_cleanup_(trace_node_freep) struct trace_node *node = calloc(1, sizeof(*node));
	int r;

	if (!node)
		return -ENOMEM;
	node->options = options;
	if (read_agent(node) < 0) {
		r = begin_collecting(node, event);
		if (r < 0)
			return r;
		read_collector(node);
	}
	*ret_node = TAKE_PTR(node);
	return 0;
}

void trace_node_free(struct trace_node *node)
{
	if (!node)
		return;
	if (node->collector)
		snapshot_unref(node->snapshot);
	else
		snapshot_read_free(node->snapshot);
	collector_free(node->collector);
	free(node);
}

const struct snapshot *trace_node_snapshot(const struct trace_node *node)
{
	return node->snapshot;
}

void trace_node_read(struct trace_node *node)
{
	if (node->collector)
		read_collector(node);
	else if (!node->gone)
		node->gone = read_agent(node) < 0;
}
