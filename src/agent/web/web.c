// SPDX-License-Identifier: Apache-2.0
#include "agent/web/web.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "agent/atop_answers.h"
#include "agent/bind.h"
#include "agent/lifeline.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "config/web_access.h"
#include "helper/helper.h"
#include "proc/port.h"
#include "serve/access.h"
#include "view/view.h"
#include "web/protocol.h"

/* Computing for so much of the time without an answer, in percent, is not waiting for anything. */
enum { BUSY_PERCENT = 80, ADDRESS_BYTES = 128 };
#define RETRY_NS (100 * NSEC_PER_MSEC)

/* What is to be served there; an address with port 0 has the chosen port, once it has been opened. */
struct wanted {
	bool set;
	bool opened; /* once */
	bool lost; /* could not be opened again for a replaced process */
	char text[ADDRESS_BYTES];
};

struct web {
	sd_event *event;
	struct web_config config;
	char *hosts, *socket;
	struct strbuf records; /* of who may ask for what */
	struct access *access; /* what they say; NULL: nothing is known yet */
	struct helper *helper;
	bool started; /* once; from then on it is replaced */
	bool up; /* it has got everything but addresses */
	sd_event_source *ping, *retry;
	int64_t pinged_ns; /* 0: nothing is asked */
	int64_t pinged_cpu_ns;
	struct wanted http[WEB_ADDRESSES], atop, atop_name;
	struct lifeline *lifeline; /* NULL: this system does not allow it */
	int lifeline_fd;
	int news_fd;
	struct web_news *news;
	struct web_counts *counts; /* of the process that runs, or of the last one */
	struct web_counts counted; /* of it, up to the last web_count() */
	uint64_t replaced, replaced_counted;
	struct log_limit complaints;
};

/* ---- shared memory ---- */

/* @theirs: fcntl() seals besides those against a change of its size. */
static int share(size_t n, int seals, int *ret_fd, void **ret_memory)
{
	_cleanup_close_ int fd = memfd_create("gpusonde-web", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	void *memory;

	if (fd < 0 || ftruncate(fd, (off_t)n) < 0)
		return -errno;
	memory = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (memory == MAP_FAILED)
		return -errno;
	if (fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL | seals) < 0) {
		munmap(memory, n);
		return -errno;
	}
	*ret_fd = TAKE_FD(fd);
	*ret_memory = memory;
	return 0;
}

/* ---- its start ---- */

static int order(struct web *web, enum web_order what, int fd)
{
	const struct web_message message = { .order = (uint8_t)what };

	return helper_send(web->helper, &message, sizeof(message), fd);
}

static void forget_counts(struct web *web)
{
	if (web->counts)
		munmap(web->counts, sizeof(*web->counts));
	web->counts = NULL;
	web->counted = (struct web_counts){ 0 };
}

static int give_counts(struct web *web)
{
	_cleanup_close_ int fd = -1;
	int r;

	forget_counts(web);
	r = share(sizeof(*web->counts), 0, &fd, (void **)&web->counts);
	return r < 0 ? r : order(web, WEB_COUNTS, fd);
}

static int give_channels(struct web *web)
{
	_cleanup_close_ int page = -1, atop = -1;
	int r;

	if (!web->config.pages)
		return 0;
	r = web_pages_connect(web->config.pages, &page, &atop);
	if (r == 0)
		r = order(web, WEB_PAGE_CHANNEL, page);
	return r < 0 ? r : order(web, WEB_ATOP_CHANNEL, atop);
}

static int give_setup(struct web *web)
{
	size_t n = sizeof(struct web_setup) + strlen(web->hosts) + 1;
	_cleanup_free_ struct web_setup *setup = malloc(n);

	if (!setup)
		return -ENOMEM;
	*setup = (struct web_setup){ .order = WEB_START, .max_connections = web->config.max_connections };
	strcpy(setup->hosts, web->hosts);
	return helper_send(web->helper, setup, n, -1);
}

/* In memory, of which the process has the one descriptor. */
static int give_access(struct web *web)
{
	_cleanup_close_ int fd = memfd_create("gpusonde-access", MFD_CLOEXEC);

	if (fd < 0)
		return -errno;
	if (pwrite(fd, web->records.data, web->records.len, 0) != (ssize_t)web->records.len)
		return -EIO;
	return order(web, WEB_ACCESS, fd);
}

