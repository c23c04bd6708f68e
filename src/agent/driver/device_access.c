// SPDX-License-Identifier: Apache-2.0
#include "agent/driver/device_access.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/macro.h"
#include "base/thread.h"
#include "devcgroup/devcgroup.h"

enum { STACK_BYTES = 512 << 10, DENIED_UNKNOWN = -1 };
#define END_NS NSEC_PER_SEC

struct wanted_cgroup {
	const char *target; /* points into the text */
	bool denied; /* when it was last looked at, and it stayed so */
	char logged[256]; /* why, as it was logged last */
};

struct device_access {
	/* the main thread's */
	const struct options *options;
	struct model *model;
	int64_t looked_ns; /* boot clock; 0: never */
	pthread_t thread;
	bool started; /* not yet joined */

	atomic_bool running;
	atomic_uint allowed; /* changes that were not counted yet */
	atomic_int denied; /* cgroups, of the newest look */

	/* the thread's while it runs */
	struct devcgroup_host host;
	char *text, *root, *devices;
	struct wanted_cgroup list[DEVICE_ACCESS_MAX];
	unsigned n;
	struct drivers drivers;
	struct nodes nodes; /* of this machine; then of one cgroup's processes, too */
	struct wanted_devices all;
	struct change change;
	struct devcgroup_why why;
};

static void say_once(struct wanted_cgroup *w, const char *why)
{
	if (strncmp(w->logged, why, sizeof(w->logged) - 1) == 0)
		return;
	log_warning("cgroup.allow: %s: %s", w->target, why);
	snprintf(w->logged, sizeof(w->logged), "%s", why);
}

/* Of the agent's own, all devices, those to come too; of others, what they were given. */
static int allow(struct device_access *access, const char *target, const struct place *place)
{
	if (STRV_EQ(target, "self"))
		return devcgroup_allow(place, &access->all, &access->change, &access->why);
	nodes_read(&access->host, &access->drivers, 0, &access->nodes);
	return devcgroup_allow_given(&access->host, place, &access->drivers, &access->nodes, &access->change,
				     &access->why);
}

/* A unit that does not run now may run later. */
static void keep_allowed(struct device_access *access, struct wanted_cgroup *w)
{
	struct place place = PLACE_NONE;
	bool changed = false;
	int r = place_find(&access->host, w->target, &place, &access->why);

	w->denied = false;
	if (r == -ENOENT)
		return;
	if (r == 0)
		r = allow(access, w->target, &place);
	if (r == 0 || access->change.done[0])
		changed = access->change.changed[HIERARCHY_V1] || access->change.changed[HIERARCHY_V2];
	place_done(&place);
	if (changed) {
		log_notice("cgroup.allow: %s was denied NVIDIA's devices: %s", w->target,
			   access->change.done);
		atomic_fetch_add(&access->allowed, 1);
	}
	w->denied = r < 0;
	if (r < 0)
		say_once(w, access->why.text);
	else if (access->change.note[0])
		say_once(w, access->change.note);
	else
		w->logged[0] = 0;
}

static void *keep_all_allowed(void *userdata)
{
	struct device_access *access = userdata;
	int denied = 0, r = drivers_read(&access->host, &access->drivers);

	/* Without a driver there is nothing to allow, yet. */
	if (r == 0) {
		wanted_all(&access->drivers, &access->all);
		for (unsigned i = 0; i < access->n; i++) {
			memset(&access->change, 0, sizeof(access->change));
			keep_allowed(access, &access->list[i]);
			denied += access->list[i].denied;
		}
	}
	if (r == 0 || r == -ENODEV)
		atomic_store(&access->denied, denied);
	atomic_store(&access->running, false);
	return NULL;
}

/* ---- the main thread's ---- */

static void count_results(struct device_access *access)
{
	int denied = atomic_load(&access->denied);

	model_agent_add(access->model, AGENT_CGROUP_ALLOWED, atomic_exchange(&access->allowed, 0));
	if (denied != DENIED_UNKNOWN)
		model_agent_set(access->model, AGENT_CGROUP_DENIED, denied);
}

void device_access_tick(struct device_access *access)
{
	int64_t now = clock_boot_ns();

	if (access->started && !atomic_load(&access->running)) {
		pthread_join(access->thread, NULL);
		access->started = false;
	}
	count_results(access);
	if (access->started ||
	    (access->looked_ns &&
	     now - access->looked_ns < options_number(access->options, OPT_cgroup_interval)))
		return;
	access->looked_ns = now;
	atomic_store(&access->running, true);
	access->started = thread_start(STACK_BYTES, keep_all_allowed, access, &access->thread) == 0;
	if (!access->started)
		atomic_store(&access->running, false);
}

static void take_list(struct device_access *access)
{
	unsigned dropped = 0;
	char *rest = access->text, *word;

	while ((word = strsep(&rest, ", "))) {
		if (!*word)
			continue;
		if (access->n == DEVICE_ACCESS_MAX)
			dropped++;
		else
			access->list[access->n++].target = word;
	}
	if (dropped > 0)
		log_warning("cgroup.allow names more than %d cgroups: %u are left out", DEVICE_ACCESS_MAX,
			    dropped);
}

int device_access_new(const struct options *options, struct model *model, struct device_access **ret_access)
{
	const char *text = options_text(options, OPT_cgroup_allow),
		   *root = options_text(options, OPT_cgroup_root);
	struct device_access *access;

	*ret_access = NULL;
	if (!text || !*text)
		return 0;
	access = calloc(1, sizeof(*access));
	if (!access)
		return -ENOMEM;
	access->options = options;
	access->model = model;
	access->denied = DENIED_UNKNOWN;
	access->text = strdup(text);
	access->root = strdup(root ? root : "");
	access->devices = strdup(options_text(options, OPT_cgroup_devices));
	if (!access->text || !access->root || !access->devices) {
		device_access_free(access);
		return -ENOMEM;
	}
	access->host = (struct devcgroup_host){
		.proc = "/proc", .devices = access->devices, .dev = "/dev", .cgroups = access->root
	};
	take_list(access);
	*ret_access = access;
	return 0;
}

void device_access_free(struct device_access *access)
{
	if (!access)
		return;
	/* One that the kernel holds ends with the process. */
	if (access->started && !thread_join(access->thread, END_NS))
		return;
	free(access->text);
	free(access->root);
	free(access->devices);
	free(access);
}
