// SPDX-License-Identifier: Apache-2.0
#include "cmd/cgroup/cgroup.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "view/table.h"

enum { SYSTEMD_TRIES = 40, SYSTEMD_WAIT_US = 50000 };

struct devcgroup_host cgroup_host(const struct options *options)
{
	const char *root = options_text(options, OPT_cgroup_root);

	return (struct devcgroup_host){
		.proc = "/proc",
		.devices = options_text(options, OPT_cgroup_devices),
		.dev = "/dev",
		.cgroups = root ? root : "",
	};
}

int cgroup_failed(const struct devcgroup_why *why)
{
	struct strbuf text;

	strbuf_init(&text, 0);
	text_clean(&text, why->text);
	fprintf(stderr, "gpusonde cgroup: %s\n", text.data);
	strbuf_done(&text);
	return EXIT_FAILURE;
}

const char *cgroup_name(const struct place *place)
{
	return place->at[place->at[HIERARCHY_V2].fd >= 0 ? HIERARCHY_V2 : HIERARCHY_V1].path;
}

static int print_change(const struct cgroup_run *run, const struct change *change)
{
	_cleanup_free_ char *target = strdup(run->target), *done = strdup(change->done), *text = NULL;
	bool changed = change->changed[HIERARCHY_V1] || change->changed[HIERARCHY_V2];
	struct strbuf out;
	int status;

	strbuf_init(&out, 0);
	if (run->invocation->flag[FLAG_JSON] && target && done) {
		utf8_sanitize(target);
		utf8_sanitize(done);
		json_t *json = json_pack("{s:s, s:s, s:b, s:s}", "schema", "gpusonde-cgroup/v1", "target",
					 target, "changed", changed, "done", done);

		text = json ? json_dumps(json, JSON_INDENT(2)) : NULL;
		json_decref(json);
		strbuf_adds(&out, text ? text : "");
		out.failed |= !text;
	} else if (changed) {
		text_clean(&out, change->done);
	} else {
		strbuf_adds(&out, run->invocation->flag[FLAG_UNDO] ?
					  "nothing of gpusonde's is there: nothing was changed" :
					  "all devices may be opened already: nothing was changed");
	}
	strbuf_addc(&out, '\n');
	status = put_stdout(&out);
	strbuf_done(&out);
	return status;
}

/* systemd applies it after it has answered. */
static int wait_for_systemd(struct cgroup_run *run)
{
	struct access access;

	for (unsigned i = 0; i < SYSTEMD_TRIES; i++) {
		_cleanup_(policy_freep) struct policy *policy = NULL;
		int r = policy_read(&run->place, &policy, &run->why);

		if (r < 0 || !policy_withholds(policy, &run->nodes, &access))
			return r;
		usleep(SYSTEMD_WAIT_US);
	}
	devcgroup_because(
		&run->why,
		"systemd allows the devices now, but others still do not: %s; gpusonde cgroup allow %s, "
		"without --systemd, is for that",
		access.why, run->target);
	return -EACCES;
}

static int allow_by_systemd(struct cgroup_run *run, bool undo, struct change *change)
{
	const char *unit = run->place.unit;
	int r = unit_allow(*unit ? unit : run->target, undo, change, &run->why);

	return r < 0 || undo ? r : wait_for_systemd(run);
}

static int cgroup_allow(struct cgroup_run *run)
{
	const struct invocation *inv = run->invocation;
	_cleanup_free_ struct change *change = calloc(1, sizeof(*change));
	bool undo = inv->flag[FLAG_UNDO];
	int r;

	if (!change)
		return EXIT_FAILURE;
	if (inv->flag[FLAG_SYSTEMD])
		r = allow_by_systemd(run, undo, change);
	else if (undo)
		r = devcgroup_undo(&run->place, change, &run->why);
	else
		r = devcgroup_allow(&run->place, &run->drivers, &run->nodes, change, &run->why);
	return r < 0 ? cgroup_failed(&run->why) : print_change(run, change);
}

static int find_all(struct cgroup_run *run, bool undo)
{
	int r = drivers_read(&run->host, &run->drivers);

	if (r == -ENODEV && undo)
		r = 0;
	if (r == -ENODEV)
		devcgroup_because(&run->why,
				  "%s lists no device of NVIDIA: the driver is not loaded (modprobe nvidia)",
				  run->host.devices);
	else if (r < 0)
		devcgroup_because(&run->why, "%s: %s", run->host.devices, strerror(-r));
	if (r == 0)
		r = place_find(&run->host, run->target, &run->place, &run->why);
	if (r == 0)
		nodes_read(&run->host, &run->drivers, run->place.pid, &run->nodes);
	return r;
}

static int usage(const char *problem)
{
	fprintf(stderr, "gpusonde cgroup: %s: gpusonde cgroup check|allow PID|CGROUP\n", problem);
	return EXIT_USAGE;
}

int cgroup_main(struct invocation *inv)
{
	_cleanup_free_ struct cgroup_run *run = calloc(1, sizeof(*run));
	bool allow = inv->operands_n > 0 && STRV_EQ(inv->operands[0], "allow");
	int status;

	if (inv->operands_n > 0 && !allow && !STRV_EQ(inv->operands[0], "check"))
		return usage("it is either check or allow");
	if (inv->operands_n < 2)
		return usage("a word is missing");
	if (!allow && (inv->flag[FLAG_UNDO] || inv->flag[FLAG_SYSTEMD]))
		return usage("check takes neither --undo nor --systemd, which are of allow");
	if (!run)
		return EXIT_FAILURE;
	*run = (struct cgroup_run){
		.invocation = inv,
		.target = inv->operands[1],
		.host = cgroup_host(&inv->options),
		.place = PLACE_NONE,
	};
	if (find_all(run, inv->flag[FLAG_UNDO]) < 0)
		status = cgroup_failed(&run->why);
	else
		status = allow ? cgroup_allow(run) : cgroup_check(run);
	place_done(&run->place);
	return status;
}
