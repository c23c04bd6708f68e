// SPDX-License-Identifier: Apache-2.0
#include "agent/kube.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/address.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/macro.h"
#include "base/text.h"
#include "config.h"
#include "helper/helper.h"

#define ASK_NS (1900 * NSEC_PER_MSEC) /* with every second tick of a second */
#define ASK_SOON_NS (900 * NSEC_PER_MSEC) /* with the next one */
#define PERIOD_NS (10 * NSEC_PER_SEC)
#define ANSWER_NS (10 * NSEC_PER_SEC)
#define RETRY_NS (2 * NSEC_PER_SEC) /* after its process has failed; then twice as long each time */
#define RETRY_LATEST_NS (60 * NSEC_PER_SEC)
enum { MAX_STUCK = 2 };

struct kube {
	struct model *model;
	struct helper *helper;
	struct kube_config config;
	bool asked;
	int64_t asked_ns, after_ns; /* boot clock; 0: never. The next question is due so long after it */
	unsigned failures; /* of its process, in a row */
	uint64_t known[KUBE_TABLES]; /* digests of the tables that have been passed on; 0: none */
	struct arriving arriving[KUBE_TABLES];
	uint64_t dropped; /* as of the newest answer */
	bool used; /* the source has said something */
	char logged[256], noted[256]; /* the error and the note that were logged last */
};

/* ---- what the source is said to be ---- */

static bool is_silent(const struct kube *k, enum kube_outcome outcome)
{
	return outcome == KUBE_BEGINS || (outcome == KUBE_REFUSED && k->config.quiet && !k->used);
}

static void log_error_once(struct kube *k, const char *error, bool silent)
{
	if (!STRV_EQ(error, k->logged)) {
		if (!*error)
			log_notice("the Kubernetes API answers");
		else if (silent)
			log_notice("the Kubernetes API is not used: %s; see docs/kubernetes.md; "
				   "--kube-enabled no silences this",
				   error);
		else
			log_warning("the Kubernetes API: %s%s", error,
				    k->known[KUBE_OWNERS] ? "; what it said before stays" : "");
	}
	snprintf(k->logged, sizeof(k->logged), "%s", error);
}

static void set_kube_state(struct kube *k, enum kube_outcome outcome, const char *error)
{
	char text[sizeof(((struct source *)NULL)->error)];
	bool silent = is_silent(k, outcome);

	if (outcome == KUBE_BEGINS && !*error)
		return;
	/* Unlike owners it does not stay while nobody says it. */
	if (outcome != KUBE_OK) {
		model_set_health(k->model, HEALTH_API_PODS, NULL, 0);
		k->known[KUBE_HEALTH] = 0;
	}
	log_error_once(k, error, silent);
	if (silent)
		return;
	k->used = true;
	snprintf(text, sizeof(text), "Kubernetes API: %.230s", error);
	model_set_source(k->model, SOURCE_KUBE, outcome == KUBE_OK ? READING_OK : READING_FAILED,
			 outcome == KUBE_OK ? "" : text);
}

static void log_note_once(struct kube *k, const char *note)
{
	if (*note && !STRV_EQ(note, k->noted))
		log_warning("the Kubernetes API: %s", note);
	snprintf(k->noted, sizeof(k->noted), "%s", note);
}

/* ---- answers ---- */

static void pass_table_on(struct kube *k, enum kube_table which)
{
	const struct arriving *table = &k->arriving[which];
	int r = 0;

	switch (which) {
	case KUBE_OWNERS:
		r = model_set_owners(k->model, SOURCE_KUBE, table->list, table->n);
		break;
	case KUBE_EXPORTERS:
		if (k->config.exporters)
			k->config.exporters(table->list, table->n, k->config.userdata);
		break;
	case KUBE_LABELS:
		if (k->config.labels)
			k->config.labels(table->list, table->n, k->config.userdata);
		break;
	case KUBE_DEVICES:
		if (k->config.devices)
			k->config.devices(table->list, table->n, k->config.userdata);
		break;
	case KUBE_HEALTH:
		r = model_set_health(k->model, HEALTH_API_PODS, table->list, table->n);
		break;
	case KUBE_TABLES:
		break;
	}
	k->known[which] = r < 0 ? 0 : table->digest;
}

