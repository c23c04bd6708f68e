// SPDX-License-Identifier: Apache-2.0
/* gpusonde cgroup check: a row for each device. */
#include "cmd/cgroup/cgroup.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "cmd/output.h"
#include "view/table/table.h"

static const struct table_column columns[] = {
	{ .title = "DEVICE" },
	{ .title = "NUMBER" },
	{ .title = "DRIVER" },
	{ .title = "NODE", .dispensable = 1 },
	{ .title = "OPEN" },
	{ .title = "ACCESS", .dispensable = 2 },
	{ .title = "WHY", .flexible = true, .least = 20 },
};

static const struct {
	const char *text;
	enum table_colour colour;
} states[] = {
	[ACCESS_ALLOWED] = { "allowed", COLOUR_GOOD },
	[ACCESS_DENIED] = { "denied", COLOUR_BAD },
	[ACCESS_UNKNOWN] = { "unknown", COLOUR_WARN },
};

struct checked {
	const struct cgroup_run *run;
	const struct policy *policy;
	unsigned count[ARRAY_SIZE(states)]; /* of devices that matter */
	unsigned missing_here;
	const char *missing; /* the first of these */
	struct table table;
	json_t *devices;
};

static void letters(unsigned granted, char ret_text[static 4])
{
	snprintf(ret_text, 4, "%s%s%s", granted & ACCESS_READ ? "r" : "", granted & ACCESS_WRITE ? "w" : "",
		 granted & ACCESS_MKNOD ? "m" : "");
}

/* Where it has a node: in our /dev, and in that of the process. */
static const char *node_text(const struct cgroup_run *run, const struct node *node)
{
	if (!node->name[0])
		return "";
	if (!run->place.pid || !run->nodes.there_known)
		return node->here ? "here" : "none";
	if (node->there)
		return node->here ? "both" : "process";
	return node->here ? "here" : "none";
}

static void add_device_row(struct checked *c, const struct node *node, const char *driver,
			   const struct access *access)
{
	char text[4];

	letters(access->granted, text);
	if (node->name[0])
		table_cellf(&c->table, COLOUR_NONE, "/dev/%s", node->name);
	else
		table_cell(&c->table, COLOUR_DIM, "(no node)");
	if (node->minor == UINT32_MAX)
		table_cellf(&c->table, COLOUR_NONE, "%u:*", node->major);
	else
		table_cellf(&c->table, COLOUR_NONE, "%u:%u", node->major, node->minor);
	table_cell(&c->table, COLOUR_NONE, driver);
	table_cell(&c->table, COLOUR_NONE, node_text(c->run, node));
	table_cell(&c->table, states[access->state].colour, states[access->state].text);
	table_cell(&c->table, COLOUR_NONE, text);
	table_cell(&c->table, COLOUR_NONE, access->why);
}

/* What is not known is null. */
static void add_json(struct checked *c, const struct node *node, const char *driver,
		     const struct access *access)
{
	const struct cgroup_run *run = c->run;
	bool there_known = run->place.pid && run->nodes.there_known;
	char text[4], name[NODE_NAME + 8] = "", why[sizeof(access->why)];

	letters(access->granted, text);
	if (node->name[0])
		snprintf(name, sizeof(name), "/dev/%s", node->name);
	strcpy(why, access->why);
	utf8_sanitize(why);
	utf8_sanitize(name);
	json_array_append_new(c->devices,
			      json_pack("{s:s?, s:I, s:o, s:s, s:b, s:o, s:b, s:s, s:s, s:s?}", "device",
					name[0] ? name : NULL, "major", (json_int_t)node->major, "minor",
					node->minor == UINT32_MAX ? json_null() : json_integer(node->minor),
					"driver", driver, "node_here", node->here, "node_of_process",
					there_known ? json_boolean(node->there) : json_null(), "matters",
					node_matters(&run->nodes, node), "open", states[access->state].text,
					"access", text, "why", why[0] ? why : NULL));
}

static void check_node(struct checked *c, const struct node *node)
{
	const char *driver = drivers_name(&c->run->drivers, node->major);
	struct access access;

	policy_ask(c->policy, node->major, node->minor, &access);
	if (node_matters(&c->run->nodes, node))
		c->count[access.state]++;
	if (node->wanted && !node->here && c->missing_here++ == 0)
		c->missing = node->name;
	if (c->devices)
		add_json(c, node, driver, &access);
	else
		add_device_row(c, node, driver, &access);
}

static bool all_allowed(const struct checked *c)
{
	return c->count[ACCESS_DENIED] == 0 && c->count[ACCESS_UNKNOWN] == 0;
}

/* ---- what it means ---- */

