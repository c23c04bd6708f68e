// SPDX-License-Identifier: Apache-2.0
/*
 * cgroup.allow: cgroups that must let NVIDIA's devices be opened are looked at every cgroup.interval, and
 * allowed again where a daemon-reload, say, took it away: at most once in that time each. Belongs to the
 * thread of the event loop; looking is done in a thread that lives for one look, since a search among
 * thousands of cgroups takes tens of milliseconds, and may wait for the kernel.
 */
#pragma once

#include "config/options.h"
#include "model/model.h"

struct device_access;

enum { DEVICE_ACCESS_MAX = 64 }; /* cgroups; others are said in the log */

/* *ret_access is NULL if no cgroup is configured. @options and @model must live for longer. */
int device_access_new(const struct options *options, struct model *model, struct device_access **ret_access);
void device_access_free(struct device_access *access);
/* Looks when it is time. */
void device_access_tick(struct device_access *access);
