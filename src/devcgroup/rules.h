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

/*
 * Whether some rule allows it to a character device: each by itself must have all accesses that are asked
 * for. @minor UINT32_MAX: to all minors.
 */
bool rules_allow(const char *list, uint32_t major, uint32_t minor, unsigned access);
/* Those of the rule for exactly this device; @minor UINT32_MAX: for all minors of this major. */
unsigned rules_of_device(const char *list, uint32_t major, uint32_t minor);
/* It allows what it does not show. */
bool rules_allow_all(const char *list);

/* devices.list; -E2BIG. */
int rules_read(int cgroup, char *buf, size_t size);
/* "c MAJOR:MINOR rwm"; @minor UINT32_MAX: "c MAJOR:* rwm". */
void rule_write(uint32_t major, uint32_t minor, unsigned access, char *buf, size_t size);
/* @file: devices.allow or devices.deny. */
int rule_apply(int cgroup, const char *file, const char *rule);

enum { RULES_BYTES = 64 << 10, RULE_BYTES = 40, ADDED_BYTES = 16 << 10 };
/* Rules that we added, a line each, until they are taken away. -ENODATA: none. */
int rules_added(int cgroup, char *buf, size_t size);
/* @text "": forget them. */
int rules_set_added(int cgroup, const char *text);
