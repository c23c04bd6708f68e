// SPDX-License-Identifier: Apache-2.0
/* doctor's checks of the agent, its configuration, addresses and directories. */
#include "cmd/doctor/doctor.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "cmd/snapshot_client.h"
#include "config/places.h"
#include "config/web_access.h"
#include "config/web_config.h"
#include "helper/helper.h"
#include "proc/port.h"
#include "nvml/spawn.h"
#include "serve/access.h"
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

/* What is asked of clients: by the agent, or as it is configured here. "": nothing. */
static void describe_access(const struct doctor *d, char *ret_text, size_t size)
{
	const char *its = json_string_value(json_object_get(d->status, "access"));
	_cleanup_(access_unrefp) struct access *access = NULL;
	struct strbuf records, errors;

	snprintf(ret_text, size, "%s", its ? its : "");
	if (its)
		return;
	strbuf_init(&records, ACCESS_BYTES_MAX);
	strbuf_init(&errors, 64 << 10);
	if (web_access_of(&d->invocation->options, &records, &errors) == 0 && errors.len == 0 &&
	    access_new(records.data, records.len, &access, NULL) == 0)
		access_describe(access, ret_text, size);
	explicit_bzero(records.data, records.cap);
	strbuf_done(&records);
	strbuf_done(&errors);
}

static bool asks_who_it_is(const char *access)
{
	return strstr(access, "users") || strstr(access, "tokens") || strstr(access, "certificates");
}

/* @access: what is asked of clients there. */
static void report_exposure(const char *whose, const char *option, const char *address, const char *access,
			    struct finding *f)
{
	bool asks = asks_who_it_is(access);

	if (asks && strstr(access, "TLS")) {
		found(f, VERDICT_OK, "%s%s is %s: who connects is asked who it is (%s)", whose, option,
		      address, access);
	} else if (asks) {
		found(f, VERDICT_WARNING,
		      "%s%s is %s: who connects is asked who it is (%s), but without TLS passwords and "
		      "tokens cross the network as they are",
		      whose, option, address, access);
		remedy(f, "add tls_server_config to the file of web.config_file");
	} else {
		found(f, VERDICT_WARNING,
		      "%s%s is %s: everyone who can connect to it can read everything, without "
		      "authentication",
		      whose, option, address);
		remedy(f,
		       "name users or tokens (web.config_file, web.tokens), or use a loopback address, or a "
		       "firewall");
	}
}

/* Checks the addresses of the agent; without an agent the configured ones. The worst is told. */
static void check_exposure(const struct doctor *d, struct finding *f)
{
	static const struct {
		enum option_id id;
		const char *place;
		bool asks; /* atop's protocol cannot */
	} listeners[] = { { OPT_atop_listen, "atop", false },
			  { OPT_http_listen, "http", true },
			  { OPT_http_container_listen, "http_container", true },
			  { OPT_exporter_listen, "exporter", true } };
	char access[64];

	describe_access(d, access, sizeof(access));
	for (size_t i = 0; i < ARRAY_SIZE(listeners); i++) {
		const char *its = json_string_value(json_object_get(d->status, listeners[i].place));
		const char *address = its ? its : options_text(&d->invocation->options, listeners[i].id);

		if (!address || !*address || address_is_loopback(address))
			continue;
		report_exposure(its ? "the agent's " : "", option_table[listeners[i].id].key, address,
				listeners[i].asks ? access : "", f);
		return;
	}
	found(f, VERDICT_OK, "%s%s%s%s", d->status ? "the agent listens" : "listens", " on loopback only",
	      *access ? ", and asks who it is: " : "", access);
}

/*
 * Whether others than owner and group can read the file, or one of a folder of files. That a folder above
 * keeps them away is not looked at.
 */
static bool others_read(const char *path)
{
	DIR *dir = opendir(path);
	struct dirent *e;
	bool found = false;
	struct stat st;

	if (!dir)
		return stat(path, &st) == 0 && st.st_mode & S_IROTH;
	bool open_to_all = fstat(dirfd(dir), &st) == 0 && st.st_mode & S_IXOTH;

	while (open_to_all && !found && (e = readdir(dir)))
		found = fstatat(dirfd(dir), e->d_name, &st, 0) == 0 && S_ISREG(st.st_mode) &&
			st.st_mode & S_IROTH;
	closedir(dir);
	return found;
}

static bool warn_of_readable(const char *key, const char *path, struct finding *f)
{
	if (!others_read(path))
		return false;
	found(f, VERDICT_WARNING, "%s: every user of this machine can read %s", key, path);
	remedy(f, "chmod o-rwx %s; what was in it may be known already", path);
	return true;
}

/* Also what only names the files with secrets. A pod's own token is its owner's matter. */
static bool is_secret_file(unsigned option)
{
	return option == OPT_web_config_file ||
	       (option_table[option].secret && !*option_table[option].secret);
}

