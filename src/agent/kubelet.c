// SPDX-License-Identifier: Apache-2.0
#include "agent/kubelet.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "agent/claims.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/macro.h"
#include "base/text.h"
#include "config.h"
#include "helper/helper.h"
#include "kubelet/protocol.h"

#define ASK_NS (10 * NSEC_PER_SEC)
#define ASK_SOON_NS (900 * NSEC_PER_MSEC) /* with the next tick of a second */
#define RETRY_NS (2 * NSEC_PER_SEC) /* after a failure; then twice as long each time */
#define ASK_LATEST_NS (60 * NSEC_PER_SEC) /* while kubelet refuses or fails */
#define ANSWER_NS (10 * NSEC_PER_SEC)
/* A kubelet that is replaced is back sooner; what it said before stays until then. */
#define GONE_NS (60 * NSEC_PER_SEC)
/* A container that kubelet does not know, Docker's for example, never gets a name from it. */
enum { SOON_MAX = 5, MAX_STUCK = 2 };

/* Kubelet's own, and those of distributions that put its folder elsewhere (k3s and RKE2 do not). */
static const char *const sockets[] = {
	"/var/lib/kubelet/pod-resources/kubelet.sock",
	"/var/snap/microk8s/common/var/lib/kubelet/pod-resources/kubelet.sock",
	"/var/lib/k0s/kubelet/pod-resources/kubelet.sock",
};

static const enum agent_metric dropped_metric[KUBELET_TABLES] = {
	[KUBELET_OWNERS] = AGENT_DROPPED_OWNERS,
	[KUBELET_ALLOCATIONS] = AGENT_DROPPED_ALLOCATIONS,
	[KUBELET_LISTED] = AGENT_DROPPED_ALLOCATIONS,
	[KUBELET_POD_HEALTH] = AGENT_DROPPED_ALLOCATIONS,
};

struct kubelet {
	struct model *model;
	struct helper *helper;
	char *root, *socket, *resources;
	bool asked;
	int64_t asked_ns, after_ns; /* boot clock; 0: never. The next question is due so long after it */
	unsigned failures; /* in a row */
	int64_t answered_ns; /* boot clock, of the newest answer; 0: none */
	unsigned closings; /* in a row: connections that kubelet closed as soon as it had answered */
	uint64_t unnamed; /* model_unnamed() as of the last tick */
	unsigned soon; /* questions that were asked soon since the newest of these came */
	int64_t gone_ns; /* since when the socket has not been there; 0: it is there */
	uint64_t known[KUBELET_TABLES]; /* digests of the tables that the model has; 0: none */
	struct arriving arriving[KUBELET_TABLES];
	uint64_t dropped[KUBELET_TABLES]; /* as of the newest answer */
	struct claims *claims; /* allocations whose devices the API has to tell */
	uint32_t unmatched, claimed; /* as of the newest answer with allocations */
	bool used; /* the source has said something */
	char logged[256], noted[256]; /* the error and the note that were logged last */
};

/* The place @i where a socket may be. -ENOENT: there are no more; -ENAMETOOLONG. */
static int socket_place(const char *root, const char *socket, size_t i, char ret_path[PATH_MAX],
			size_t *ret_below)
{
	bool search = STRV_EQ(socket, "auto");
	size_t n = strlen(root);
	const char *below;

	if (i >= (search ? ARRAY_SIZE(sockets) : 1))
		return -ENOENT;
	while (n > 0 && root[n - 1] == '/')
		n--;
	below = search ? sockets[i] : socket;
	*ret_below = n;
	return snprintf(ret_path, PATH_MAX, "%.*s%s%s", (int)n, root, *below == '/' ? "" : "/", below) <
			       PATH_MAX ?
		       0 :
		       -ENAMETOOLONG;
}

void kubelet_list_sockets(const char *root, const char *socket, char *buf, size_t size)
{
	char path[PATH_MAX];
	size_t n = 0, below;

	*buf = '\0';
	for (size_t i = 0; n < size && socket_place(root, socket, i, path, &below) == 0; i++)
		n += (size_t)snprintf(buf + n, size - n, "%s%s", i ? ", " : "", path);
}

