// SPDX-License-Identifier: Apache-2.0
/* Where a DCGM exporter is: a name, an address or a URL, with a port and a path that it does not say. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/*
 * The URL of the exporter @host: of a name or an IPv4 address http://HOST:PORT/PATH, of an IPv6 address, with
 * or without brackets, the same with brackets. One that begins with http:// or https:// is taken as it is;
 * what it lacks, port and path, is added. @path begins with a slash. -EINVAL: @host is none of these;
 * -ENAMETOOLONG.
 */
int exporter_url(const char *host, unsigned port, const char *path, char *ret_url, size_t size);
bool exporter_is_valid(const char *host);
/* A path of a URL: it begins with a slash and has no blank, no # and nothing but ASCII. */
bool exporter_path_is_valid(const char *path);