static void arm(sd_event_source *timer, int64_t in_ns)
{
	sd_event_source_set_time_relative(timer, (uint64_t)(in_ns / NSEC_PER_USEC));
	sd_event_source_set_enabled(timer, SD_EVENT_ONESHOT);
}

static int start_process(struct web *web)
{
	int r = order(web, WEB_NEWS, web->news_fd);

	if (r == 0)
		r = give_counts(web);
	if (r == 0)
		r = give_channels(web);
	if (r == 0 && web->lifeline)
		r = order(web, WEB_LIFELINE, web->lifeline_fd);
	if (r == 0)
		r = give_access(web);
	if (r == 0)
		r = give_setup(web);
	if (r < 0)
		return r;
	web->up = true;
	web->pinged_ns = 0;
	arm(web->ping, web->config.ping_ns);
	return 0;
}

/* ---- addresses ---- */

/* Takes ownership of the descriptors. */
static int hand_over(struct web *web, enum web_order what, int *fds, unsigned n)
{
	int r = 0;

	for (unsigned i = 0; i < n && r == 0; i++)
		r = order(web, what, fds[i]);
	close_all(fds, n);
	return r;
}

static void want(struct wanted *wanted, const char *text)
{
	*wanted = (struct wanted){ .set = text };
	snprintf(wanted->text, sizeof(wanted->text), "%s", text ? text : "");
}

/* A replaced process gets the same port. */
static void keep_port(struct wanted *wanted, int fd)
{
	size_t host_n = (size_t)(strrchr(wanted->text, ':') - wanted->text);

	snprintf(wanted->text + host_n, sizeof(wanted->text) - host_n, ":%u", listen_port(fd));
}

/* @so: what follows for the address. */
static void refuse_exposure(const char *address, const char *so)
{
	log_error("%s %s: any client that can reach it could read everything, since no client has to "
		  "log in. Name users or tokens (web.config_file, web.tokens), or say that it is to be open: "
		  "--web-open true",
		  address, so);
}

static int open_http_at(struct web *web, struct wanted *wanted)
{
	static const struct {
		const char *flag;
		enum web_order order;
	} rows[WEB_ADDRESSES] = {
		[WEB_ADDRESS_HTTP] = { "--listen", WEB_LISTEN_HTTP },
		[WEB_ADDRESS_CONTAINER] = { "--http-container-listen", WEB_LISTEN_HTTP },
		[WEB_ADDRESS_EXPORTER] = { "--exporter-listen", WEB_LISTEN_EXPORTER },
	};
	const unsigned which = (unsigned)(wanted - web->http);
	int fds[ADDRESS_MAX], r;
	unsigned n;

	wanted->lost = false;
	if (!wanted->set || !web->up)
		return 0;
	if (web_is_exposed(wanted->text, access_asks(web->access)) && !web->config.open) {
		refuse_exposure(wanted->text, "is not served");
		return -EACCES;
	}
	r = bind_http(wanted->text, web->config.flag ? web->config.flag : rows[which].flag,
		      access_asks(web->access), fds, &n);
	wanted->lost = r < 0;
	if (r < 0)
		return r;
	keep_port(wanted, fds[0]);
	/* If it has ended meanwhile, its successor gets them. */
	(void)hand_over(web, rows[which].order, fds, n);
	return 0;
}

/* All are tried; the first error. */
static int open_http(struct web *web)
{
	int first = 0;

	for (unsigned i = 0; i < WEB_ADDRESSES; i++) {
		int r = open_http_at(web, &web->http[i]);

		first = first ? first : r;
	}
	return first;
}

/* Another program's from the start is left to it; one that was ours is tried again. */
static void open_atop_at(struct web *web, struct wanted *wanted, bool abstract)
{
	int fd, r;

	if (!wanted->set || !web->up)
		return;
	if (!abstract && web_is_exposed(wanted->text, false) && !web->config.open) {
		log_warning("atop is not served on %s: its protocol has no authentication; name a loopback "
			    "address with --atop-listen, or say --web-open true",
			    wanted->text);
		return;
	}
	r = abstract ? bind_atop_abstract(wanted->text, &fd) : bind_atop(wanted->text, &fd);
	wanted->lost = r < 0 && wanted->opened;
	if (r < 0)
		return;
	wanted->opened = true;
	if (!abstract)
		keep_port(wanted, fd);
	(void)hand_over(web, WEB_LISTEN_ATOP, &fd, 1);
}

