// SPDX-License-Identifier: Apache-2.0
/*
 * The two atop addresses, served from a collector's snapshots in its own process, by atopgpud. An address
 * that is in use by another program is logged as a warning and skipped.
 */
#pragma once

#include "agent/driver/collector.h"

struct atop_listeners;

/* -ENOMEM. Addresses that cannot be opened are logged; atop_listeners_open() tells whether any is open. */
int atop_listeners_new(sd_event *event, const struct options *options, struct collector *collector,
		       struct atop_listeners **ret_listeners);
void atop_listeners_free(struct atop_listeners *listeners);
unsigned atop_listeners_open(const struct atop_listeners *listeners);
