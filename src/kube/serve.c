// SPDX-License-Identifier: Apache-2.0
#include "kube/serve.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/strbuf.h"
#include "base/text.h"
#include "helper/below.h"
#include "helper/message.h"
#include "kube/node_labels.h"
#include "kube/slices.h"
#include "kube/tables.h"
#include "kube/url.h"
#include "kube/watch.h"

#define STEP_NS NSEC_PER_SEC /* at the latest so soon: credentials, pods to forget */

struct kube_server {
	struct kube_settings settings;
	char error[256]; /* why it does nothing: credentials, options; "" */
	struct access access;
	struct stat config; /* of the kubeconfig when it was read */
	struct client *client;
	struct node_pods pods;
	struct walk *walk;
	struct watch *watch;
	struct node_labels *labels;
	struct slices *slices;
	struct tables tables;
	uint64_t made_pods, made_walk; /* changes that the tables have; UINT64_MAX: none made yet */
	uint64_t told_lists, told_failures[NET_FAILURES];
	struct kube_end end;
};

/* ---- credentials ---- */

/* Another server or user is another process's, which is confined to their files. */
static bool config_has_changed(const struct kube_server *s)
{
	struct stat st;

	if (!s->settings.kubeconfig[0] || stat(s->settings.kubeconfig, &st) < 0)
		return false;
	return st.st_ino != s->config.st_ino || st.st_size != s->config.st_size ||
	       st.st_mtim.tv_sec != s->config.st_mtim.tv_sec ||
	       st.st_mtim.tv_nsec != s->config.st_mtim.tv_nsec;
}

static void refresh_access(struct kube_server *s, int64_t now_ns)
{
	unsigned news = access_refresh(&s->access, now_ns, watch_take_rejected(s->watch));

	if (news & ACCESS_NEW_FILES) {
		watch_reconnect(s->watch);
		client_close_idle(s->client);
	}
	if (news)
		watch_hurry(s->watch);
}

static int load_access(struct kube_server *s)
{
	const struct access_config config = {
		.server = s->settings.server,
		.kubeconfig = s->settings.kubeconfig,
		.context = s->settings.context,
		.account = s->settings.account,
		.host = s->settings.host,
		.port = s->settings.port,
	};

	if (s->settings.kubeconfig[0])
		(void)stat(s->settings.kubeconfig, &s->config);
	return access_load(&config, &s->access, s->error, sizeof(s->error));
}

/* ---- the API server ---- */

/* Pods that have ended have no containers: the server leaves them out. */
static int add_query(struct strbuf *query, const char *node)
{
	strbuf_adds(query, "fieldSelector=spec.nodeName%3D");
	url_add(query, node);
	strbuf_adds(query, "%2Cstatus.phase%21%3DSucceeded%2Cstatus.phase%21%3DFailed");
	return query->failed ? -ENOMEM : 0;
}

/* Of all namespaces, or of one: what a Role permits. */
static int add_path(struct strbuf *path, const char *namespace)
{
	if (*namespace && !url_is_segment(namespace))
		return -EINVAL;
	strbuf_adds(path, "/api/v1/");
	if (*namespace) {
		strbuf_adds(path, "namespaces/");
		url_add(path, namespace);
		strbuf_adds(path, "/");
	}
	strbuf_adds(path, "pods");
	return path->failed ? -ENOMEM : 0;
}

static int watch_pods(struct kube_server *s)
{
	struct watch_config config = {
		.paths = node_pod_paths,
		.paths_n = node_pod_paths_n,
		.ops = node_pod_ops,
		.list_begins = node_pods_list_begins,
		.list_ended = node_pods_list_ended,
		.object_begins = node_pods_object_begins,
		.object_ended = node_pods_object_ended,
		.userdata = &s->pods,
		.timeout_ns = s->settings.watch_ns,
	};
	struct strbuf query, path;
	int r;

	strbuf_init(&query, 0);
	strbuf_init(&path, 0);
	r = add_query(&query, s->settings.node);
	if (r == 0)
		r = add_path(&path, s->settings.namespace);
	config.query = query.data;
	config.path = path.data;
	if (r == 0)
		r = watch_new(s->client, &config, &s->watch);
	strbuf_done(&query);
	strbuf_done(&path);
	return r;
}

static int look_for_exporters(struct kube_server *s, struct selector **ret_selector)
{
	char why[128] = "";
	int r;

	if (!s->settings.exporters[0])
		return 0;
	r = selector_new(s->settings.exporters, why, sizeof(why), ret_selector);
	if (r == -EINVAL || r == -E2BIG)
		snprintf(s->error, sizeof(s->error), "the label selector of exporters: %s", why);
	return r;
}