static void open_atop(struct web *web)
{
	open_atop_at(web, &web->atop, false);
	open_atop_at(web, &web->atop_name, true);
}

/*
 * Has addresses closed, and waits for that, since the next ones may be of the same port. @what: bits of enum
 * web_order.
 */
static void close_addresses(struct web *web, unsigned what)
{
	struct pollfd closed = { .events = POLLIN };
	int ends[2], r = 0;

	if (!web->up || pipe2(ends, O_CLOEXEC) < 0)
		return;
	for (unsigned i = WEB_UNLISTEN_HTTP; i <= WEB_UNLISTEN_ATOP && r == 0; i++)
		if (what >> i & 1)
			r = order(web, (enum web_order)i, ends[1]);
	close(ends[1]);
	closed.fd = ends[0];
	if (r < 0 || poll(&closed, 1, WEB_UNLISTEN_MS) <= 0) {
		web->up = false; /* its successor opens the next ones */
		helper_give_up(web->helper);
	}
	close(ends[0]);
}

static void explain(const struct web *web, int error)
{
	if (web->socket)
		log_error(
			"cannot reach the process that listens at %s: %s; start gpusonde-web.socket, or set "
			"web.socket to none",
			web->socket, strerror(-error));
	else
		log_error("cannot start the process that listens, gpusonde-web: %s; reinstall gpusonde",
			  strerror(-error));
}

/* Where nothing is served, no process is needed. */
static int start_first(struct web *web)
{
	int r = web->started ? 0 : start_process(web);

	/* It ended at once. */
	if (r == -EAGAIN) {
		arm(web->retry, RETRY_NS);
		r = 0;
	}
	if (r < 0)
		explain(web, r);
	else
		web->started = true;
	return r;
}

int web_listen(struct web *web, const char *const addresses[WEB_ADDRESSES])
{
	bool had = false, wants = false;

	for (unsigned i = 0; i < WEB_ADDRESSES; i++) {
		had |= web->http[i].set;
		wants |= addresses[i] != NULL;
	}
	if (had)
		close_addresses(web, 1U << WEB_UNLISTEN_HTTP);
	for (unsigned i = 0; i < WEB_ADDRESSES; i++)
		want(&web->http[i], addresses[i]);
	if (wants) {
		int r = start_first(web);

		if (r < 0)
			return r;
	}
	return open_http(web);
}

/* Whether an address that is served would be open to everybody; which one is logged. */
static bool would_expose(const struct web *web, const struct access *access)
{
	for (unsigned i = 0; i < WEB_ADDRESSES; i++) {
		const struct wanted *wanted = &web->http[i];

		if (!wanted->set || !web_is_exposed(wanted->text, access_asks(access)) || web->config.open)
			continue;
		refuse_exposure(wanted->text, "is not opened to everybody");
		return true;
	}
	return false;
}

/* Takes both over. */
static void keep_access(struct web *web, struct strbuf *records, struct access *access)
{
	access_forget(&web->records);
	web->records = *records;
	strbuf_init(records, ACCESS_BYTES_MAX);
	access_unref(web->access);
	web->access = access;
	if (web->config.pages)
		web_pages_allow_control(web->config.pages, access_allows_control(access));
}

/* One that has not been told who may ask must not go on by what it knows: its successor is. */
static void tell_access(struct web *web)
{
	if (!web->up || give_access(web) == 0)
		return;
	web->up = false;
	helper_give_up(web->helper);
}

int web_set_access(struct web *web, const struct strbuf *records, bool may_ask_less)
{
	_cleanup_(access_unrefp) struct access *access = NULL;
	bool had_tls = access_has_tls(web->access), other_tls;
	struct strbuf copy;
	int r = access_new(records->data, records->len, &access, NULL);

	if (r < 0)
		return r;
	if (!may_ask_less && access_asks_less(access, web->access))
		return -EPERM;
	if (would_expose(web, access))
		return -EACCES;
	strbuf_init(&copy, ACCESS_BYTES_MAX);
	strbuf_add(&copy, records->data, records->len);
	if (copy.failed) {
		access_forget(&copy);
		return -ENOMEM;
	}
	other_tls = access_has_tls(access) != had_tls;
	keep_access(web, &copy, TAKE_PTR(access));
	if (!web->up)
		return 0;
	if (other_tls)
		close_addresses(web, 1U << WEB_UNLISTEN_HTTP);
	tell_access(web);
	return other_tls ? open_http(web) : 0;
}

