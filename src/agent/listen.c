// SPDX-License-Identifier: Apache-2.0
/*
 * The agent's HTTP and control addresses, and reloading the configuration.
 */
#include "agent/agent.h"

#include <errno.h>
#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <systemd/sd-daemon.h>

#include "base/clock.h"
#include "base/log.h"
#include "agent/web/web.h"
#include "agent/web/watch.h"
#include "config/places.h"
#include "config/web_access.h"
#include "view/container/container.h"

/* Creates the folder of the socket where systemd's RuntimeDirectory= has not. */
static void make_folder(const char *path)
{
	_cleanup_free_ char *folder = strdup(path);
	char *slash = folder ? strrchr(folder, '/') : NULL;

	if (!slash || slash == folder)
		return;
	*slash = 0;
	if (mkdir(folder, 0755) < 0 && errno != EEXIST)
		log_debug("cannot create the folder %s: %s", folder, strerror(errno));
}

static void give_to_group(const char *path, const char *name)
{
	const struct group *group = getgrnam(name);

	if (!group)
		log_warning("there is no group %s for the socket %s: create it with groupadd, or change "
			    "control.group",
			    name, path);
	else if (lchown(path, (uid_t)-1, group->gr_gid) < 0)
		log_warning("cannot give the socket %s to the group %s: %s", path, name, strerror(errno));
}

static void explain_no_place(int error)
{
	static const char lost[] =
		"no socket for gpusonde gpus, ps and the like, which will take their own samples: the "
		"folder";

	if (error == -EPERM)
		log_warning(
			"%s /tmp/gpusonde-%u belongs to another user or is writable by others; remove it, or "
			"name another place with --socket",
			lost, geteuid());
	else
		log_warning("%s /tmp/gpusonde-%u cannot be created: %s; make /tmp writable, or name another "
			    "place with --socket",
			    lost, geteuid(), strerror(-error));
}

/*
 * A second agent on the same socket is an error. A socket that cannot be created only means that the command
 * line takes its own samples.
 */
static int listen_control(struct agent *agent, const struct options *options)
{
	const char *group = options_text(options, OPT_control_group);
	struct place place;
	const char *path = place.path;
	int r = place_socket(options, true, &place);

	if (r == -ENOENT)
		return 0;
	if (r < 0) {
		explain_no_place(r);
		return 0;
	}
	make_folder(path);
	r = http_listen_unix(agent->http, path, (unsigned)options_number(options, OPT_control_mode));
	if (r == -EADDRINUSE) {
		log_error("another gpusonde agent serves %s: stop that one, or give this one another "
			  "address with --socket "
			  "and --listen",
			  path);
		return r;
	}
	if (r < 0)
		log_warning("cannot listen on the socket %s, gpusonde gpus, ps and the like will take "
			    "their own samples: %s; "
			    "name a path that this user may write with --socket",
			    path, strerror(-r));
	else if (group)
		give_to_group(path, group);
	if (r == 0)
		log_info("serving gpusonde gpus, ps and the like on %s", path);
	return 0;
}

static const enum option_id address_options[WEB_ADDRESSES] = {
	[WEB_ADDRESS_HTTP] = OPT_http_listen,
	[WEB_ADDRESS_CONTAINER] = OPT_http_container_listen,
	[WEB_ADDRESS_EXPORTER] = OPT_exporter_listen,
};

static int listen_http(struct agent *agent, const struct options *options)
{
	const char *addresses[WEB_ADDRESSES];

	for (unsigned i = 0; i < WEB_ADDRESSES; i++)
		addresses[i] = options_text(options, address_options[i]);
	return web_listen(agent->web, addresses);
}

int agent_listen(struct agent *agent, const struct options *options)
{
	int r = listen_control(agent, options);

	web_set_open(agent->web, options_bool(options, OPT_web_open));
	if (r == 0)
		r = web_watch_new(agent->web, options, &agent->web_watch);
	if (r == 0)
		r = listen_http(agent, options);
	if (r == 0)
		web_listen_atop(agent->web, options_text(options, OPT_atop_listen),
				options_text(options, OPT_atop_socket));
	return r;
}

static bool changed(const struct options *old, const struct options *new, enum option_id id)
{
	return !STRV_EQ(old->v[id].text, new->v[id].text);
}

/*
 * Copies the old value, with its origin, to the new configuration, and the refused value to the old one,
 * which is freed soon.
 */
static void keep_old_value(struct options *old, struct options *new, enum option_id id)
{
	struct option_value refused = new->v[id];

	new->v[id] = old->v[id];
	old->v[id] = refused;
}

/* Texts of options that stay for the agent's life are borrowed for as long (push_config, agent->families). */
static void keep_text(struct options *old, struct options *new, enum option_id id)
{
	char *text = new->v[id].text;

	new->v[id].text = old->v[id].text;
	old->v[id].text = text;
}