static int begin_asking(struct kube_server *s)
{
	struct selector *selector = NULL;
	int r = load_access(s);

	if (r == 0)
		r = look_for_exporters(s, &selector);
	if (r == 0)
		r = node_pods_init(&s->pods, s->settings.workload_labels, selector);
	if (r == 0)
		node_pods_name(&s->pods, s->settings.pod_run, s->settings.pod_group, s->settings.resources);
	if (r == 0)
		r = client_new(&s->access, &s->client);
	if (r == 0)
		r = walk_new(s->client, MAX(s->settings.cache, 1u), &s->walk);
	if (r == 0)
		r = watch_pods(s);
	if (r == 0)
		r = node_labels_new(s->client, s->settings.node, s->settings.node_labels,
				    &s->tables.list[KUBE_LABELS], &s->labels);
	if (r == 0)
		r = slices_new(s->client, s->settings.node, &s->tables.list[KUBE_DEVICES], &s->slices);
	return r;
}

/* Returns when to go on at the latest, monotonic clock. */
static int64_t go_on(struct kube_server *s)
{
	int64_t now_ns = clock_mono_ns(), due_ns = now_ns + STEP_NS;

	client_step(s->client);
	refresh_access(s, now_ns);
	node_pods_forget(&s->pods, now_ns);
	due_ns = MIN(due_ns, watch_step(s->watch, now_ns));
	if (watch_state(s->watch)->listed)
		due_ns = MIN(due_ns, walk_step(s->walk, &s->pods, now_ns));
	due_ns = MIN(due_ns, node_labels_step(s->labels, now_ns));
	due_ns = MIN(due_ns, slices_step(s->slices, now_ns));
	/* What has begun in these steps goes on at once. */
	client_step(s->client);
	return due_ns;
}

static bool wait_idle(int channel)
{
	struct pollfd fd = { .fd = channel, .events = POLLIN };

	return poll(&fd, 1, -1) > 0;
}

int kube_server_wait(struct kube_server *s, int channel)
{
	if (!s->watch)
		return wait_idle(channel) || errno == EINTR ? 0 : -errno;
	for (;;) {
		int64_t due_ns = go_on(s), left_ns = MAX(due_ns - clock_mono_ns(), INT64_C(0));

		if (client_wait(s->client, channel, (int)(left_ns / NSEC_PER_MSEC)))
			return 0;
	}
}

/* ---- answers ---- */

static void add_note_text(struct kube_end *end, const char *text)
{
	size_t n = strlen(end->note);

	if (!*text)
		return;
	snprintf(end->note + n, sizeof(end->note) - n, "%s%s", n ? "; " : "", text);
	utf8_sanitize(end->note);
}

static void note_owners(struct kube_server *s)
{
	struct walk_figures figures;
	char text[300];

	walk_figures(s->walk, &figures);
	if (s->tables.fallbacks && figures.error[0]) {
		snprintf(text, sizeof(text), "owners of %u pods cannot be read: %s", s->tables.fallbacks,
			 figures.error);
		add_note_text(&s->end, text);
	}
	if (figures.waiting) {
		snprintf(text, sizeof(text),
			 "kube.cache is too small for the owners of the node's pods: %u wait",
			 figures.waiting);
		add_note_text(&s->end, text);
	}
	s->end.dropped += figures.waiting;
}

/* A pod's host name is the pod's, not the node's. */
static void note_no_pods(struct kube_server *s)
{
	char text[sizeof(s->end.note)];

	if (!s->settings.host[0] || s->pods.n || !watch_state(s->watch)->listed)
		return;
	snprintf(text, sizeof(text),
		 "it has no pod on node \"%.100s\"; if the cluster calls it otherwise, set NODE_NAME",
		 s->settings.node);
	add_note_text(&s->end, text);
}

/* A user who may make pods in a namespace could state rows for any pod by one with an exporter's labels. */
static void note_foreign_exporters(struct kube_server *s)
{
	char text[sizeof(s->end.note)];

	if (!s->tables.exporters_foreign)
		return;
	snprintf(text, sizeof(text),
		 "%u pod%s with the labels of exporters in other namespaces than dcgm.namespaces, %s for "
		 "example: not read",
		 s->tables.exporters_foreign, s->tables.exporters_foreign == 1 ? "" : "s", s->tables.foreign);
	add_note_text(&s->end, text);
}

static void make_tables(struct kube_server *s)
{
	if (!watch_state(s->watch)->listed)
		return;
	if (s->made_pods != s->pods.changes || s->made_walk != walk_changes(s->walk)) {
		tables_make(&s->tables, &s->pods, s->walk, clock_mono_ns());
		s->made_pods = s->pods.changes;
		s->made_walk = walk_changes(s->walk);
	}
}