void web_describe_access(const struct web *web, char *ret_text, size_t size)
{
	access_describe(web->access, ret_text, size);
}

void web_set_open(struct web *web, bool open)
{
	web->config.open = open;
}

void web_listen_atop(struct web *web, const char *address, const char *name)
{
	if (web->atop.set || web->atop_name.set)
		close_addresses(web, 1U << WEB_UNLISTEN_ATOP);
	want(&web->atop, address);
	want(&web->atop_name, name);
	if ((address || name) && start_first(web) == 0)
		open_atop(web);
}

void web_listen_again(struct web *web)
{
	for (unsigned i = 0; i < WEB_ADDRESSES; i++)
		if (web->http[i].lost)
			open_http_at(web, &web->http[i]);
	if (web->atop.lost)
		open_atop_at(web, &web->atop, false);
	if (web->atop_name.lost)
		open_atop_at(web, &web->atop_name, true);
}

/* ---- its life ---- */

static int on_retry(_unused_ sd_event_source *source, _unused_ uint64_t usec, void *userdata)
{
	struct web *web = userdata;
	struct helper_stats stats;
	int r;

	helper_stats(web->helper, &stats);
	/* What was killed has the addresses until it has ended. */
	r = stats.killed > 0 ? -EBUSY : start_process(web);
	if (r < 0) {
		if (r != -EBUSY && r != -EAGAIN && log_limit_allow(&web->complaints))
			explain(web, r);
		arm(web->retry, RETRY_NS);
		return 0;
	}
	open_http(web);
	open_atop(web);
	return 0;
}

static void on_lost(bool hung, void *userdata)
{
	struct web *web = userdata;

	web->up = false;
	web->replaced++;
	sd_event_source_set_enabled(web->ping, SD_EVENT_OFF);
	if (log_limit_allow(&web->complaints))
		log_warning("the process that serves HTTP and atop %s; it is replaced",
			    hung ? "did not answer" : "ended, or said what it was not asked");
	arm(web->retry, RETRY_NS);
}

static void on_answer(const void *message, size_t n, int fd, void *userdata)
{
	struct web *web = userdata;
	const struct web_message *answer = message;

	closep(&fd);
	/* It says nothing of its own accord: one that does could keep the main loop busy. */
	if (n != sizeof(*answer) || answer->order != WEB_PING || !web->pinged_ns)
		helper_reject(web->helper);
	else
		web->pinged_ns = 0;
}

/* CPU time of the process; 0 if it has ended, or is a service's, which limits it. */
static int64_t cpu_ns(const struct web *web)
{
	struct timespec ts;
	clockid_t clock;

	if (!web_pid(web) || clock_getcpuclockid(web_pid(web), &clock) != 0 || clock_gettime(clock, &ts) < 0)
		return 0;
	return ts.tv_sec * NSEC_PER_SEC + ts.tv_nsec;
}

static int on_ping(_unused_ sd_event_source *source, _unused_ uint64_t usec, void *userdata)
{
	struct web *web = userdata;
	int64_t now_ns = clock_mono_ns(), silent_ns = now_ns - web->pinged_ns;

	if (!web->pinged_ns) {
		web->pinged_ns = now_ns;
		web->pinged_cpu_ns = cpu_ns(web);
		order(web, WEB_PING, -1);
	} else if (silent_ns >= WEB_HUNG_PINGS * web->config.ping_ns ||
		   cpu_ns(web) - web->pinged_cpu_ns >= silent_ns / 100 * BUSY_PERCENT) {
		helper_give_up(web->helper);
		return 0;
	}
	arm(web->ping, web->config.ping_ns);
	return 0;
}

static const struct helper_ops ops = { .answer = on_answer, .lost = on_lost };

static int add_timer(struct web *web, sd_event_time_handler_t handler, sd_event_source **ret_timer)
{
	int r = sd_event_add_time(web->event, ret_timer, CLOCK_MONOTONIC, 0, USEC_PER_SEC / 4, handler, web);

	return r < 0 ? r : sd_event_source_set_enabled(*ret_timer, SD_EVENT_OFF);
}