int kubelet_find_socket(const char *root, const char *socket, char ret_path[PATH_MAX], size_t *ret_below)
{
	for (size_t i = 0;; i++) {
		struct statx st;
		int r = socket_place(root, socket, i, ret_path, ret_below);

		if (r < 0)
			return r;
		/*
		 * Without asking the server of a network file system. Where we may not look there is
		 * something.
		 */
		if (statx(AT_FDCWD, ret_path, AT_STATX_DONT_SYNC, STATX_TYPE, &st) < 0 ?
			    errno == EACCES :
			    S_ISSOCK(st.stx_mode))
			return 0;
	}
}

/* ---- what the source is said to be ---- */

/* Unlike names and what was given it does not stay while nobody says it. */
static void forget_health(struct kubelet *k, enum kubelet_table which)
{
	model_set_health(k->model, which == KUBELET_LISTED ? HEALTH_KUBELET_LIST : HEALTH_KUBELET_PODS, NULL,
			 0);
	k->known[which] = 0;
}

static void set_state(struct kubelet *k, const char *error)
{
	char text[sizeof(((struct source *)NULL)->error)];

	if (*error) {
		forget_health(k, KUBELET_LISTED);
		forget_health(k, KUBELET_POD_HEALTH);
	}
	snprintf(text, sizeof(text), "kubelet: %.240s", error);
	if (*error && !STRV_EQ(error, k->logged))
		log_warning("%s%s", text, k->known[KUBELET_ALLOCATIONS] ? "; what it said before stays" : "");
	else if (!*error && *k->logged)
		log_notice("kubelet answers again");
	snprintf(k->logged, sizeof(k->logged), "%s", error);
	k->used = true;
	model_set_source(k->model, SOURCE_KUBELET, *error ? READING_FAILED : READING_OK, *error ? text : "");
}

static void log_note(struct kubelet *k, const char *note)
{
	if (*note && !STRV_EQ(note, k->noted))
		log_warning("kubelet: %s", note);
	snprintf(k->noted, sizeof(k->noted), "%s", note);
}

/* ---- answers ---- */

static bool end_is_valid(const struct kubelet *k, const struct kubelet_end *end, size_t n)
{
	return n == sizeof(*end) && end->message == PART_OTHERS && end->outcome < KUBELET_OUTCOMES &&
	       parts_are_whole(k->arriving, KUBELET_TABLES, end->digest, k->known);
}

static int give_allocations(struct kubelet *k)
{
	const struct allocation *rows;
	uint32_t n;
	int r = claims_resolve(k->claims, &rows, &n);

	return r < 0 ? r : model_set_allocations(k->model, SOURCE_KUBELET, rows, n);
}

static void show_unmatched(struct kubelet *k)
{
	uint32_t resolved = k->claimed - MIN(claims_left(k->claims), k->claimed);

	model_agent_set(k->model, AGENT_KUBELET_UNMATCHED, k->unmatched - MIN(resolved, k->unmatched));
}

bool kubelet_has_claims(const struct kubelet *k)
{
	return claims_any(k->claims);
}

void kubelet_set_devices(struct kubelet *k, const struct kube_device *list, uint32_t n)
{
	if (claims_set_devices(k->claims, list, n) == 0 && k->known[KUBELET_ALLOCATIONS] &&
	    give_allocations(k) == 0)
		show_unmatched(k);
}

static int give_table(struct kubelet *k, enum kubelet_table which)
{
	const struct arriving *table = &k->arriving[which];

	if (which == KUBELET_OWNERS)
		return model_set_owners(k->model, SOURCE_KUBELET, table->list, table->n);
	if (which == KUBELET_LISTED)
		return model_set_health(k->model, HEALTH_KUBELET_LIST, table->list, table->n);
	if (which == KUBELET_POD_HEALTH)
		return model_set_health(k->model, HEALTH_KUBELET_PODS, table->list, table->n);
	int r = claims_set_rows(k->claims, table->list, table->n);

	return r < 0 ? r : give_allocations(k);
}

static void take_tables(struct kubelet *k, const struct kubelet_end *end)
{
	for (unsigned i = 0; i < KUBELET_TABLES; i++) {
		if (!end->digest[i] && k->known[i] && (i == KUBELET_LISTED || i == KUBELET_POD_HEALTH))
			forget_health(k, i); /* nobody says it any more */
		if (k->arriving[i].list)
			k->known[i] = give_table(k, i) < 0 ? 0 : end->digest[i];
		/* Those that do not fit stay so, and are counted once. */
		if (end->digest[i] && end->dropped[i] > k->dropped[i])
			model_agent_add(k->model, dropped_metric[i],
					(double)(end->dropped[i] - k->dropped[i]));
		if (end->digest[i])
			k->dropped[i] = end->dropped[i];
	}
	parts_forget(k->arriving, KUBELET_TABLES);
}

