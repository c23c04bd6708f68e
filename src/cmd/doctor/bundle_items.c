// SPDX-License-Identifier: Apache-2.0
/* What the files of a support archive have of the agent and of this program. */
#include "cmd/doctor/bundle.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/text.h"
#include "cmd/snapshot_client.h"
#include "config.h"
#include "trace/probe.h"

enum { SMALL_FILE_MAX = 64 << 10 };

static const char *const group_names[PROBE_GROUPS] = {
	[PROBE_GROUP_SETUP] = "setup", [PROBE_GROUP_MEMORY] = "memory",       [PROBE_GROUP_SYNC] = "sync",
	[PROBE_GROUP_COPY] = "copy",   [PROBE_GROUP_EVENT] = "event",         [PROBE_GROUP_LAUNCH] = "launch",
	[PROBE_GROUP_CALLS] = "calls", [PROBE_GROUP_OPERATORS] = "operators", [PROBE_GROUP_USER] = "user",
};

void bundle_add_file(struct strbuf *out, const char *path)
{
	_cleanup_free_ char *text = malloc(SMALL_FILE_MAX);
	int r = text ? read_file(path, text, SMALL_FILE_MAX, NULL) : -ENOMEM;

	strbuf_addf(out, "# %s%s%s\n", path, r < 0 ? ": " : "", r < 0 ? strerror(-r) : "");
	if (r < 0)
		return;
	utf8_sanitize(text);
	strbuf_addf(out, "%s%s\n", text, *text && text[strlen(text) - 1] == '\n' ? "" : "\n");
}

void bundle_versions(const struct bundle_source *source, struct bundle_item *item)
{
	json_t *node = json_object_get(source->doctor->document, "node");
	const char *driver = json_string_value(json_object_get(node, "driver_version"));
	struct utsname name;

	strbuf_addf(&item->text, "gpusonde %s\n", GPUSONDE_VERSION);
	if (uname(&name) == 0)
		strbuf_addf(&item->text, "%s %s %s %s\n", name.sysname, name.release, name.version,
			    name.machine);
	strbuf_addf(&item->text, "driver %s\n\n", driver ? driver : "unknown");
	bundle_add_file(&item->text, "/etc/os-release");
	bundle_add_file(&item->text, "/proc/driver/nvidia/version");
}

void bundle_configuration(const struct bundle_source *source, struct bundle_item *item)
{
	const struct invocation *inv = source->doctor->invocation;

	if (inv->options_bad)
		strbuf_addf(&item->text, "# errors:\n# %s\n", inv->complaints.data);
	strbuf_adds(&item->text,
		    "# as this command sees it; the agent may have been started with other flags\n");
	options_print(&inv->options, &item->text);
}

void bundle_doctor_text(const struct bundle_source *source, struct bundle_item *item)
{
	strbuf_adds(&item->text, source->text);
}

void bundle_doctor_json(const struct bundle_source *source, struct bundle_item *item)
{
	item->json = json_loads(source->json, 0, NULL);
}

void bundle_snapshot(const struct bundle_source *source, struct bundle_item *item)
{
	if (!source->doctor->document)
		bundle_lacks(item, "no data: %s",
			     source->doctor->failure[0] ? source->doctor->failure : "no agent, no driver");
	else
		item->json = json_deep_copy(source->doctor->document);
}

/* ---- the agent's pages ---- */

static bool get_page(const struct bundle_source *source, const char *path, struct bundle_item *item)
{
	const struct options *options = &source->doctor->invocation->options;
	unsigned status = 0;
	int r = agent_request(options, "GET", path, &status, &item->text);

	if (r == 0 && status == 200)
		return true;
	if (r < 0)
		agent_explain(options, r, item->why, sizeof(item->why));
	else
		bundle_lacks(item, "the agent says %u: %.*s", status, (int)strcspn(item->text.data, "\n"),
			     item->text.data);
	strbuf_reset(&item->text);
	return false;
}

static void get_json(const struct bundle_source *source, const char *path, struct bundle_item *item)
{
	if (!get_page(source, path, item))
		return;
	item->json = json_loadb(item->text.data, item->text.len, 0, NULL);
	if (!item->json)
		bundle_lacks(item, "the agent's answer is too large, or no JSON");
	strbuf_reset(&item->text);
}

void bundle_metrics(const struct bundle_source *source, struct bundle_item *item)
{
	get_page(source, "/metrics", item);
}

void bundle_tracing(const struct bundle_source *source, struct bundle_item *item)
{
	get_json(source, "/api/v1/trace", item);
}

void bundle_findings(const struct bundle_source *source, struct bundle_item *item)
{
	get_json(source, "/api/v1/findings", item);
}

void bundle_events(const struct bundle_source *source, struct bundle_item *item)
{
	get_json(source, "/api/v1/events", item);
}

void bundle_agent(const struct bundle_source *source, struct bundle_item *item)
{
	const struct doctor *d = source->doctor;

	item->json = json_pack("{s:O*, s:O*}", "status", d->status, "capabilities", d->capabilities);
	if (!d->status)
		agent_explain(&d->invocation->options, d->agent_error, item->why, sizeof(item->why));
}

void bundle_probes(_unused_ const struct bundle_source *source, struct bundle_item *item)
{
	for (uint16_t call = 0; call < probe_calls(); call++) {
		const struct probe *probe = probe_at(call);
		bool users = probe->library >= PROBE_LIBRARIES;

		strbuf_addf(&item->text, "%-10s %-10s %-6s %s\n",
			    users ? "user" : probe_libraries[probe->library].name, group_names[probe->group],
			    probe->may_return ? "return" : "entry", probe->symbol);
	}
}