/* Makes members of rows end with NUL and be UTF-8: the process that sent them may have been taken over. */
#define MEND(member_)                                  \
	do {                                           \
		(member_)[sizeof(member_) - 1] = '\0'; \
		utf8_sanitize(member_);                \
	} while (0)

static void mend_rows(struct kube *k)
{
	struct kube_exporter *exporters = k->arriving[KUBE_EXPORTERS].list;
	struct kube_label *labels = k->arriving[KUBE_LABELS].list;
	struct kube_device *devices = k->arriving[KUBE_DEVICES].list;

	for (uint32_t i = 0; i < k->arriving[KUBE_EXPORTERS].n; i++) {
		MEND(exporters[i].namespace);
		MEND(exporters[i].pod);
		MEND(exporters[i].uid);
		MEND(exporters[i].address);
		/* One that is none is not read: a URL in its place would lead anywhere. */
		if (!address_is_pods(exporters[i].address))
			exporters[i].address[0] = '\0';
	}
	for (uint32_t i = 0; i < k->arriving[KUBE_DEVICES].n; i++) {
		MEND(devices[i].driver);
		MEND(devices[i].pool);
		MEND(devices[i].device);
		MEND(devices[i].uuid);
	}
	for (uint32_t i = 0; i < k->arriving[KUBE_LABELS].n; i++) {
		MEND(labels[i].key);
		MEND(labels[i].value);
	}
}

static void take_kube_figures(struct kube *k, const struct kube_end *end)
{
	model_agent_add(k->model, AGENT_KUBE_REQUESTS, (double)end->requests);
	model_agent_add(k->model, AGENT_KUBE_BYTES, (double)end->bytes);
	model_agent_add(k->model, AGENT_KUBE_LISTS, (double)end->lists);
	for (unsigned i = NET_OK + 1; i < NET_FAILURES; i++)
		model_agent_add(k->model, AGENT_KUBE_FAILED_CONNECT + (i - NET_FAILED_CONNECT),
				(double)end->failures[i]);
	if (end->dropped > k->dropped)
		model_agent_add(k->model, AGENT_DROPPED_OWNERS, (double)(end->dropped - k->dropped));
	k->dropped = end->dropped;
	if (!k->used)
		return;
	model_agent_set(k->model, AGENT_KUBE_PODS, end->pods);
	model_agent_set(k->model, AGENT_KUBE_FALLBACKS, end->fallbacks);
	model_agent_set(k->model, AGENT_KUBE_EXPORTERS_SKIPPED, end->exporters_skipped);
}

static void retry_kube_later(struct kube *k)
{
	k->after_ns = MIN(RETRY_NS << MIN(k->failures, 6u), RETRY_LATEST_NS);
	k->failures++;
}

static void take_kube_end(struct kube *k, struct kube_end *end)
{
	k->asked = false;
	helper_deadline(k->helper, 0);
	MEND(end->error);
	MEND(end->note);
	mend_rows(k);
	for (uint32_t i = 0; i < KUBE_TABLES; i++)
		if (k->arriving[i].list)
			pass_table_on(k, i);
	parts_forget(k->arriving, KUBE_TABLES);
	set_kube_state(k, end->outcome, end->error);
	take_kube_figures(k, end);
	log_note_once(k, end->note);
	k->after_ns = ASK_NS;
	if (!end->replace) {
		k->failures = 0;
		return;
	}
	helper_stop(k->helper);
	if (end->outcome != KUBE_OK)
		retry_kube_later(k);
}

static bool kube_end_is_valid(const struct kube *k, const struct kube_end *end, size_t n)
{
	return n == sizeof(*end) && end->message == PART_OTHERS && end->outcome < KUBE_OUTCOMES &&
	       parts_are_whole(k->arriving, KUBE_TABLES, end->digest, k->known);
}