static void take_figures(struct kubelet *k, const struct kubelet_end *end)
{
	if (end->allocatable != UINT32_MAX)
		model_agent_set(k->model, AGENT_KUBELET_ALLOCATABLE, end->allocatable);
	if (end->digest[KUBELET_ALLOCATIONS]) {
		k->unmatched = end->unmatched;
		k->claimed = end->claimed;
		show_unmatched(k);
	}
}

static void retry_later(struct kubelet *k, int64_t first_ns)
{
	k->after_ns = k->failures++ ? MIN(k->after_ns * 2, ASK_LATEST_NS) : first_ns;
}

static void take_end(struct kubelet *k, struct kubelet_end *end)
{
	k->asked = false;
	k->answered_ns = clock_boot_ns();
	helper_deadline(k->helper, 0);
	end->error[sizeof(end->error) - 1] = end->note[sizeof(end->note) - 1] = '\0';
	utf8_sanitize(end->error);
	utf8_sanitize(end->note);
	take_tables(k, end);
	take_figures(k, end);
	/* That the API has told them all is no news that kubelet could know. */
	if (end->unmatched > end->claimed || claims_left(k->claims) > 0 || end->claimed == 0)
		log_note(k, end->note);
	if (end->outcome == KUBELET_OK) {
		set_state(k, "");
		k->after_ns = ASK_NS;
		k->failures = 0;
	} else {
		set_state(k, end->error[0] ? end->error : "no reason is given");
		retry_later(k, end->outcome == KUBELET_BUSY ? 2 * ASK_NS : RETRY_NS);
	}
	if (end->replace)
		helper_stop(k->helper);
}

static void take_answer(const void *message, size_t n, int fd, void *userdata)
{
	static struct kubelet_end end;
	struct kubelet *k = userdata;

	closep(&fd);
	memset(&end, 0, sizeof(end));
	memcpy(&end, message, MIN(n, sizeof(end)));
	if (!k->asked)
		helper_reject(k->helper);
	else if (end.message == PART_ROWS && parts_take(k->arriving, KUBELET_TABLES, message, n))
		return;
	else if (end_is_valid(k, &end, n))
		take_end(k, &end);
	else
		helper_reject(k->helper);
}

/*
 * Kubelet has closed the connection, and what it says now is another process's to ask: at once, unless it
 * failed or closes each connection after the answer, which must not cost a process a second.
 */
static void on_closed(struct kubelet *k)
{
	if (k->failures > 0)
		return;
	if (clock_boot_ns() - k->answered_ns >= RETRY_NS) {
		k->closings = 0;
		k->asked_ns = 0;
		return;
	}
	k->after_ns = MIN(RETRY_NS << MIN(k->closings, 3u), ASK_NS);
	k->closings++;
}

static void on_helper_lost(bool hung, void *userdata)
{
	struct kubelet *k = userdata;

	parts_forget(k->arriving, KUBELET_TABLES);
	if (!k->asked) {
		on_closed(k);
		return;
	}
	k->asked = false;
	retry_later(k, RETRY_NS);
	set_state(k, hung ? "the process that asks it, gpusonde-kubelet, does not answer" :
			    "the process that asks it, gpusonde-kubelet, ended");
}

/* ---- questions ---- */

static void ask_helper(struct kubelet *k, const char *socket, int64_t now_ns)
{
	static struct kubelet_question question;
	int r;

	question = (struct kubelet_question){ .version = GPUSONDE_VERSION };
	memcpy(question.known, k->known, sizeof(question.known));
	snprintf(question.root, sizeof(question.root), "%s", k->root);
	snprintf(question.socket, sizeof(question.socket), "%s", socket);
	snprintf(question.resources, sizeof(question.resources), "%s", k->resources);
	r = helper_send(k->helper, &question, sizeof(question), -1);
	if (r == -EAGAIN)
		return; /* with the next tick */
	k->asked_ns = now_ns;
	if (r < 0) {
		set_state(k, r == -EBUSY ? "too many processes that ask it hang" : strerror(-r));
		return;
	}
	k->asked = true;
	helper_deadline(k->helper, ANSWER_NS);
}