static void keep_fixed(struct options *old, struct options *new)
{
	for (unsigned i = 0; i < OPTIONS; i++) {
		if (!option_table[i].restart)
			continue;
		if (!changed(old, new, i)) {
			keep_text(old, new, i);
			continue;
		}
		keep_old_value(old, new, i);
		log_warning("%s stays \"%s\" until the agent is restarted; the configuration now says \"%s\"",
			    option_table[i].key, new->v[i].text, old->v[i].text);
	}
}

/* Before addresses move, which may be allowed by it. */
static void change_access(struct agent *agent, struct options *old, struct options *new)
{
	web_set_open(agent->web, options_bool(new, OPT_web_open));
	if (web_watch_configure(agent->web_watch, new) == 0)
		return;
	log_error("who may ask stays as it was");
	for (unsigned i = 0; i < WEB_ACCESS_OPTIONS; i++)
		keep_old_value(old, new, web_access_options[i]);
}

static void move_http(struct agent *agent, struct options *old, struct options *new)
{
	bool moved = changed(old, new, OPT_web_open);

	for (unsigned i = 0; i < WEB_ADDRESSES; i++)
		moved |= changed(old, new, address_options[i]);
	if (!moved || listen_http(agent, new) == 0)
		return;
	for (unsigned i = 0; i < WEB_ADDRESSES; i++)
		keep_old_value(old, new, address_options[i]);
	keep_old_value(old, new, OPT_web_open);
	web_set_open(agent->web, options_bool(new, OPT_web_open));
	log_error("going back to the former addresses: %s, %s and %s", new->v[OPT_http_listen].text,
		  new->v[OPT_http_container_listen].text, new->v[OPT_exporter_listen].text);
	(void)listen_http(agent, new);
}

void agent_copy_places(struct agent *agent)
{
	const struct options *options = &agent->invocation->options;
	static const enum option_id ids[AGENT_PLACES] = {
		[PLACE_HTTP] = OPT_http_listen,         [PLACE_CONTAINER] = OPT_http_container_listen,
		[PLACE_EXPORTER] = OPT_exporter_listen, [PLACE_ATOP] = OPT_atop_listen,
		[PLACE_ATOP_SOCKET] = OPT_atop_socket,
	};

	atomic_store(&agent->container_flags,
		     options_bool(options, OPT_http_container_compat) ? CONTAINER_ZXPORTER : 0);
	pthread_mutex_lock(&agent->lock);
	for (unsigned i = 0; i < AGENT_PLACES; i++) {
		const char *text = options_text(options, ids[i]);

		snprintf(agent->places[i], sizeof(agent->places[i]), "%s", text ? text : "");
	}
	pthread_mutex_unlock(&agent->lock);
}

static void apply(struct agent *agent, struct options *new)
{
	struct options *old = &agent->invocation->options;

	keep_fixed(old, new);
	log_setup(LOG_TARGET_STDERR, (int)options_number(new, OPT_log_level), "gpusonde");
	collector_configure(agent->collector, new);
	change_access(agent, old, new);
	move_http(agent, old, new);
	if (changed(old, new, OPT_atop_listen) || changed(old, new, OPT_atop_socket) ||
	    changed(old, new, OPT_web_open))
		web_listen_atop(agent->web, options_text(new, OPT_atop_listen),
				options_text(new, OPT_atop_socket));
	options_done(old);
	*old = *new;
	*new = (struct options){ 0 };
	agent_copy_places(agent);
	/* tick now: the next tick of a long old period may be a minute away */
	agent->tick_ns = clock_boot_ns();
	sd_event_source_set_time(agent->tick, (uint64_t)(agent->tick_ns / NSEC_PER_USEC));
	log_notice("configuration reloaded");
}

void agent_reload(struct agent *agent)
{
	struct strbuf errors, warnings;
	struct options new = { 0 };
	int r;

	sd_notifyf(false, "RELOADING=1\nMONOTONIC_USEC=%lld", (long long)(clock_mono_ns() / NSEC_PER_USEC));
	strbuf_init(&errors, 64 << 10);
	strbuf_init(&warnings, 64 << 10);
	r = cmdline_options(agent->invocation, &new, &errors, &warnings);
	if (r < 0)
		log_error("cannot read the configuration, the old one stays: %s", strerror(-r));
	else if (errors.len > 0)
		log_error("the configuration has errors, the old one stays:");
	log_lines(LOG_ERR, errors.data);
	if (r == 0 && errors.len == 0)
		apply(agent, &new);
	options_done(&new);
	strbuf_done(&errors);
	strbuf_done(&warnings);
	sd_notify(false, "READY=1");
}