static void on_kube_answer(const void *message, size_t n, int fd, void *userdata)
{
	static struct kube_end end;
	struct kube *k = userdata;
	uint32_t kind = 0;

	closep(&fd);
	memcpy(&kind, message, MIN(n, sizeof(kind)));
	memcpy(&end, message, MIN(n, sizeof(end)));
	if (!k->asked)
		helper_reject(k->helper);
	else if (kind == PART_ROWS && parts_take(k->arriving, KUBE_TABLES, message, n))
		return;
	else if (kind == PART_OTHERS && kube_end_is_valid(k, &end, n))
		take_kube_end(k, &end);
	else
		helper_reject(k->helper);
}

static void on_kube_lost(bool hung, void *userdata)
{
	struct kube *k = userdata;

	parts_forget(k->arriving, KUBE_TABLES);
	k->asked = false;
	k->dropped = 0;
	retry_kube_later(k);
	set_kube_state(k, KUBE_FAILED,
		       hung ? "the process that asks it, gpusonde-kube, does not answer" :
			      "the process that asks it, gpusonde-kube, ended");
}

/* ---- questions ---- */

static void ask_kube(struct kube *k, int64_t now_ns)
{
	static struct kube_question question;
	int r;

	question = (struct kube_question){ .version = GPUSONDE_VERSION };
	memcpy(question.known, k->known, sizeof(question.known));
	question.settings = k->config.settings;
	question.wants_devices = k->config.wants_devices && k->config.wants_devices(k->config.userdata);
	r = helper_send(k->helper, &question, sizeof(question), -1);
	if (r == -EAGAIN)
		return; /* with the next tick */
	k->asked_ns = now_ns;
	if (r < 0) {
		set_kube_state(k, KUBE_FAILED,
			       r == -EBUSY ? "too many processes that ask it hang" : strerror(-r));
		retry_kube_later(k);
		return;
	}
	k->asked = true;
	helper_deadline(k->helper, ANSWER_NS);
}

void kube_tick(struct kube *k)
{
	int64_t now_ns = clock_boot_ns(), after_ns = k->after_ns;

	if (after_ns == ASK_NS && model_wants_owners(k->model))
		after_ns = ASK_SOON_NS;
	if (!k->asked && (k->asked_ns == 0 || now_ns - k->asked_ns >= after_ns))
		ask_kube(k, now_ns);
}

/* ---- what is configured ---- */

#define COPY_SETTING(member_, text_) snprintf(member_, sizeof(member_), "%s", text_)

static const char *or_empty(const char *text)
{
	return text ? text : "";
}

/* The name of the node: the kubelet takes the host's in lower case where nobody says another one. */
static void find_node_name(const struct options *options, struct kube_settings *settings)
{
	const char *name = options_text(options, OPT_kube_node);

	if (!name)
		name = options_text(options, OPT_node_name);
	if (name) {
		COPY_SETTING(settings->node, name);
		return;
	}
	if (gethostname(settings->node, sizeof(settings->node) - 1) < 0)
		settings->node[0] = '\0';
	for (char *c = settings->node; *c; c++)
		if (*c >= 'A' && *c <= 'Z')
			*c = (char)(*c - 'A' + 'a');
}

/* Where a kubeconfig is if nobody says so, and this is no pod. */
static void find_home_config(struct kube_settings *settings)
{
	const char *home = getenv("HOME");

	if (home && *home)
		snprintf(settings->kubeconfig, sizeof(settings->kubeconfig), "%s/.kube/config", home);
}

/* Where this agent runs, by the service account: others than its administrators may not make pods there. */
static void find_own_namespace(const struct options *options, char *out, size_t size)
{
	char path[PATH_MAX];
	size_t n;

	snprintf(path, sizeof(path), "%s/namespace", or_empty(options_text(options, OPT_kube_account)));
	if (read_file(path, out, size - 1, &n) < 0)
		n = 0;
	out[n] = '\0';
	out[strcspn(out, " \t\r\n,*")] = '\0';
}

