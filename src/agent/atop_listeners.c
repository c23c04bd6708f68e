// SPDX-License-Identifier: Apache-2.0
#include "agent/atop_listeners.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "proc/port.h"
#include "serve/address.h"
#include "serve/atop_server.h"
#include "view/view.h"

struct atop_listeners {
	struct collector *collector;
	struct atop_server *server;
	unsigned open;
	uint64_t truncated; /* truncated answers since the last atop_listeners_count() */
	/* The last rendered statistics and their inputs; the same request is answered from here. */
	struct {
		struct strbuf text;
		uint64_t seq, exit_seq, next_exit_seq;
		unsigned version;
	} cached;
};

_Static_assert((int)ATOP_ANSWER_MAX == (int)ATOP_TEXT_MAX, "view and server must agree on atop's limit");

static int answer_types(unsigned version, struct strbuf *out, void *userdata)
{
	struct atop_listeners *l = userdata;
	struct snapshot *snapshot = collector_snapshot(l->collector);
	int r = view_atop_types(snapshot, version, out);

	snapshot_unref(snapshot);
	return r;
}

static int answer_stats(unsigned version, uint64_t exit_seq, struct strbuf *out, uint64_t *ret_exit_seq,
			void *userdata)
{
	struct atop_listeners *l = userdata;
	struct snapshot *snapshot = collector_snapshot(l->collector);
	unsigned truncated = 0;
	int r = 0;

	if (l->cached.seq != snapshot->seq || l->cached.version != version ||
	    l->cached.exit_seq != exit_seq) {
		strbuf_reset(&l->cached.text);
		r = view_atop_stats(snapshot, version, exit_seq, &l->cached.text, &l->cached.next_exit_seq,
				    &truncated);
		l->cached.seq = r < 0 ? 0 : snapshot->seq;
		l->cached.version = version;
		l->cached.exit_seq = exit_seq;
		l->truncated += truncated > 0;
	}
	snapshot_unref(snapshot);
	if (r < 0)
		return r;
	strbuf_add(out, l->cached.text.data, l->cached.text.len);
	*ret_exit_seq = l->cached.next_exit_seq;
	return 0;
}

static uint64_t newest_exit(void *userdata)
{
	struct atop_listeners *l = userdata;
	struct snapshot *snapshot = collector_snapshot(l->collector);
	uint64_t seq = snapshot->exited_n ? snapshot->exited[snapshot->exited_n - 1].exit_seq : 0;

	snapshot_unref(snapshot);
	return seq;
}

static uint64_t layout(void *userdata)
{
	struct atop_listeners *l = userdata;
	struct snapshot *snapshot = collector_snapshot(l->collector);
	uint64_t value = view_atop_layout(snapshot);

	snapshot_unref(snapshot);
	return value;
}

static const struct atop_source source = { answer_types, answer_stats, layout, newest_exit };

static void listen_tcp_address(struct atop_listeners *l, const char *address)
{
	char who[128];
	int r;

	if (!address)
		return;
	r = atop_server_listen_tcp(l->server, address);
	if (r == -EADDRINUSE) {
		port_owner((uint16_t)strtoul(strrchr(address, ':') + 1, NULL, 10), who, sizeof(who));
		log_warning(
			"atop is not served on %s: %s listens there already; stop it, or pass --atop-listen "
			"none",
			address, who);
	} else if (r < 0) {
		log_warning("atop is not served on %s: %s; name another address with --atop-listen", address,
			    strerror(-r));
	} else {
		l->open++;
		if (asks_for_any_port(address))
			log_info("serving atop on %s (port %u)", address, atop_server_port(l->server));
		else
			log_info("serving atop on %s", address);
		if (!address_is_loopback(address))
			log_warning("LISTENING BEYOND LOOPBACK on %s for atop: there is no authentication",
				    address);
	}
}

static void listen_abstract(struct atop_listeners *l, const char *name)
{
	char who[128];
	int r;

	if (!name)
		return;
	r = atop_server_listen_abstract(l->server, name);
	if (r == -EADDRINUSE) {
		abstract_owner(name, who, sizeof(who));
		log_warning(
			"atop is not served on the socket @%s: %s listens there already; stop it, or pass "
			"--atop-socket none",
			name, who);
	} else if (r < 0) {
		log_warning("atop is not served on the socket @%s: %s; name another with --atop-socket", name,
			    strerror(-r));
	} else {
		l->open++;
		log_info("serving atop on the abstract socket @%s", name);
	}
}

int atop_listeners_new(sd_event *event, const struct options *options, struct collector *collector,
		       struct atop_listeners **ret_listeners)
{
	struct atop_listeners *l = calloc(1, sizeof(*l));
	int r;

	if (!l)
		return -ENOMEM;
	l->collector = collector;
	strbuf_init(&l->cached.text, ATOP_ANSWER_MAX);
	r = atop_server_new(event, &source, l, &l->server);
	if (r < 0) {
		free(l);
		return r;
	}
	listen_tcp_address(l, options_text(options, OPT_atop_listen));
	listen_abstract(l, options_text(options, OPT_atop_socket));
	*ret_listeners = l;
	return 0;
}

void atop_listeners_free(struct atop_listeners *l)
{
	if (!l)
		return;
	atop_server_free(l->server);
	strbuf_done(&l->cached.text);
	free(l);
}

unsigned atop_listeners_open(const struct atop_listeners *l)
{
	return l->open;
}

void atop_listeners_count(struct atop_listeners *l, struct model *model)
{
	struct atop_server_stats s;

	if (!l)
		return;
	atop_server_stats(l->server, &s);
	model_agent_set(model, AGENT_ATOP_CLIENTS, s.clients);
	model_agent_add(model, AGENT_ATOP_TRUNCATED, (double)l->truncated);
	l->truncated = 0;
}