static void print_hints(const struct checked *c, const struct table_options *options, struct strbuf *out)
{
	const struct cgroup_run *run = c->run;
	char line[PATH_MAX + 512];

	if (c->count[ACCESS_DENIED] > 0) {
		snprintf(
			line, sizeof(line),
			"NVML in it fails with \"Failed to initialize NVML: Unknown Error\". gpusonde cgroup "
			"allow %s allows them now; with --systemd, systemd does after a daemon-reload, too",
			run->target);
		table_line(options, out, COLOUR_BAD, line);
	}
	if (run->place.pid && run->nodes.there_known && run->nodes.there_n == 0)
		table_line(
			options, out, COLOUR_WARN,
			"The process's /dev has no node of NVIDIA: start its container again, with its GPUs "
			"(docker run --gpus, a device plugin, CDI)");
	if (c->missing_here > 0) {
		snprintf(line, sizeof(line),
			 "/dev/%s%s not there, though the driver has the device: nvidia-modprobe -c 0 -u, or "
			 "nvidia-smi as root, makes it",
			 c->missing, c->missing_here > 1 ? " and others are" : " is");
		table_line(options, out, COLOUR_WARN, line);
	}
	if (run->nodes.dropped > 0 || run->drivers.dropped > 0) {
		snprintf(line, sizeof(line),
			 "%u more devices and %u more drivers are left out: there is no room",
			 run->nodes.dropped, run->drivers.dropped);
		table_line(options, out, COLOUR_WARN, line);
	}
}

static void print_table(const struct checked *c, struct strbuf *out)
{
	const struct place *place = &c->run->place;
	const struct table_options options = output_options(c->run->invocation, STDOUT_FILENO);
	char line[3 * PATH_MAX];

	if (table_write(&c->table, &options, out) < 0)
		out->failed = true;
	strbuf_addc(out, '\n');
	snprintf(line, sizeof(line), "cgroup %s%s%s%s%s: %u allowed, %u denied, %u unknown",
		 cgroup_name(place),
		 place->at[HIERARCHY_V1].fd >= 0 && place->at[HIERARCHY_V2].fd >= 0 ? ", version 1: " : "",
		 place->at[HIERARCHY_V1].fd >= 0 && place->at[HIERARCHY_V2].fd >= 0 ?
			 place->at[HIERARCHY_V1].path :
			 "",
		 place->unit[0] ? ", unit " : "", place->unit, c->count[ACCESS_ALLOWED],
		 c->count[ACCESS_DENIED], c->count[ACCESS_UNKNOWN]);
	table_line(&options, out, COLOUR_NONE, line);
	print_hints(c, &options, out);
}

static json_t *path_json(const struct cgroup_at *at)
{
	_cleanup_free_ char *path = at->fd >= 0 ? strdup(at->path) : NULL;

	if (!path)
		return json_null();
	utf8_sanitize(path);
	return json_string(path);
}

static void print_json(struct checked *c, struct strbuf *out)
{
	const struct cgroup_run *run = c->run;
	_cleanup_free_ char *target = strdup(run->target), *unit = strdup(run->place.unit), *text = NULL;
	json_t *json = NULL;

	if (target && unit) {
		utf8_sanitize(target);
		utf8_sanitize(unit);
		json = json_pack("{s:s, s:s, s:o, s:o, s:o, s:s?, s:b, s:i, s:i, s:O}", "schema",
				 "gpusonde-cgroup/v1", "target", target, "pid",
				 run->place.pid ? json_integer(run->place.pid) : json_null(), "cgroup_v1",
				 path_json(&run->place.at[HIERARCHY_V1]), "cgroup_v2",
				 path_json(&run->place.at[HIERARCHY_V2]), "unit", unit[0] ? unit : NULL,
				 "allowed", all_allowed(c), "missing_nodes", (int)c->missing_here, "dropped",
				 (int)(run->nodes.dropped + run->drivers.dropped), "devices", c->devices);
	}
	text = json ? json_dumps(json, JSON_INDENT(2) | JSON_ENSURE_ASCII) : NULL;
	if (text)
		strbuf_addf(out, "%s\n", text);
	else
		out->failed = true;
	json_decref(json);
}

int cgroup_check(struct cgroup_run *run)
{
	_cleanup_(policy_freep) struct policy *policy = NULL;
	struct checked c = { .run = run };
	struct strbuf out;
	int status;

	if (policy_read(&run->place, &policy, &run->why) < 0)
		return cgroup_failed(&run->why);
	c.policy = policy;
	table_init(&c.table, columns, ARRAY_SIZE(columns));
	c.devices = run->invocation->flag[FLAG_JSON] ? json_array() : NULL;
	for (unsigned i = 0; i < run->nodes.n; i++)
		check_node(&c, &run->nodes.list[i]);
	strbuf_init(&out, 0);
	if (c.devices)
		print_json(&c, &out);
	else
		print_table(&c, &out);
	status = put_stdout(&out);
	strbuf_done(&out);
	json_decref(c.devices);
	table_done(&c.table);
	return status == EXIT_SUCCESS && !all_allowed(&c) ? EXIT_FAILURE : status;
}
