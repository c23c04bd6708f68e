// SPDX-License-Identifier: Apache-2.0
/* IP addresses that others have chosen. */
#pragma once

#include <stdbool.h>

/*
 * Whether @text is an IP address, without brackets and zone, that a pod can have: none of a link, none where
 * clouds have their metadata and credentials, of many hosts, or of none, in whichever way it is written.
 * Loopback is one of a host's.
 */
bool address_is_pods(const char *text);
