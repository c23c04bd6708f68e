// SPDX-License-Identifier: Apache-2.0
/* doctor's checks of the agent, its configuration, addresses and directories. */
#include "cmd/doctor/doctor.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "cmd/snapshot_client.h"
#include "config/places.h"
#include "helper/helper.h"
#include "proc/port.h"
#include "nvml/spawn.h"
#include "serve/address.h"

static void check_config(const struct doctor *d, struct finding *f)
{
	const struct invocation *inv = d->invocation;

	if (inv->options_bad) {
		found(f, VERDICT_FAILED, "%.*s", (int)strcspn(inv->complaints.data, "\n"),
		      inv->complaints.data);
		remedy(f,
		       "gpusonde agent --check-config lists all errors; the agent does not start with any");
	} else if (inv->options.file) {
		found(f, VERDICT_OK, "%s", inv->options.file);
	} else {
		found(f, VERDICT_OK, "no file; defaults, environment and flags");
	}
}

static void check_agent(const struct doctor *d, struct finding *f)
{
	char why[300];

	if (d->status) {
		found(f, VERDICT_OK, "version %s runs as PID %lld",
		      json_string_value(json_object_get(d->status, "version")),
		      (long long)json_integer_value(json_object_get(d->status, "pid")));
		return;
	}
	agent_explain(&d->invocation->options, d->agent_error ? d->agent_error : -EPROTO, why, sizeof(why));
	found(f,
	      d->agent_error == -ENOENT || d->agent_error == -ECONNREFUSED ? VERDICT_NOTE : VERDICT_WARNING,
	      "%s", why);
}

static void check_helper(const struct doctor *d, struct finding *f)
{
	char path[PATH_MAX];

	if (helper_check_program("gpusonde-web", 0, path) < 0) {
		found(f, VERDICT_FAILED, "%s: %s: without this program the agent cannot listen", path,
		      strerror(errno));
		remedy(f, "reinstall gpusonde");
		return;
	}
	spawn_find_helper(options_text(&d->invocation->options, OPT_nvml_helper), path);
	if (access(path, X_OK) == 0) {
		found(f, VERDICT_OK, "%s", path);
		return;
	}
	found(f, VERDICT_FAILED, "%s: %s: without this program the driver cannot be read", path,
	      strerror(errno));
	remedy(f, "reinstall gpusonde, or set nvml.helper to the path of the program");
}

/*
 * The address that a running agent reports takes precedence over the one configured here. False if there is
 * no agent, it reports none, or both are the same.
 */
static bool agent_has_other(const struct doctor *d, const char *place, const char *address, const char *flag,
			    struct finding *f)
{
	const char *its = json_string_value(json_object_get(d->status, place));

	if (!its || STRV_EQ(its, address ? address : ""))
		return false;
	found(f, VERDICT_OK, "the agent uses %s, not %s", *its ? its : "none", address ? address : "none");
	remedy(f, "none if that is intended: the agent was started with other options (%s) than this command",
	       flag);
	return true;
}

static bool is_ours(const char *who)
{
	return strncmp(who, "gpusonde ", 9) == 0 || strncmp(who, "gpusonde-web ", 13) == 0;
}

/* @error: the result of listening there; @who: the program that uses the address. */
static void report_address(const struct doctor *d, const char *address, int error, const char *who,
			   const char *flag, struct finding *f)
{
	if (error == 0 && !d->status) {
		found(f, VERDICT_OK, "%s is free", address);
	} else if (error == 0) {
		found(f, VERDICT_WARNING, "%s is free, though an agent runs", address);
		remedy(f, "the agent may use another address: pass the same %s here", flag);
	} else if (error == -EADDRINUSE && d->status && (is_ours(who) || STRV_EQ(who, PORT_OWNER_UNKNOWN))) {
		/* Not every user can see who owns a socket; the agent reports that it uses this address. */
		found(f, VERDICT_OK, "%s: the agent", address);
	} else if (error == -EADDRINUSE && STRV_EQ(who, PORT_OWNER_UNKNOWN)) {
		found(f, VERDICT_NOTE, "%s: in use by another program, which may be gpusonde itself",
		      address);
		remedy(f, "sudo gpusonde doctor names the program");
	} else {
		found(f, VERDICT_WARNING, "%s: %s%s", address,
		      error == -EADDRINUSE ? "in use by " : strerror(-error),
		      error == -EADDRINUSE ? who : "");
		remedy(f, "stop that program, or choose another address with %s; none disables it", flag);
	}
}

static void check_tcp(const struct doctor *d, const char *place, const char *address, const char *flag,
		      struct finding *f)
{
	struct addresses addresses;
	char who[128] = "";

	if (agent_has_other(d, place, address, flag, f))
		return;
	if (!address) {
		found(f, VERDICT_OK, "disabled");
		return;
	}
	int r = address_parse(address, &addresses);

	for (unsigned i = 0; r == 0 && i < addresses.n; i++) {
		_cleanup_close_ int fd = -1;

		r = listen_tcp(&addresses.list[i], &fd);
	}
	if (r == -EADDRINUSE)
		port_owner((uint16_t)strtoul(strrchr(address, ':') + 1, NULL, 10), who, sizeof(who));
	report_address(d, address, r, who, flag, f);
}

