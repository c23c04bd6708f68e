// SPDX-License-Identifier: Apache-2.0
/*
 * The client in three parts: client.c has questions and answers, outbox.c what is sent in order and
 * environments, watch.c the memory shared with the helper, whether it makes progress, and who is to blame if
 * not.
 */
#pragma once

#include <systemd/sd-event.h>

#include "base/hashmap.h"
#include "base/strbuf.h"
#include "helper/helper.h"
#include "symbolize/asked.h"
#include "symbolize/client.h"
#include "symbolize/intern.h"
#include "symbolize/suspects.h"
#include "symbolize/wire.h"

enum { ACCOUNTS_KNOWN = 256, ENVIRONMENTS = 256, WAIT_STEP_MS = 20 };

struct known_account {
	struct process_id id;
	uint64_t incarnation, account;
};

struct environment_asked {
	struct process_id id;
	uint64_t wire_id; /* 0: not sent */
	unsigned tries;
};

/* What one of the helper's threads was last seen to do. */
struct watch {
	uint64_t step, activity;
	int64_t since_ns; /* that it has not moved */
	int64_t cpu_ns; /* when the step began */
};

struct symbols {
	struct symbols_config config;
	struct symbols_ops ops;
	void *userdata;
	struct helper *helper;
	struct kernels *kernels;
	struct strbuf out;
	struct asked_table asked;
	struct suspects suspects;
	struct known_account known[ACCOUNTS_KNOWN];
	struct symbolizer_stats stats;
	uint64_t withheld, seq;
	int broken; /* why no helper can be started, until then */
	int64_t broken_until_ns;
	bool pumping;
	/* looks */
	bool looks; /* there were any: the helper knows what nobody can read again */
	uint64_t look_id; /* waited for; 0: none */
	int look_error;
	struct hashmap kept; /* processes of whose memory the helper has images */
	/* outbox.c */
	struct wire_request *pending; /* ring */
	uint32_t pending_at, pending_n, pending_room;
	struct environment_asked environments[ENVIRONMENTS];
	uint32_t environments_n;
	/* watch.c */
	struct wire_shared *shared; /* with the helper; NULL: none runs */
	uint64_t figures_before[WIRE_FIGURES]; /* of earlier helpers */
	uint64_t sent; /* messages to this one */
	int64_t busy_ns; /* when something was last sent or worked on */
	struct watch watches[WIRE_LANES];
	sd_event_source *timer;
};

/* client.c */
void symbols_pump(struct symbols *s);

/* outbox.c */
/* -EAGAIN: too many wait. */
int pending_add(struct symbols *s, const struct wire_request *request);
/* In order; -EAGAIN: the rest later. */
int pending_send(struct symbols *s);
void pending_done(struct symbols *s);
void kept_add(struct symbols *s, pid_t pid, uint64_t incarnation);
void kept_remove(struct symbols *s, pid_t pid, uint64_t incarnation);
int environments_send(struct symbols *s);
void environments_take(struct symbols *s, const char *message, size_t n);
/* Those of @culprit, and those that no helper survived, are given up; the others are asked again. */
void environments_take_back(struct symbols *s, uint32_t culprit);
/* @pid 0: all. */
void environments_give_up(struct symbols *s, uint32_t pid);

/* watch.c */
/* To the helper, which is started if none runs. As helper_send(). */
int symbols_send(struct symbols *s, const void *message, size_t n, int fd);
bool shared_is_open(const struct symbols *s);
/* The helper has ended. */
void shared_close(struct symbols *s);
void shared_add_figures(const struct symbols *s, struct symbolizer_stats *stats);
int watch_new(struct symbols *s, sd_event *event);
void watch_done(struct symbols *s);
void watch_arm(struct symbols *s);
/* Gives up a helper that makes no progress. */
void watch_check(struct symbols *s);
/* Notes who made it hang or crash; pid 0: nobody is known. */
struct process_id watch_blame(struct symbols *s, bool hung);
