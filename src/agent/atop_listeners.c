// SPDX-License-Identifier: Apache-2.0
#include "agent/atop_listeners.h"

#include <errno.h>
#include <stdlib.h>

#include "agent/atop_answers.h"
#include "agent/bind.h"

struct atop_listeners {
	struct atop_answers answers;
	struct atop_server *server;
	unsigned open;
};

int atop_listeners_new(sd_event *event, const struct options *options, struct collector *collector,
		       struct atop_listeners **ret_listeners)
{
	const char *address = options_text(options, OPT_atop_listen);
	const char *name = options_text(options, OPT_atop_socket);
	struct atop_listeners *l = calloc(1, sizeof(*l));
	int r, fd;

	if (!l)
		return -ENOMEM;
	r = atop_server_new(event, &atop_answers, &l->answers, &l->server);
	if (r < 0) {
		free(l);
		return r;
	}
	atop_answers_init(&l->answers, collector);
	if (address && bind_atop(address, &fd) == 0 && atop_server_listen_fd(l->server, fd) == 0)
		l->open++;
	if (name && bind_atop_abstract(name, &fd) == 0 && atop_server_listen_fd(l->server, fd) == 0)
		l->open++;
	*ret_listeners = l;
	return 0;
}

void atop_listeners_free(struct atop_listeners *l)
{
	if (!l)
		return;
	atop_server_free(l->server);
	atop_answers_done(&l->answers);
	free(l);
}

unsigned atop_listeners_open(const struct atop_listeners *l)
{
	return l->open;
}