static void check_http(const struct doctor *d, struct finding *f)
{
	const char *address = options_text(&d->invocation->options, OPT_http_listen);

	check_tcp(d, "http", address, "--listen", f);
}

/* Checks the addresses of the agent; without an agent the configured ones. */
static void check_exposure(const struct doctor *d, struct finding *f)
{
	static const struct {
		enum option_id id;
		const char *place;
	} listeners[] = { { OPT_http_listen, "http" },
			  { OPT_http_container_listen, "http_container" },
			  { OPT_exporter_listen, "exporter" },
			  { OPT_atop_listen, "atop" } };

	for (size_t i = 0; i < ARRAY_SIZE(listeners); i++) {
		const char *its = json_string_value(json_object_get(d->status, listeners[i].place));
		const char *address = its ? its : options_text(&d->invocation->options, listeners[i].id);

		if (!address || !*address || address_is_loopback(address))
			continue;
		found(f, VERDICT_WARNING,
		      "%s%s is %s: everyone who can connect to it can read everything, without "
		      "authentication",
		      its ? "the agent's " : "", option_table[listeners[i].id].key, address);
		remedy(f, "use a loopback address, or a firewall");
		return;
	}
	found(f, VERDICT_OK, d->status ? "the agent listens on loopback only" : "listens on loopback only");
}

static void check_atop(const struct doctor *d, struct finding *f)
{
	check_tcp(d, "atop", options_text(&d->invocation->options, OPT_atop_listen), "--atop-listen", f);
}

static void check_atop_socket(const struct doctor *d, struct finding *f)
{
	const char *name = options_text(&d->invocation->options, OPT_atop_socket);
	char path[128], who[128] = "";
	_cleanup_close_ int fd = -1;

	if (agent_has_other(d, "atop_socket", name, "--atop-socket", f))
		return;
	if (!name) {
		found(f, VERDICT_OK, "disabled");
		return;
	}
	snprintf(path, sizeof(path), "@%s", name);
	int r = listen_unix(path, 0, &fd);

	if (r == -EADDRINUSE)
		abstract_owner(name, who, sizeof(who));
	report_address(d, path, r, who, "--atop-socket", f);
}

/* Whether missing directories can be created in the nearest existing one. 0 or -errno. */
static int check_creatable(const char *dir)
{
	struct place above;

	snprintf(above.path, sizeof(above.path), "%s", dir);
	do {
		char *slash = strrchr(above.path, '/');

		if (!slash)
			return -ENOENT;
		slash[slash == above.path] = 0;
	} while (access(above.path, F_OK) < 0);
	return access(above.path, W_OK | X_OK) < 0 ? -errno : 0;
}

/* A running agent's own. False: there is none, or it does not say. */
static bool check_agents_state(const struct doctor *d, struct finding *f)
{
	const char *dir = json_string_value(json_object_get(d->status, "state_dir"));
	const char *error = json_string_value(json_object_get(d->status, "state_error"));

	if (!dir || !error)
		return false;
	if (!*error) {
		found(f, VERDICT_OK, "the agent keeps its state in %s", dir);
		return true;
	}
	found(f, VERDICT_WARNING, "the agent: " PLACE_STATE_LOST, dir, "written", error);
	remedy(f, "let the agent's user write there, or name another folder for it with --state-dir");
	return true;
}

static void check_state(const struct doctor *d, struct finding *f)
{
	struct place place;
	const char *dir = place_state(&d->invocation->options, &place);
	int r = access(dir, W_OK | X_OK) < 0 ? -errno : 0;
	bool missing = r == -ENOENT;

	if (check_agents_state(d, f))
		return;
	if (missing)
		r = check_creatable(dir);
	if (r == 0) {
		found(f, VERDICT_OK,
		      "an agent with this command's user and options would keep its state in %s, which %s",
		      dir, missing ? "it can create" : "is writable");
		return;
	}
	found(f, VERDICT_WARNING, PLACE_STATE_LOST, dir, missing ? "created" : "written", strerror(-r));
	remedy(f, "run doctor as the agent's user, or set another directory with --state-dir");
}

/* As the agent has it. */
static void check_push(const struct doctor *d, struct finding *f)
{
	const char *state = json_string_value(json_object_get(d->status, "push"));

	if (!state) {
		found(f, VERDICT_NOTE, "only a running agent can say whether anything is pushed");
	} else if (STRV_EQ(state, "off")) {
		found(f, VERDICT_NOTE, "nothing is pushed (push.url, push.cluster and a key)");
	} else if (*state) {
		found(f, VERDICT_WARNING, "pushing to the server: %s", state);
		remedy(f, "see docs/push.md; gpusonde_push_queue_bytes says what waits");
	} else {
		found(f, VERDICT_OK, "the server takes what is pushed");
	}
}

const struct check service_checks[] = {
	{ "config", check_config },     { "agent", check_agent },
	{ "helper", check_helper },     { "http", check_http },
	{ "atop", check_atop },         { "atop-socket", check_atop_socket },
	{ "exposure", check_exposure }, { "state", check_state },
	{ "push", check_push },         { 0 },
};
