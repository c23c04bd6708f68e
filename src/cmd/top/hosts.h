// SPDX-License-Identifier: Apache-2.0
/*
 * Other machines' agents, asked by a process of its own (src/hosts) that waits for all of them at once. For
 * the sampler's thread.
 */
#pragma once

#include <systemd/sd-event.h>

#include "cmd/top/host_list.h"
#include "cmd/top/sample.h"

struct hosts;

/* @options and @list outlive it. -errno. */
int hosts_new(sd_event *event, const struct options *options, const struct host_list *list,
	      struct hosts **ret_hosts);
void hosts_free(struct hosts *hosts);
DEFINE_CLEANUP(struct hosts *, hosts_free, hosts_freep)
/* Asks anew for these pages (bits 1 << enum page) those that are not being asked. */
void hosts_ask(struct hosts *hosts, unsigned pages);
/* A message of that process. False: it is none that it may send. */
bool hosts_take(struct hosts *hosts, const void *message, size_t n);
/* Whether something has come since the last hosts_fill(), and whether nobody is being asked any more. */
bool hosts_have_news(const struct hosts *hosts);
bool hosts_are_done(const struct hosts *hosts);
/* Makes @sample one of all of them. -ENOMEM. */
int hosts_fill(struct hosts *hosts, struct sample *sample);
