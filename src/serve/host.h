// SPDX-License-Identifier: Apache-2.0
/*
 * The Host header. A website can make its own name resolve to 127.0.0.1 (DNS rebinding), and so read a server
 * there through its visitors' browsers; the Host header then has the website's name.
 */
#pragma once

#include <stdbool.h>

/*
 * Whether a request with this Host header ("NAME[:PORT]") on the socket @fd is to be answered. IP addresses,
 * "localhost" and the machine's host name always are. Other names must be in @names, separated by commas or
 * blanks; if that is "", they are refused on connections to a loopback address only.
 */
bool host_is_allowed(const char *host, const char *names, int fd);
