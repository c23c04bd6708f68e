// SPDX-License-Identifier: Apache-2.0
#include "agent/web/pages.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <linux/sockios.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/text.h"
#include "base/thread.h"
#include "serve/address.h"
#include "serve/limit.h"
#include "helper/message.h"
#include "web/routes.h"
#include "web/protocol.h"

enum {
	CHANNELS = 2, /* for pages, for atop */
	STACK_BYTES = 512 << 10,
	PAGE_BYTES_MAX = 16 << 20, /* as of serve/pages.h */
	IDLE_MS = 5000, /* after which the last page's memory is given back */
	POST_BURST = 10,
	UNREAD_MS = 50, /* how often an asker that does not read is looked at */
};

#define POST_INTERVAL_NS (6 * NSEC_PER_SEC)

struct channel {
	int socket; /* -1: none */
	int memory_fd; /* of long bodies; -1: there was none yet */
	bool held; /* its questions wait, since the other end has not read the last answer */
};

struct web_pages {
	struct web_pages_config config;
	int wake_fd; /* eventfd: new channels, or the thread must stop */
	atomic_bool stop, control;
	pthread_t thread;
	bool running;
	pthread_mutex_t lock; /* of next */
	int next[CHANNELS]; /* -1: none */

	/* of the thread */
	struct channel channels[CHANNELS];
	struct strbuf body;
	struct web_answer answer;
	struct limit posts;
	int64_t second_ns, cpu_ns; /* when this second began, and the thread's CPU time then */
};

/* ---- one question ---- */

static const char *no_argument(_unused_ const struct http_request *request, _unused_ const char *name)
{
	return NULL;
}

/* What the process that listens may ask for, whatever it has become. */
static bool may_be_asked(struct web_pages *p, const struct http_route *route, enum http_method method)
{
	if (route->right == ACCESS_LOCAL || (route->right == ACCESS_CONTROL && !atomic_load(&p->control)))
		return false;
	/* Routes of tests have no methods. */
	return method == HTTP_GET || (route->methods & method && route->right == ACCESS_CONTROL);
}

/* All clients together: so many at once, and then one in so long. */
static bool asks_too_often(struct web_pages *p)
{
	return !limit_take(&p->posts, 0, clock_mono_ns(), POST_INTERVAL_NS, POST_BURST);
}

static int refuse_often(struct http_reply *reply)
{
	reply->status = 429;
	strbuf_adds(&reply->body, "429 too many requests: the agent is told what to do once in 6 seconds\n");
	return 0;
}

static int answer_page(struct web_pages *p, const struct web_ask *ask)
{
	struct http_request request = {
		.method = ask->posts ? HTTP_POST : HTTP_GET,
		.path = ask->page < WEB_PAGES ? p->config.routes[ask->page].path : NULL,
		.variant = ask->variant,
		.argument = no_argument,
	};
	struct http_reply reply = { .status = 200, .content_type = "text/plain; charset=utf-8" };
	int r;

	if (!request.path || !may_be_asked(p, &p->config.routes[ask->page], request.method) ||
	    ask->variant >= HTTP_VARIANTS)
		return -EACCES;
	memcpy(request.numbers, ask->numbers, sizeof(request.numbers));
	memcpy(request.who, ask->who, sizeof(request.who) - 1);
	if (!text_is_printable(request.who))
		strcpy(request.who, "?");
	memcpy(request.text, ask->text, sizeof(request.text) - 1);
	reply.body = p->body;
	if (request.method == HTTP_POST && asks_too_often(p))
		r = refuse_often(&reply);
	else
		r = p->config.routes[ask->page].handle(&request, &reply, p->config.userdata);
	p->body = reply.body;
	p->answer.status = reply.status;
	p->answer.age = reply.age;
	strncpy(p->answer.content_type, reply.content_type, sizeof(p->answer.content_type) - 1);
	return r > 0 ? -r : r;
}

