// SPDX-License-Identifier: Apache-2.0
#include "kubelet/serve.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/text.h"
#include "helper/message.h"
#include "kubelet/connect.h"
#include "kubelet/grpc.h"
#include "kubelet/live_pods.h"
#include "kubelet/pods.h"
#include "kubelet/resources.h"

/*
 * Memory: tables of at most 4096 rows (7 MiB), one pod as it came and as it is unpacked (2 and 16 MiB), CDI
 * specifications.
 */
const struct confinement kubelet_confinement = {
	.name = "gpusonde-kubele", /* as much as a name may have */
	.capabilities = KUBELET_KEPT_CAPABILITIES,
	.opens = true,
	.memory_bytes = UINT64_C(128) << 20,
};

#define CALL_NS (4 * NSEC_PER_SEC)
#define ANSWER_NS (8 * NSEC_PER_SEC) /* all calls of a question; the agent waits for two seconds more */
/* Capacity changes when a device becomes unhealthy. */
#define ALLOCATABLE_NS (60 * NSEC_PER_SEC)

/* A service of kubelet's. */
struct peer {
	int fd; /* -1: no connection */
	int error; /* -errno of connecting; 0 */
	struct grpc *grpc;
};

struct kubelet_server {
	int root;
	char socket[PATH_MAX], names[sizeof(((struct kubelet_question *)NULL)->resources)];
	struct peer resources_peer, pods_peer;
	unsigned version; /* of pod-resources: index of versions[] */
	bool listed; /* it has listed pods, or none, at least once */
	bool no_allocatable; /* this kubelet has no GetAllocatableResources */
	bool was_empty; /* it could give nothing when it was last asked */
	int64_t allocatable_ns; /* when it was asked; 0: never */
	struct pod_resources resources;
	struct pods pods;
	struct live_pods live;
	struct cdi *cdi;
	bool live_read; /* for this question */
	uint64_t digest[KUBELET_TABLES];
	struct kubelet_end end; /* of the answer in the making */
	int64_t deadline_ns;
};

static const char *const versions[] = { "v1", "v1alpha1" };

/* ---- what an answer says beside its tables ---- */

static void set_failed(struct kubelet_end *end, enum kubelet_outcome outcome, const char *what,
		       const char *why)
{
	if (end->outcome != KUBELET_OK)
		return;
	end->outcome = outcome;
	snprintf(end->error, sizeof(end->error), "%s: %s", what, why);
	utf8_sanitize(end->error);
}

static void add_note(struct kubelet_end *end, const char *text)
{
	size_t n = strlen(end->note);

	snprintf(end->note + n, sizeof(end->note) - n, "%s%s", n ? "; " : "", text);
	utf8_sanitize(end->note);
}

static const char *words_of(int error)
{
	switch (error) {
	case -ETIMEDOUT:
		return "it does not answer";
	case -ECONNRESET:
		return "it closed the connection";
	case -EPROTO:
		return "what it sends is no gRPC";
	case -EBADMSG:
		return "what it sends is not what this service sends";
	case -EFBIG:
		return "it sends more than 64 MiB";
	case -EACCES:
		return "permission denied; run the agent as root, or with CAP_SETUID";
	case -ECONNREFUSED:
		return "nobody listens there; is kubelet running?";
	default:
		return strerror(-error);
	}
}

/* The connection is of no more use. */
static void lose(struct peer *peer, struct kubelet_end *end)
{
	closep(&peer->fd);
	peer->fd = -1;
	grpc_free(TAKE_PTR(peer->grpc));
	end->replace = 1;
}

/* ---- calls ---- */

static int on_data(const uint8_t *data, size_t n, void *userdata)
{
	return elements_feed(userdata, data, n);
}

/* 0: kubelet answered; else the connection is lost, and @end says why. */
static int call(struct kubelet_server *s, struct peer *peer, const char *path, struct elements *elements,
		struct grpc_answer *ret_answer)
{
	const struct grpc_call call = { .path = path, .data = on_data, .userdata = elements };
	int64_t deadline_ns = MIN(s->deadline_ns, clock_mono_ns() + CALL_NS);
	int r = grpc_run(peer->grpc, peer->fd, &call, deadline_ns, ret_answer);