static void hold_lifeline(struct web *web)
{
	int r = lifeline_new(&web->lifeline, &web->lifeline_fd);

	if (r < 0)
		log_debug("ports will be free only when the kernel has removed a killed agent's probes: %s",
			  strerror(-r));
}

int web_new(sd_event *event, const struct web_config *config, struct web **ret_web)
{
	const struct helper_config process = {
		.program = config->program ? config->program : "gpusonde-web",
		.role = WEB_ROLE,
		.socket = config->socket,
	};
	struct web *web = calloc(1, sizeof(*web));
	int r = 0;

	if (!web)
		return -ENOMEM;
	web->event = sd_event_ref(event);
	web->config = *config;
	web->news_fd = -1;
	if (!web->config.ping_ns)
		web->config.ping_ns = WEB_PING_NS;
	web->complaints = (struct log_limit){ .burst = 5, .interval_ns = 60 * NSEC_PER_SEC };
	strbuf_init(&web->records, ACCESS_BYTES_MAX);
	web->hosts = strdup(config->hosts ? config->hosts : "");
	web->socket = config->socket ? strdup(config->socket) : NULL;
	if (!web->hosts || (config->socket && !web->socket))
		r = -ENOMEM;
	else if (strlen(web->hosts) >= WEB_HOSTS_MAX)
		r = -E2BIG;
	if (r == 0)
		r = share(sizeof(*web->news), F_SEAL_FUTURE_WRITE, &web->news_fd, (void **)&web->news);
	if (r == 0)
		hold_lifeline(web);
	if (r >= 0)
		r = add_timer(web, on_ping, &web->ping);
	if (r >= 0)
		r = add_timer(web, on_retry, &web->retry);
	if (r >= 0)
		r = helper_new(event, &process, &ops, web, &web->helper);
	if (r < 0) {
		web_free(web);
		return r;
	}
	*ret_web = web;
	return 0;
}

void web_free(struct web *web)
{
	if (!web)
		return;
	/* Addresses are free when this returns. */
	close_addresses(web, 1U << WEB_UNLISTEN_HTTP | 1U << WEB_UNLISTEN_ATOP);
	helper_free(web->helper);
	lifeline_free(web->lifeline);
	sd_event_source_disable_unref(web->ping);
	sd_event_source_disable_unref(web->retry);
	forget_counts(web);
	if (web->news)
		munmap(web->news, sizeof(*web->news));
	closep(&web->news_fd);
	sd_event_unref(web->event);
	access_forget(&web->records);
	access_unref(web->access);
	free(web->hosts);
	free(web->socket);
	free(web);
}

/* ---- figures ---- */

void web_publish(struct web *web, const struct snapshot *snapshot)
{
	atomic_store(&web->news->atop_layout, view_atop_layout(snapshot));
	atomic_store(&web->news->atop_newest_exit, atop_newest_exit(snapshot));
	atomic_store(&web->news->generation, snapshot->seq);
}

/* What was added since; the process that writes the figures may be a hostile one. */
static double added(uint64_t now, atomic_uint_fast64_t *counted)
{
	uint64_t before = *counted;

	*counted = now;
	return now > before && now - before < UINT32_MAX ? (double)(now - before) : 0;
}

void web_take_figures(struct web *web, struct web_figures *ret_figures)
{
	struct web_counts *c = web->counts;

	*ret_figures = (struct web_figures){ .replaced = (double)(web->replaced - web->replaced_counted) };
	web->replaced_counted = web->replaced;
	if (!c)
		return;
	ret_figures->requests = added(atomic_load(&c->http_requests), &web->counted.http_requests);
	ret_figures->evicted = added(atomic_load(&c->http_evicted), &web->counted.http_evicted);
	ret_figures->streams_dropped =
		added(atomic_load(&c->http_streams_dropped), &web->counted.http_streams_dropped);
	for (unsigned i = 0; i < HTTP_REFUSALS; i++)
		ret_figures->refused[i] =
			added(atomic_load(&c->http_refused[i]), &web->counted.http_refused[i]);
	if (!web->up)
		return;
	ret_figures->streams = atomic_load(&c->http_streams);
	ret_figures->connections = atomic_load(&c->http_connections);
	ret_figures->atop_clients = atomic_load(&c->atop_clients);
}

pid_t web_pid(const struct web *web)
{
	struct helper_stats stats;

	helper_stats(web->helper, &stats);
	return stats.pid;
}