static void tell_state(struct kube_server *s)
{
	static const enum kube_outcome outcomes[] = {
		[WATCH_BEGINS] = KUBE_BEGINS,
		[WATCH_WELL] = KUBE_OK,
		[WATCH_FAILS] = KUBE_FAILED,
		[WATCH_REFUSED] = KUBE_REFUSED,
	};
	const struct watch_state *state = watch_state(s->watch);
	struct client_figures figures;

	client_take_figures(s->client, &figures);
	s->end.outcome = outcomes[state->outcome];
	snprintf(s->end.error, sizeof(s->end.error), "%.255s", state->error);
	s->end.bytes = figures.bytes;
	s->end.requests = figures.requests;
	s->end.lists = state->lists - s->told_lists;
	for (unsigned i = 0; i < NET_FAILURES; i++)
		s->end.failures[i] = state->failures[i] - s->told_failures[i];
	s->told_lists = state->lists;
	memcpy(s->told_failures, state->failures, sizeof(s->told_failures));
	s->end.pods = s->pods.n;
	s->end.exporters_skipped = s->tables.exporters_skipped;
	s->end.fallbacks = s->tables.fallbacks;
	s->end.dropped = s->pods.dropped + s->pods.unreadable + s->tables.list[KUBE_OWNERS].dropped +
			 s->tables.list[KUBE_EXPORTERS].dropped;
	add_note_text(&s->end, s->access.note);
	note_no_pods(s);
	note_foreign_exporters(s);
	add_note_text(&s->end, node_labels_error(s->labels));
	add_note_text(&s->end, slices_error(s->slices));
	note_owners(s);
}

static int send_tables(struct kube_server *s, int channel, const struct kube_question *question)
{
	int r = 0;

	s->tables.digest[KUBE_LABELS] = node_labels_digest(s->labels);
	s->tables.digest[KUBE_DEVICES] = slices_digest(s->slices);
	memcpy(s->end.digest, s->tables.digest, sizeof(s->end.digest));
	for (uint32_t i = 0; r == 0 && i < KUBE_TABLES; i++)
		if (s->end.digest[i] && s->end.digest[i] != question->known[i])
			r = parts_send(channel, i, s->end.digest[i], &s->tables.list[i]);
	return r;
}

int kube_answer(struct kube_server *s, int channel, const struct kube_question *question)
{
	int r = 0;

	s->end = (struct kube_end){ .message = PART_OTHERS, .outcome = KUBE_FAILED };
	s->end.replace = config_has_changed(s);
	slices_want(s->slices, question->wants_devices != 0);
	if (s->watch) {
		make_tables(s);
		tell_state(s);
		r = send_tables(s, channel, question);
	} else {
		/* Files may be there, or right, the next time. */
		s->end.replace = 1;
		s->end.outcome = KUBE_REFUSED;
		snprintf(s->end.error, sizeof(s->end.error), "%s", s->error);
		utf8_sanitize(s->end.error);
	}
	return r < 0 ? r : send_with_fd(channel, &s->end, sizeof(s->end), -1);
}

/* ---- confinement ---- */

int kube_server_confine(struct kube_server *s, pid_t owner)
{
	static struct below below;
	const struct confinement confinement = {
		.name = "gpusonde-kube",
		.capabilities = KUBE_CAPABILITIES,
		.opens = true,
		.connects = true,
		.below = below.list,
		.else_stays = KUBE_CAPABILITIES,
		/* Libraries (60 MiB), tables of 4096 rows twice, a pod at a time, a thread's stack. */
		.memory_bytes = UINT64_C(256) << 20,
	};

	/* Where the files lie that may be read again. */
	below.n = 0;
	below_add_network(&below);
	below_add(&below, s->access.folder);
	below_add_folder_of(&below, s->access.ca.path);
	below_add_folder_of(&below, s->access.certificate.path);
	below_add_folder_of(&below, s->access.key.path);
	below_add_folder_of(&below, s->access.token.path);
	return confine(&confinement, owner);
}

/* ---- life ---- */

static void terminate(struct kube_settings *settings)
{
#define END(member_) settings->member_[sizeof(settings->member_) - 1] = '\0'
	END(server);
	END(kubeconfig);
	END(context);
	END(account);
	END(host);
	END(port);
	END(node);
	END(workload_labels);
	END(node_labels);
	END(pod_run);
	END(pod_group);
	END(resources);
	END(exporters);
	END(exporter_namespaces);
	END(namespace);
#undef END
}

int kube_server_new(const struct kube_settings *settings, struct kube_server **ret_server)
{
	_cleanup_(kube_server_freep) struct kube_server *s = calloc(1, sizeof(*s));
	int r;

	if (!s)
		return -ENOMEM;
	s->settings = *settings;
	terminate(&s->settings);
	s->made_pods = s->made_walk = UINT64_MAX;
	tables_init(&s->tables);
	s->tables.exporter_namespaces = s->settings.exporter_namespaces;
	r = begin_asking(s);
	if (r < 0 && !s->error[0])
		snprintf(s->error, sizeof(s->error), "%s", strerror(-r));
	if (r == -ENOMEM)
		return r;
	*ret_server = TAKE_PTR(s);
	return 0;
}

void kube_server_free(struct kube_server *s)
{
	if (!s)
		return;
	node_labels_free(s->labels);
	slices_free(s->slices);
	watch_free(s->watch);
	walk_free(s->walk);
	client_free(s->client);
	node_pods_done(&s->pods);
	tables_done(&s->tables);
	access_done(&s->access);
	free(s);
}
