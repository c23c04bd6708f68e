// SPDX-License-Identifier: Apache-2.0
/*
 * atop's two addresses, served from a collector's snapshots: what agent and atopgpud have in common. An
 * address that another program has costs a warning, never the rest.
 */
#pragma once

#include "agent/collector.h"

struct atop_listeners;

/* -ENOMEM. Addresses that cannot be had are logged; atop_listeners_open() says whether any could. */
int atop_listeners_new(sd_event *event, const struct options *options, struct collector *collector,
		       struct atop_listeners **ret_listeners);
void atop_listeners_free(struct atop_listeners *listeners);
unsigned atop_listeners_open(const struct atop_listeners *listeners);

/* Adds what has happened since the last call to the agent's own metrics. */
void atop_listeners_count(struct atop_listeners *listeners, struct model *model);