static int answer_question(struct web_pages *p, const struct web_ask *ask)
{
	unsigned version = ask->atop_version;

	if (ask->question != WEB_PAGE && !p->config.atop)
		return -EPROTO;
	if (version < 1 || version > ATOP_VERSION_NEWEST)
		version = ATOP_VERSION_NEWEST;
	switch ((enum web_question)ask->question) {
	case WEB_PAGE:
		return answer_page(p, ask);
	case WEB_ATOP_TYPES:
		return p->config.atop->types(version, &p->body, p->config.atop_userdata);
	case WEB_ATOP_STATS:
		return p->config.atop->stats(version, ask->exit_seq, &p->body, &p->answer.exit_seq,
					     p->config.atop_userdata);
	}
	return -EPROTO;
}

/* The same memory for every body, so that an asker that keeps descriptors keeps no memory. */
static int put_into_memory(struct channel *channel, const struct strbuf *body)
{
	if (channel->memory_fd < 0)
		channel->memory_fd = memfd_create("gpusonde-page", MFD_CLOEXEC);
	if (channel->memory_fd < 0)
		return -errno;
	for (size_t at = 0; at < body->len;) {
		ssize_t n = pwrite(channel->memory_fd, body->data + at, body->len - at, (off_t)at);

		if (n <= 0)
			return n < 0 ? -errno : -ENOSPC;
		at += (size_t)n;
	}
	return 0;
}

/* The asker has read the last answer, so that its queue is not full. */
static void send_answer(struct web_pages *p, struct channel *channel, int error)
{
	size_t n = offsetof(struct web_answer, body);
	int fd = -1;

	if (error == 0 && p->body.failed)
		error = -ENOMEM;
	if (error == 0 && p->body.len > WEB_INLINE_MAX)
		error = put_into_memory(channel, &p->body);
	if (error == 0 && p->body.len > WEB_INLINE_MAX)
		fd = channel->memory_fd;
	p->answer.error = error;
	p->answer.bytes = error ? 0 : (uint32_t)p->body.len;
	if (error == 0 && fd < 0) {
		memcpy(p->answer.body, p->body.data, p->body.len);
		n += p->body.len;
	}
	(void)send_with_fd(channel->socket, &p->answer, n, fd);
}

static void channel_close(struct channel *channel)
{
	closep(&channel->socket);
	closep(&channel->memory_fd);
	channel->socket = channel->memory_fd = -1;
}

static void serve_question(struct web_pages *p, struct channel *channel)
{
	struct web_ask ask;
	/* The whole length, not what fits. */
	ssize_t n = recv(channel->socket, &ask, sizeof(ask), MSG_DONTWAIT | MSG_TRUNC);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n != sizeof(ask)) {
		channel_close(channel);
		return;
	}
	memset(&p->answer, 0, offsetof(struct web_answer, body));
	p->answer.id = ask.id;
	strbuf_reset(&p->body);
	send_answer(p, channel, answer_question(p, &ask));
}

/* ---- the thread ---- */

static void take_channels(struct web_pages *p)
{
	eventfd_t woken;

	eventfd_read(p->wake_fd, &woken);
	pthread_mutex_lock(&p->lock);
	for (unsigned i = 0; i < CHANNELS; i++) {
		if (p->next[i] < 0)
			continue;
		channel_close(&p->channels[i]);
		p->channels[i].socket = TAKE_FD(p->next[i]);
	}
	pthread_mutex_unlock(&p->lock);
}

/* Waits for the next second when this one's share has been used. */
static void keep_to_share(struct web_pages *p)
{
	int64_t now_ns = clock_mono_ns(), end_ns = p->second_ns + NSEC_PER_SEC;

	if (now_ns < end_ns && clock_thread_cpu_ns() - p->cpu_ns > WEB_PAGES_SHARE) {
		struct pollfd stop = { .fd = p->wake_fd, .events = POLLIN };

		poll(&stop, 1, (int)((end_ns - now_ns) / NSEC_PER_MSEC) + 1);
		now_ns = clock_mono_ns();
	}
	if (now_ns >= end_ns) {
		p->second_ns = now_ns;
		p->cpu_ns = clock_thread_cpu_ns();
	}
}

static void give_memory_back(struct web_pages *p)
{
	strbuf_done(&p->body);
	strbuf_init(&p->body, PAGE_BYTES_MAX);
	for (unsigned i = 0; i < CHANNELS; i++)
		if (p->channels[i].memory_fd >= 0 && ftruncate(p->channels[i].memory_fd, 0) < 0)
			channel_close(&p->channels[i]);
}