/* Of files whose content gives a right. */
static void check_secret_files(const struct doctor *d, struct finding *f)
{
	char key[PATH_MAX];
	unsigned n = 0;

	for (unsigned i = 0; i < OPTIONS; i++) {
		const char *path = is_secret_file(i) ? options_text(&d->invocation->options, i) : NULL;

		if (!path || !*path)
			continue;
		n++;
		if (warn_of_readable(option_table[i].key, path, f))
			return;
		if (i != OPT_web_config_file || !web_config_key_file(path, key))
			continue;
		n++;
		if (warn_of_readable("key_file of web.config_file", key, f))
			return;
	}
	if (n > 0)
		found(f, VERDICT_OK, "%u file%s of keys, tokens or passwords: none that everybody can read",
		      n, n == 1 ? "" : "s");
	else
		found(f, VERDICT_OK, "no file of keys, tokens or passwords is configured");
}

/* As it is configured here. */
static void check_control(const struct doctor *d, struct finding *f)
{
	const char *names = options_text(&d->invocation->options, OPT_web_control);
	bool all = names && STRV_EQ(names, "*");
	char access[64];

	describe_access(d, access, sizeof(access));
	if (!names || !*names || STRV_EQ(names, "none")) {
		found(f, VERDICT_OK, "nobody may begin timelines over the network (web.control)");
	} else if (strstr(access, "TLS") && asks_who_it_is(access)) {
		found(f, VERDICT_NOTE, "%s may begin and end timelines over the network (web.control)",
		      all ? "everybody who is known" : names);
	} else {
		found(f, VERDICT_WARNING,
		      "web.control names %s, and nobody may begin timelines over the network: that needs "
		      "TLS, and users, tokens or certificates",
		      names);
		remedy(f, "see docs/web.md, or leave out web.control");
	}
}

/* Where nobody is asked who it is, nobody has a name. */
static const char *who_may(const struct doctor *d, enum option_id id, bool asks)
{
	const char *names = options_text(&d->invocation->options, id);

	if (names && STRV_EQ(names, "*"))
		return asks ? "everybody who is known" : "everybody";
	return asks && names && *names && !STRV_EQ(names, "none") ? names : "nobody";
}

/* As it is configured here. */
static void check_views(const struct doctor *d, struct finding *f)
{
	char access[64];

	describe_access(d, access, sizeof(access));
	bool asks = asks_who_it_is(access);

	found(f, VERDICT_OK, "%s%s may read pages, %s what was recorded (web.views, web.recordings)",
	      asks ? "" : "nobody is asked who it is: ", who_may(d, OPT_web_views, asks),
	      who_may(d, OPT_web_recordings, asks));
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

/* As the agent has it, of each destination. */
static void check_push(const struct doctor *d, struct finding *f)
{
	json_t *states = json_object_get(d->status, "push"), *state;
	unsigned works = 0;
	const char *name;

	json_object_foreach(states, name, state) {
		const char *text = json_string_value(state);

		if (!text || STRV_EQ(text, "off"))
			continue;
		if (*text) {
			found(f, VERDICT_WARNING, "pushing to the server (%s): %s", name, text);
			remedy(f, "see docs/push.md; gpusonde_push_queue_bytes says what waits");
			return;
		}
		works++;
	}
	if (!json_is_object(states))
		found(f, VERDICT_NOTE, "only a running agent can say whether anything is pushed");
	else if (works == 0)
		found(f, VERDICT_NOTE, "nothing is pushed (see docs/push.md)");
	else
		found(f, VERDICT_OK, "the server takes what is pushed");
}

static void check_textfile(const struct doctor *d, struct finding *f)
{
	const char *state = json_string_value(json_object_get(d->status, "textfile"));

	if (!state) {
		found(f, VERDICT_NOTE,
		      "only a running agent can say whether a file for node_exporter is "
		      "written");
	} else if (STRV_EQ(state, "off")) {
		found(f, VERDICT_NOTE, "no file is written for node_exporter (textfile.path)");
	} else if (*state) {
		found(f, VERDICT_WARNING, "the file for node_exporter: %s", state);
		remedy(f, "see docs/textfile.md");
	} else {
		found(f, VERDICT_OK, "the file for node_exporter is written");
	}
}

static void check_statsd(const struct doctor *d, struct finding *f)
{
	const char *state = json_string_value(json_object_get(d->status, "statsd"));

	if (!state) {
		found(f, VERDICT_NOTE, "only a running agent can say whether figures are sent to StatsD");
	} else if (STRV_EQ(state, "off")) {
		found(f, VERDICT_NOTE, "nothing is sent to StatsD (statsd.address)");
	} else if (*state) {
		found(f, VERDICT_WARNING, "sending to StatsD: %s", state);
		remedy(f, "see docs/statsd.md; gpusonde_statsd_packets_total says what was lost");
	} else {
		found(f, VERDICT_OK, "figures are sent to StatsD");
	}
}

const struct check service_checks[] = {
	{ "config", check_config },
	{ "agent", check_agent },
	{ "helper", check_helper },
	{ "http", check_http },
	{ "atop", check_atop },
	{ "atop-socket", check_atop_socket },
	{ "exposure", check_exposure },
	{ "secret-files", check_secret_files },
	{ "web-views", check_views },
	{ "web-control", check_control },
	{ "state", check_state },
	{ "push", check_push },
	{ "textfile", check_textfile },
	{ "statsd", check_statsd },
	{ 0 },
};
