// SPDX-License-Identifier: Apache-2.0
#include "cmd/cgroup/cgroup.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "view/table/table.h"

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

static void print_problem(const char *problem)
{
	struct strbuf text;

	strbuf_init(&text, 0);
	text_clean(&text, problem);
	fprintf(stderr, "gpusonde cgroup: %s\n", text.data);
	strbuf_done(&text);
}

int cgroup_failed(const struct devcgroup_why *why)
{
	print_problem(why->text);
	return EXIT_FAILURE;
}

const char *cgroup_name(const struct place *place)
{
	return place->at[place->at[HIERARCHY_V2].fd >= 0 ? HIERARCHY_V2 : HIERARCHY_V1].path;
}

/* Without a note that is null. */
static json_t *change_json(const struct cgroup_run *run)
{
	const struct change *change = &run->change;
	_cleanup_free_ char *target = strdup(run->target), *done = strdup(change->done),
			    *note = strdup(change->note);

	if (!target || !done || !note)
		return NULL;
	utf8_sanitize(target);
	utf8_sanitize(done);
	utf8_sanitize(note);
	return json_pack("{s:s, s:s, s:b, s:s, s:s?}", "schema", "gpusonde-cgroup/v1", "target", target,
			 "changed", change->changed[HIERARCHY_V1] || change->changed[HIERARCHY_V2], "done",
			 done, "note", note[0] ? note : NULL);
}

static const char *no_change_text(const struct cgroup_run *run)
{
	if (run->invocation->flag[FLAG_UNDO])
		return "nothing of gpusonde's is there: nothing was changed";
	if (run->change.unsure)
		return "nothing was changed";
	return "the devices may be opened already: nothing was changed";
}

static int print_change(const struct cgroup_run *run)
{
	const struct change *change = &run->change;
	_cleanup_free_ char *text = NULL;
	struct strbuf out;
	int status;

	strbuf_init(&out, 0);
	if (run->invocation->flag[FLAG_JSON]) {
		json_t *json = change_json(run);

		text = json ? json_dumps(json, JSON_INDENT(2) | JSON_ENSURE_ASCII) : NULL;
		json_decref(json);
		strbuf_adds(&out, text ? text : "");
		out.failed |= !text;
	} else {
		text_clean(&out, change->done[0] ? change->done : no_change_text(run));
		if (change->note[0])
			print_problem(change->note);
	}
	strbuf_addc(&out, '\n');
	status = put_stdout(&out);
	strbuf_done(&out);
	return status == EXIT_SUCCESS && change->unsure ? EXIT_FAILURE : status;
}

/* Also of what was done before it failed. */
static int print_failure(const struct cgroup_run *run)
{
	cgroup_failed(&run->why);
	if (run->change.done[0]) {
		char text[sizeof(run->change.done) + 64];

		snprintf(text, sizeof(text), "this was done before, and stays: %s", run->change.done);
		print_problem(text);
	}
	return EXIT_FAILURE;
}

/* systemd applies it after it has answered. */
static int wait_for_systemd(struct cgroup_run *run)
{
	struct access access;

	for (unsigned i = 0; i < SYSTEMD_TRIES; i++) {
		_cleanup_(policy_freep) struct policy *policy = NULL;
		int r = policy_read(&run->place, &policy, &run->why);

		if (r < 0 || !policy_withholds_wanted(policy, &run->wanted, &access) || access.unshown)
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

static int allow_by_systemd(struct cgroup_run *run)
{
	const char *unit = *run->place.unit ? run->place.unit : run->target;
	_cleanup_free_ struct unit_devices *devices = calloc(1, sizeof(*devices));
	bool undo = run->invocation->flag[FLAG_UNDO];
	int r;

	if (!devices)
		return -ENOMEM;
	unit_devices(&run->wanted, &run->nodes, devices);
	r = unit_allow(&run->place, unit, devices, undo, &run->change, &run->why);
	return r < 0 || undo ? r : wait_for_systemd(run);
}

static int allow_wanted(struct cgroup_run *run)
{
	const struct invocation *inv = run->invocation;
	const char *devices = inv->flag[FLAG_DEVICES];
	int r = 0;

	if (devices)
		r = wanted_named(devices, &run->drivers, &run->nodes, &run->wanted, &run->why);
	else if (inv->flag[FLAG_SYSTEMD])
		r = wanted_given(&run->host, &run->place, &run->drivers, &run->nodes, &run->wanted,
				 &run->why);
	if (r < 0)
		return r;
	if (inv->flag[FLAG_SYSTEMD])
		return allow_by_systemd(run);
	if (devices)
		return devcgroup_allow(&run->place, &run->wanted, &run->change, &run->why);
	return devcgroup_allow_given(&run->host, &run->place, &run->drivers, &run->nodes, &run->change,
				     &run->why);
}

static int cgroup_allow(struct cgroup_run *run)
{
	const struct invocation *inv = run->invocation;
	int r;

	if (!inv->flag[FLAG_UNDO])
		r = allow_wanted(run);
	else if (inv->flag[FLAG_SYSTEMD])
		r = allow_by_systemd(run);
	else
		r = devcgroup_undo(&run->place, &run->change, &run->why);
	return r < 0 ? print_failure(run) : print_change(run);
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

/* NULL: the command line is valid. */
static const char *problem_of(const struct invocation *inv, bool allow)
{
	if (inv->operands_n > 0 && !allow && !STRV_EQ(inv->operands[0], "check"))
		return "it is either check or allow";
	if (inv->operands_n < 2)
		return "a word is missing";
	if (!*inv->operands[1])
		return "the cgroup's name is empty, as of a variable that is not set; name a PID, a path "
		       "(/ is the root of all), or a unit of systemd";
	if (!allow && (inv->flag[FLAG_UNDO] || inv->flag[FLAG_SYSTEMD] || inv->flag[FLAG_DEVICES]))
		return "check takes neither --undo nor --systemd nor --devices, which are of allow";
	if (inv->flag[FLAG_UNDO] && inv->flag[FLAG_DEVICES])
		return "--undo takes away all that gpusonde added, so it goes without --devices";
	return NULL;
}

int cgroup_main(struct invocation *inv)
{
	_cleanup_free_ struct cgroup_run *run = calloc(1, sizeof(*run));
	bool allow = inv->operands_n > 0 && STRV_EQ(inv->operands[0], "allow");
	const char *problem = problem_of(inv, allow);
	int status;

	if (problem)
		return usage(problem);
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
