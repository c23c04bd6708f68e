// SPDX-License-Identifier: Apache-2.0
/*
 * Version 1's lists of devices: devices.list, which is read, and rules that are written to devices.allow
 * and devices.deny. See the kernel's Documentation/admin-guide/cgroup-v1/devices.rst.
 *
 * A list that allows all by default reads "a *:* rwm", whatever was denied in it: such exceptions cannot be
 * seen.
 */
#pragma once

#include "devcgroup/devcgroup.h"

/* Accesses to a character device that some rule has; each rule by itself must have all that is asked for. */
bool rules_allow(const char *list, uint32_t major, uint32_t minor, unsigned access);
/* Those of the rule for all minors of exactly this major. */
unsigned rules_of_major(const char *list, uint32_t major);
bool rules_allow_all(const char *list);

/* devices.list; -E2BIG. */
int rules_read(int cgroup, char *buf, size_t size);
/* "c MAJOR:* rwm" */
void rule_write(uint32_t major, unsigned access, char *buf, size_t size);
/* @file: devices.allow or devices.deny. */
int rule_apply(int cgroup, const char *file, const char *rule);

enum { RULES_BYTES = 64 << 10, RULE_BYTES = 40, ADDED_BYTES = 4096 };
/* Rules that we added, a line each, until they are taken away. -ENODATA: none. */
int rules_added(int cgroup, char *buf, size_t size);
/* @text "": forget them. */
int rules_set_added(int cgroup, const char *text);