	if (r == 0 && ret_answer->status == GRPC_OK)
		r = elements_end(elements);
	if (r < 0) {
		set_failed(&s->end, KUBELET_FAILED, path, words_of(r));
		lose(peer, &s->end);
	}
	return r;
}

/* A call that kubelet refused. */
static void take_refusal(struct kubelet_server *s, const char *path, const struct grpc_answer *answer)
{
	char text[sizeof(answer->message) + 32];

	if (answer->status == GRPC_RESOURCE_EXHAUSTED) {
		set_failed(&s->end, KUBELET_BUSY, path, "kubelet refuses so many questions");
		return;
	}
	snprintf(text, sizeof(text), "kubelet answers with code %d: %s", answer->status,
		 answer->message[0] ? answer->message : "(no words)");
	set_failed(&s->end, KUBELET_FAILED, path, text);
}

/* ---- the Pods API ---- */

static void list_pods(struct kubelet_server *s)
{
	static const char path[] = "/v1alpha1.Pods/ListPods";
	struct grpc_answer answer;

	s->digest[KUBELET_OWNERS] = s->digest[KUBELET_POD_HEALTH] = 0;
	if (s->pods_peer.fd < 0)
		return;
	pods_clear(&s->pods);
	if (call(s, &s->pods_peer, path, &s->pods.elements, &answer) < 0) {
		pods_clear(&s->pods);
		return;
	}
	s->end.pods_api = answer.status != GRPC_UNIMPLEMENTED;
	if (answer.status == GRPC_OK) {
		pods_end(&s->pods);
		s->digest[KUBELET_OWNERS] = row_list_digest(&s->pods.owners);
		s->digest[KUBELET_POD_HEALTH] = row_list_digest(&s->pods.health);
		s->end.dropped[KUBELET_OWNERS] = s->pods.owners.dropped + s->pods.list.dropped +
						 s->pods.unreadable + s->pods.elements.left_out;
		return;
	}
	pods_clear(&s->pods);
	if (answer.status == GRPC_UNIMPLEMENTED) {
		closep(&s->pods_peer.fd);
		s->pods_peer.fd = -1;
	} else if (answer.status != GRPC_FAILED_PRECONDITION) { /* that: it has just started */
		take_refusal(s, path, &answer);
	}
}

/* ---- pod-resources ---- */

static bool counts(const char *namespace, const char *pod, char ret_uid[48], void *userdata)
{
	struct kubelet_server *s = userdata;
	const struct pod_state *state = pods_find(&s->pods, namespace, pod);

	if (state) {
		memcpy(ret_uid, state->uid, sizeof(state->uid));
		return !state->ended;
	}
	if (!s->live_read)
		live_pods_read(&s->live, s->root);
	s->live_read = true;
	return live_pods_find(&s->live, namespace, pod, ret_uid) != POD_ENDED;
}

static int list_version(struct kubelet_server *s, unsigned version, struct grpc_answer *ret_answer)
{
	char path[64];

	snprintf(path, sizeof(path), "/%s.PodResourcesLister/List", versions[version]);
	pod_resources_clear(&s->resources);
	return call(s, &s->resources_peer, path, &s->resources.elements, ret_answer);
}

static void note_resources(struct kubelet_server *s)
{
	const struct pod_resources *resources = &s->resources;
	char text[sizeof(s->end.note)];

	s->end.unmatched = resources->unmatched;
	s->end.claimed = resources->claimed;
	if (resources->unmatched) {
		snprintf(text, sizeof(text),
			 "of %u device%s that pods were given it is not known which GPUs they are: %s%s",
			 resources->unmatched, resources->unmatched == 1 ? "" : "s",
			 resources->unmatched_example, resources->unmatched == 1 ? "" : ", ...");
		add_note(&s->end, text);
		if (*cdi_error(s->cdi))
			add_note(&s->end, cdi_error(s->cdi));
	}
	s->end.dropped[KUBELET_ALLOCATIONS] =
		resources->rows.dropped + resources->unreadable + resources->elements.left_out;
}

