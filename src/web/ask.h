// SPDX-License-Identifier: Apache-2.0
/* One of the sockets by which the process that listens asks the agent; for one thread. */
#pragma once

#include "base/strbuf.h"
#include "web/protocol.h"

struct web_channel {
	int socket; /* -1: none */
	uint32_t id; /* of the last question */
	struct web_answer answer; /* the last one */
};

/*
 * Asks and waits. Appends the body of the answer to @ret_body; its head is in channel->answer. -ETIMEDOUT:
 * none came in WEB_ANSWER_NS; -ECONNRESET: the agent has gone; -EPROTO: that was none; else the error that
 * the agent had.
 */
int web_ask(struct web_channel *channel, const struct web_ask *ask, struct strbuf *ret_body);