/* Of a kubelet that has been gone for so long no pod is left. */
static void forget_tables(struct kubelet *k)
{
	model_set_owners(k->model, SOURCE_KUBELET, NULL, 0);
	model_set_allocations(k->model, SOURCE_KUBELET, NULL, 0);
	memset(k->known, 0, sizeof(k->known));
	(void)claims_set_rows(k->claims, NULL, 0);
	set_state(k, "its socket is gone, and what it said is forgotten");
}

static void miss_socket(struct kubelet *k, int64_t now_ns)
{
	k->asked_ns = now_ns;
	k->after_ns = k->used ? RETRY_NS : ASK_NS;
	if (!k->used)
		return; /* no node of Kubernetes */
	helper_stop(k->helper);
	if (k->gone_ns == 0)
		k->gone_ns = now_ns;
	if (now_ns - k->gone_ns >= GONE_NS && (k->known[KUBELET_OWNERS] || k->known[KUBELET_ALLOCATIONS]))
		forget_tables(k);
	else if (now_ns - k->gone_ns < GONE_NS)
		set_state(k, "its socket is gone");
}

static bool is_due(struct kubelet *k, int64_t now_ns)
{
	bool wanted = k->after_ns == ASK_NS && model_wants_owners(k->model);
	uint64_t unnamed = model_unnamed(k->model);

	if (unnamed != k->unnamed)
		k->soon = 0;
	k->unnamed = unnamed;
	if (k->asked_ns == 0 || now_ns - k->asked_ns >= k->after_ns)
		return true;
	if (!wanted || k->soon >= SOON_MAX || now_ns - k->asked_ns < ASK_SOON_NS || k->gone_ns || !k->used)
		return false;
	k->soon++;
	return true;
}

void kubelet_tick(struct kubelet *k)
{
	int64_t now_ns = clock_boot_ns();
	char path[PATH_MAX];
	size_t below;

	if (k->asked || !is_due(k, now_ns))
		return;
	if (kubelet_find_socket(k->root, k->socket, path, &below) < 0) {
		miss_socket(k, now_ns);
		return;
	}
	k->gone_ns = 0;
	ask_helper(k, path + below, now_ns);
}

/* ---- life ---- */

int kubelet_new(sd_event *event, struct model *model, const struct kubelet_config *config,
		struct kubelet **ret_kubelet)
{
	static const struct helper_ops ops = { take_answer, on_helper_lost };
	const struct helper_config helper = {
		.program = config->program ? config->program : "gpusonde-kubelet",
		.role = "kubelet",
		.capabilities = KUBELET_CAPABILITIES,
		.max_stuck = MAX_STUCK,
	};
	_cleanup_(kubelet_freep) struct kubelet *k = calloc(1, sizeof(*k));
	int r;

	if (!k)
		return -ENOMEM;
	k->model = model;
	k->root = strdup(config->root);
	k->socket = strdup(config->socket);
	k->resources = strdup(config->resources ? config->resources : "");
	k->after_ns = ASK_NS;
	if (!k->root || !k->socket || !k->resources || claims_new(&k->claims) < 0)
		return -ENOMEM;
	k->arriving[KUBELET_OWNERS] =
		(struct arriving){ .row_bytes = sizeof(struct owner), .max = OWNERS_MAX };
	k->arriving[KUBELET_ALLOCATIONS] =
		(struct arriving){ .row_bytes = sizeof(struct allocation), .max = ALLOCATIONS_MAX };
	k->arriving[KUBELET_LISTED] = k->arriving[KUBELET_POD_HEALTH] =
		(struct arriving){ .row_bytes = sizeof(struct device_health), .max = DEVICE_HEALTH_MAX };
	r = helper_new(event, &helper, &ops, k, &k->helper);
	if (r < 0)
		return r;
	model_set_source_period(model, SOURCE_KUBELET, ASK_NS);
	*ret_kubelet = TAKE_PTR(k);
	return 0;
}

void kubelet_free(struct kubelet *k)
{
	if (!k)
		return;
	helper_free(k->helper);
	parts_forget(k->arriving, KUBELET_TABLES);
	free(k->root);
	free(k->socket);
	free(k->resources);
	claims_free(k->claims);
	free(k);
}

pid_t kubelet_pid(const struct kubelet *k)
{
	struct helper_stats stats;

	helper_stats(k->helper, &stats);
	return stats.pid;
}