static void list_resources(struct kubelet_server *s)
{
	struct grpc_answer answer;
	int r;

	s->digest[KUBELET_ALLOCATIONS] = 0;
	if (s->resources_peer.fd < 0)
		return;
	r = list_version(s, s->version, &answer);
	while (r == 0 && answer.status == GRPC_UNIMPLEMENTED && s->version + 1 < ARRAY_SIZE(versions))
		r = list_version(s, ++s->version, &answer);
	if (r == 0 && answer.status == GRPC_OK) {
		/* One that has just started may not know its pods yet. */
		if (s->resources.pods > 0 || s->listed)
			s->digest[KUBELET_ALLOCATIONS] = row_list_digest(&s->resources.rows);
		s->listed = true;
		note_resources(s);
		return;
	}
	pod_resources_clear(&s->resources);
	if (r == 0)
		take_refusal(s, "/v1.PodResourcesLister/List", &answer);
}

static int on_allocatable(const uint8_t *data, size_t n, void *userdata)
{
	return pod_resources_take_allocatable(userdata, data, n);
}

/* What it does not tell is not known; that is no failure. */
static void list_allocatable(struct kubelet_server *s)
{
	struct elements elements = { .element = on_allocatable, .userdata = &s->resources };
	int64_t now_ns = clock_mono_ns();
	struct grpc_answer answer;

	if (s->resources_peer.fd >= 0 && s->end.outcome == KUBELET_OK && !s->no_allocatable &&
	    (s->allocatable_ns == 0 || now_ns - s->allocatable_ns > ALLOCATABLE_NS)) {
		s->resources.allocatable = 0;
		row_list_clear(&s->resources.listed);
		s->digest[KUBELET_LISTED] = 0;
		if (call(s, &s->resources_peer, "/v1.PodResourcesLister/GetAllocatableResources", &elements,
			 &answer) < 0 ||
		    answer.status != GRPC_OK) {
			s->resources.allocatable = UINT32_MAX;
		} else if (s->resources.allocatable == 0 && !s->was_empty) {
			/* One that has just started gives nothing until plugins have registered: later. */
			s->was_empty = true;
		} else {
			pod_resources_compare(&s->resources);
			s->digest[KUBELET_LISTED] = row_list_digest(&s->resources.listed);
			s->allocatable_ns = now_ns;
			s->was_empty = s->resources.allocatable == 0;
		}
		s->no_allocatable = s->resources_peer.fd >= 0 && answer.status == GRPC_UNIMPLEMENTED;
		elements_done(&elements);
	}
	s->end.allocatable = s->resources.allocatable;
}

/* ---- answers ---- */

static void check_connections(struct kubelet_server *s)
{
	char text[128];

	if (s->resources_peer.fd >= 0)
		return;
	snprintf(text, sizeof(text), "/%.100s", s->socket + (*s->socket == '/'));
	set_failed(&s->end, KUBELET_FAILED, text, words_of(s->resources_peer.error));
	s->end.replace = 1;
}

int kubelet_answer(struct kubelet_server *s, int channel, const struct kubelet_question *question)
{
	const struct row_list *tables[KUBELET_TABLES] = { &s->pods.owners, &s->resources.rows,
							  &s->resources.listed, &s->pods.health };
	int r = 0;

	s->end = (struct kubelet_end){ .message = PART_OTHERS };
	s->deadline_ns = clock_mono_ns() + ANSWER_NS;
	s->live_read = false;
	cdi_read(s->cdi, s->root);
	check_connections(s);
	list_pods(s);
	list_resources(s);
	list_allocatable(s);
	for (unsigned i = 0; r == 0 && i < KUBELET_TABLES; i++)
		if (s->digest[i] && s->digest[i] != question->known[i])
			r = parts_send(channel, i, s->digest[i], tables[i]);
	memcpy(s->end.digest, s->digest, sizeof(s->end.digest));
	return r < 0 ? r : send_with_fd(channel, &s->end, sizeof(s->end), -1);
}