bool kube_configure(const struct options *options, const char *exporters, struct kube_config *ret_config)
{
	enum tristate enabled = (enum tristate)options_number(options, OPT_kube_enabled);
	struct kube_settings *s = &ret_config->settings;

	*ret_config = (struct kube_config){ .quiet = enabled == TRISTATE_AUTO };
	COPY_SETTING(s->server, or_empty(options_text(options, OPT_kube_server)));
	COPY_SETTING(s->kubeconfig, or_empty(options_text(options, OPT_kube_config)));
	COPY_SETTING(s->context, or_empty(options_text(options, OPT_kube_context)));
	COPY_SETTING(s->account, or_empty(options_text(options, OPT_kube_account)));
	COPY_SETTING(s->host, or_empty(getenv("KUBERNETES_SERVICE_HOST")));
	COPY_SETTING(s->port, or_empty(getenv("KUBERNETES_SERVICE_PORT")));
	COPY_SETTING(s->workload_labels, or_empty(options_text(options, OPT_kube_workload_labels)));
	COPY_SETTING(s->node_labels, or_empty(options_text(options, OPT_kube_node_labels)));
	COPY_SETTING(s->pod_run, or_empty(options_text(options, OPT_workload_pod_run)));
	COPY_SETTING(s->pod_group, or_empty(options_text(options, OPT_workload_pod_group)));
	COPY_SETTING(s->resources, or_empty(options_text(options, OPT_workload_resources)));
	COPY_SETTING(s->exporters, or_empty(exporters));
	COPY_SETTING(s->namespace, or_empty(options_text(options, OPT_kube_namespace)));
	COPY_SETTING(s->exporter_namespaces, or_empty(options_text(options, OPT_dcgm_namespaces)));
	if (!s->exporter_namespaces[0])
		find_own_namespace(options, s->exporter_namespaces, sizeof(s->exporter_namespaces));
	s->cache = (uint32_t)options_number(options, OPT_kube_cache);
	s->watch_ns = options_number(options, OPT_kube_watch_timeout);
	find_node_name(options, s);
	if (s->server[0] || s->kubeconfig[0]) {
		ret_config->quiet = false; /* somebody has asked for it */
		return enabled != TRISTATE_NO;
	}
	if (enabled == TRISTATE_YES && !s->host[0])
		find_home_config(s);
	return enabled == TRISTATE_YES || (enabled == TRISTATE_AUTO && s->host[0]);
}

/* ---- life ---- */

int kube_new(sd_event *event, struct model *model, const struct kube_config *config, struct kube **ret_kube)
{
	static const struct helper_ops ops = { on_kube_answer, on_kube_lost };
	const struct helper_config helper = {
		.program = config->program ? config->program : "gpusonde-kube",
		.role = "kube",
		.capabilities = KUBE_CAPABILITIES,
		.max_stuck = MAX_STUCK,
	};
	_cleanup_(kube_freep) struct kube *k = calloc(1, sizeof(*k));
	int r;

	if (!k)
		return -ENOMEM;
	k->model = model;
	k->config = *config;
	k->config.program = NULL;
	k->after_ns = ASK_NS;
	k->arriving[KUBE_OWNERS] = (struct arriving){ .row_bytes = sizeof(struct owner), .max = OWNERS_MAX };
	k->arriving[KUBE_EXPORTERS] =
		(struct arriving){ .row_bytes = sizeof(struct kube_exporter), .max = KUBE_EXPORTERS_MAX };
	k->arriving[KUBE_LABELS] =
		(struct arriving){ .row_bytes = sizeof(struct kube_label), .max = KUBE_LABELS_MAX };
	k->arriving[KUBE_DEVICES] =
		(struct arriving){ .row_bytes = sizeof(struct kube_device), .max = KUBE_DEVICES_MAX };
	k->arriving[KUBE_HEALTH] =
		(struct arriving){ .row_bytes = sizeof(struct device_health), .max = DEVICE_HEALTH_MAX };
	r = helper_new(event, &helper, &ops, k, &k->helper);
	if (r < 0)
		return r;
	model_set_source_period(model, SOURCE_KUBE, PERIOD_NS);
	*ret_kube = TAKE_PTR(k);
	return 0;
}

void kube_free(struct kube *k)
{
	if (!k)
		return;
	helper_free(k->helper);
	parts_forget(k->arriving, KUBE_TABLES);
	free(k);
}

pid_t kube_pid(const struct kube *k)
{
	struct helper_stats stats;

	helper_stats(k->helper, &stats);
	return stats.pid;
}
