// SPDX-License-Identifier: Apache-2.0
#include "agent/outputs/outputs.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/outputs/push.h"
#include "agent/outputs/statsd.h"
#include "agent/outputs/textfile.h"
#include "base/log.h"

static struct snapshot *newest_snapshot(void *userdata)
{
	struct agent *agent = userdata;

	return collector_snapshot(agent->collector);
}

/* What is configured in part is said, and does not keep the agent from its work. */
static int begin_pushing_to(struct agent *agent, const struct options *options, enum push_kind_id kind)
{
	_cleanup_free_ struct push_config *config = malloc(sizeof(*config));
	char why[300];
	int r;

	if (!config)
		return -ENOMEM;
	r = push_configure(options, kind, config, why, sizeof(why));
	if (r == 0)
		return push_new(agent->event, collector_model(agent->collector), config, &agent->push[kind]);
	snprintf(agent->push_state[kind], sizeof(agent->push_state[kind]), "%s", r == -ENOENT ? "off" : why);
	if (r != -ENOENT)
		log_error("nothing is pushed: %s; see docs/push.md", why);
	return 0;
}

static void begin_textfile(struct agent *agent, const struct options *options)
{
	const struct textfile_source source = { newest_snapshot, agent };
	int r = textfile_new(options, &source, &agent->textfile);
	const char *why = agent->textfile ? "" : "off";

	if (r == -EINVAL)
		why = "textfile.path is neither a folder's path, from / on, nor a file's whose "
		      "name ends with .prom";
	else if (r < 0)
		why = strerror(-r);
	snprintf(agent->textfile_state, sizeof(agent->textfile_state), "%s", why);
	if (r < 0)
		log_error("no file is written for node_exporter: %s", why);
}

static void begin_statsd(struct agent *agent, const struct options *options)
{
	int r = statsd_new(options, &agent->statsd);
	const char *why = agent->statsd ? "" : "off";

	if (r == -EINVAL)
		why = "statsd.address is neither an IP address with a port nor the path of a socket";
	else if (r < 0)
		why = strerror(-r);
	snprintf(agent->statsd_state, sizeof(agent->statsd_state), "%s", why);
	if (r < 0)
		log_error("nothing is sent to StatsD: %s", why);
}

int outputs_begin(struct agent *agent, const struct options *options)
{
	int r = 0;

	for (unsigned k = 0; k < PUSH_KINDS && r == 0; k++)
		r = begin_pushing_to(agent, options, k);
	begin_textfile(agent, options);
	begin_statsd(agent, options);
	return r;
}

void outputs_end(struct agent *agent)
{
	struct snapshot *snapshot = agent->collector ? collector_snapshot(agent->collector) : NULL;

	/* All at the same time. */
	for (unsigned k = 0; k < PUSH_KINDS; k++)
		push_leave(agent->push[k], snapshot);
	snapshot_unref(snapshot);
	for (unsigned k = 0; k < PUSH_KINDS; k++)
		push_free(agent->push[k]);
	textfile_free(agent->textfile);
	statsd_free(agent->statsd);
}

static void send_newest(struct agent *agent)
{
	struct snapshot *snapshot = collector_snapshot(agent->collector);

	for (unsigned k = 0; k < PUSH_KINDS; k++)
		if (agent->push[k])
			push_tick(agent->push[k], snapshot);
	if (agent->statsd)
		statsd_tick(agent->statsd, snapshot, collector_model(agent->collector));
	snapshot_unref(snapshot);
}

void outputs_tick(struct agent *agent)
{
	if (agent->textfile)
		textfile_tick(agent->textfile, collector_model(agent->collector));
	send_newest(agent);
}

void outputs_tell(struct agent *agent)
{
	for (unsigned k = 0; k < PUSH_KINDS; k++)
		if (agent->push[k])
			snprintf(agent->push_state[k], sizeof(agent->push_state[k]), "%s",
				 push_error(agent->push[k]));
	if (agent->textfile)
		snprintf(agent->textfile_state, sizeof(agent->textfile_state), "%s",
			 textfile_error(agent->textfile));
	if (agent->statsd)
		snprintf(agent->statsd_state, sizeof(agent->statsd_state), "%s", statsd_error(agent->statsd));
}