int kubelet_wait(struct kubelet_server *s, int channel)
{
	struct peer *const peers[] = { &s->resources_peer, &s->pods_peer };
	struct pollfd fds[1 + ARRAY_SIZE(peers)] = { { .fd = channel, .events = POLLIN } };

	for (;;) {
		int r;

		for (size_t i = 0; i < ARRAY_SIZE(peers); i++)
			fds[1 + i] = (struct pollfd){ .fd = peers[i]->fd, .events = POLLIN };
		r = poll(fds, ARRAY_SIZE(fds), -1);
		if (r < 0 && errno != EINTR)
			return -errno;
		if (r > 0 && fds[0].revents)
			return 0;
		for (size_t i = 0; r > 0 && i < ARRAY_SIZE(peers); i++)
			if (fds[1 + i].revents && grpc_idle(peers[i]->grpc, peers[i]->fd) < 0)
				return 1;
	}
}

int kubelet_receive(int channel, struct kubelet_question *ret_question)
{
	int r = receive_question(channel, ret_question, sizeof(*ret_question), NULL);

	if (r != 0)
		return r;
	ret_question->root[sizeof(ret_question->root) - 1] = '\0';
	ret_question->socket[sizeof(ret_question->socket) - 1] = '\0';
	ret_question->resources[sizeof(ret_question->resources) - 1] = '\0';
	return 0;
}

/* ---- life ---- */

static void peer_connect(struct peer *peer, int root, const char *path)
{
	peer->error = connect_below(root, path, &peer->fd);
	if (peer->error == 0)
		peer->error = grpc_new(&peer->grpc);
	if (peer->error < 0)
		closep(&peer->fd);
	if (peer->error < 0)
		peer->fd = -1;
}

static void connect_both(struct kubelet_server *s)
{
	char path[PATH_MAX];

	peer_connect(&s->resources_peer, s->root, s->socket);
	for (unsigned i = 0; s->pods_peer.fd < 0 && pods_api_path(s->socket, i, path, sizeof(path)) == 0; i++)
		peer_connect(&s->pods_peer, s->root, path);
}

int kubelet_server_new(const struct kubelet_question *question, struct kubelet_server **ret_server)
{
	_cleanup_(kubelet_server_freep) struct kubelet_server *s = calloc(1, sizeof(*s));

	if (!s || cdi_new(&s->cdi) < 0)
		return -ENOMEM;
	s->resources_peer.fd = s->pods_peer.fd = -1;
	s->root = open(question->root, O_PATH | O_DIRECTORY | O_CLOEXEC);
	memcpy(s->socket, question->socket, sizeof(s->socket));
	memcpy(s->names, question->resources, sizeof(s->names));
	pod_resources_init(&s->resources);
	s->resources.names = s->names;
	s->resources.cdi = s->cdi;
	s->resources.counts = counts;
	s->resources.userdata = s;
	s->resources.allocatable = UINT32_MAX;
	pods_init(&s->pods);
	s->pods.names = s->names;
	live_pods_init(&s->live);
	if (s->root < 0)
		s->resources_peer.error = -errno;
	else
		connect_both(s);
	*ret_server = TAKE_PTR(s);
	return 0;
}

void kubelet_server_free(struct kubelet_server *s)
{
	if (!s)
		return;
	closep(&s->resources_peer.fd);
	closep(&s->pods_peer.fd);
	grpc_free(s->resources_peer.grpc);
	grpc_free(s->pods_peer.grpc);
	pod_resources_done(&s->resources);
	pods_done(&s->pods);
	live_pods_done(&s->live);
	cdi_free(s->cdi);
	closep(&s->root);
	free(s);
}