/* Whether the other end has answers that it has not read. */
static bool has_unread(const struct channel *channel)
{
	int bytes = 0;

	return ioctl(channel->socket, SIOCOUTQ, &bytes) == 0 && bytes > 0;
}

/* As poll(): for questions, for a while without those of who asked before reading the last answer. */
static int wait_for_questions(struct web_pages *p, struct pollfd fds[1 + CHANNELS])
{
	int timeout_ms = p->body.cap ? IDLE_MS : -1;

	fds[0] = (struct pollfd){ .fd = p->wake_fd, .events = POLLIN };
	for (unsigned i = 0; i < CHANNELS; i++) {
		struct channel *channel = &p->channels[i];

		fds[1 + i] = (struct pollfd){ channel->held ? -1 : channel->socket, POLLIN, 0 };
		if (channel->held)
			timeout_ms = UNREAD_MS;
		channel->held = false;
	}
	return poll(fds, 1 + CHANNELS, timeout_ms);
}

static void serve_channel(struct web_pages *p, struct channel *channel)
{
	channel->held = has_unread(channel); /* 0 when the other end is closed */
	if (!channel->held)
		serve_question(p, channel);
}

static void *pages_thread(void *userdata)
{
	struct web_pages *p = userdata;

	while (!atomic_load(&p->stop)) {
		struct pollfd fds[1 + CHANNELS];
		int n = wait_for_questions(p, fds);

		if (n == 0)
			give_memory_back(p);
		if (n <= 0)
			continue;
		for (unsigned i = 0; i < CHANNELS; i++)
			if (fds[1 + i].revents)
				serve_channel(p, &p->channels[i]);
		if (fds[0].revents)
			take_channels(p);
		keep_to_share(p);
	}
	return NULL;
}

/* ---- the main thread ---- */

int web_pages_new(const struct web_pages_config *config, struct web_pages **ret_pages)
{
	struct web_pages *p = calloc(1, sizeof(*p));
	int r;

	if (!p)
		return -ENOMEM;
	p->config = *config;
	for (unsigned i = 0; i < CHANNELS; i++) {
		p->channels[i] = (struct channel){ .socket = -1, .memory_fd = -1 };
		p->next[i] = -1;
	}
	pthread_mutex_init(&p->lock, NULL);
	strbuf_init(&p->body, PAGE_BYTES_MAX);
	p->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	r = p->wake_fd < 0 ? -errno : thread_start(STACK_BYTES, pages_thread, p, &p->thread);
	if (r < 0) {
		web_pages_free(p);
		return r;
	}
	p->running = true;
	pthread_setname_np(p->thread, "pages");
	*ret_pages = p;
	return 0;
}

void web_pages_free(struct web_pages *pages)
{
	if (!pages)
		return;
	if (pages->running) {
		atomic_store(&pages->stop, true);
		eventfd_write(pages->wake_fd, 1);
		pthread_join(pages->thread, NULL);
	}
	for (unsigned i = 0; i < CHANNELS; i++) {
		channel_close(&pages->channels[i]);
		closep(&pages->next[i]);
	}
	closep(&pages->wake_fd);
	strbuf_done(&pages->body);
	pthread_mutex_destroy(&pages->lock);
	free(pages);
}

void web_pages_allow_control(struct web_pages *pages, bool allowed)
{
	atomic_store(&pages->control, allowed);
}

int web_pages_connect(struct web_pages *pages, int *ret_page_channel, int *ret_atop_channel)
{
	int page[2], atop[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, page) < 0)
		return -errno;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, atop) < 0) {
		close_all(page, 2);
		return -errno;
	}
	pthread_mutex_lock(&pages->lock);
	for (unsigned i = 0; i < CHANNELS; i++)
		closep(&pages->next[i]);
	pages->next[0] = page[0];
	pages->next[1] = atop[0];
	pthread_mutex_unlock(&pages->lock);
	eventfd_write(pages->wake_fd, 1);
	*ret_page_channel = page[1];
	*ret_atop_channel = atop[1];
	return 0;
}
