// SPDX-License-Identifier: Apache-2.0
#include "config/exporter.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/macro.h"

enum { HOST_MAX = 253, URL_MAX = 700 };

/* Parts of a URL; pointers into the text. */
struct parts {
	const char *scheme; /* with its "://" */
	int scheme_n;
	const char *host;
	int host_n;
	bool brackets;
	const char *port; /* "": not said */
	int port_n;
	const char *path; /* "": not said */
};

bool exporter_path_is_valid(const char *path)
{
	if (*path != '/' || strlen(path) > URL_MAX - HOST_MAX - 32)
		return false;
	for (const char *p = path; *p; p++)
		if (*p <= ' ' || *p > '~' || *p == '#' || *p == '"' || *p == '<' || *p == '>' || *p == '\\')
			return false;
	return true;
}

static bool is_host_name(const char *p, int n)
{
	if (n < 1 || n > HOST_MAX)
		return false;
	for (int i = 0; i < n; i++)
		if (!strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_", p[i]))
			return false;
	return true;
}

/* With a zone, of a link-local address: fe80::1%eth0. */
static bool is_ipv6(const char *p, int n)
{
	char text[INET6_ADDRSTRLEN];
	struct in6_addr in6;
	const char *zone = memchr(p, '%', (size_t)n);
	int address_n = zone ? (int)(zone - p) : n;

	if (address_n >= (int)sizeof(text) || (zone && !is_host_name(zone + 1, n - address_n - 1)))
		return false;
	memcpy(text, p, (size_t)address_n);
	text[address_n] = '\0';
	return inet_pton(AF_INET6, text, &in6) == 1;
}

static bool take_scheme(struct parts *parts, const char **text)
{
	static const char *const schemes[] = { "http://", "https://" };

	parts->scheme = schemes[0];
	parts->scheme_n = (int)strlen(schemes[0]);
	for (size_t i = 0; i < ARRAY_SIZE(schemes); i++)
		if (strncasecmp(*text, schemes[i], strlen(schemes[i])) == 0) {
			parts->scheme = schemes[i];
			parts->scheme_n = (int)strlen(schemes[i]);
			*text += parts->scheme_n;
			return true;
		}
	return false;
}

/* HOST, [IPV6] and, in a URL, what follows: :PORT and a path. */
static bool take_host(struct parts *parts, const char *text, bool url)
{
	const char *end;

	parts->port = parts->path = "";
	if (*text == '[') {
		end = strchr(++text, ']');
		if (!end)
			return false;
		parts->brackets = true;
		parts->host = text;
		parts->host_n = (int)(end++ - text);
	} else {
		end = text + (url ? strcspn(text, ":/") : strlen(text));
		parts->host = text;
		parts->host_n = (int)(end - text);
		parts->brackets = !url && is_ipv6(text, parts->host_n);
	}
	if (url && *end == ':') {
		parts->port = end + 1;
		parts->port_n = (int)strspn(parts->port, "0123456789");
		end = parts->port + parts->port_n;
		if (parts->port_n < 1 || parts->port_n > 5)
			return false;
	}
	if (url && *end == '/')
		parts->path = end;
	else if (*end)
		return false;
	return true;
}

static bool parse(const char *text, struct parts *parts)
{
	bool url;
	unsigned long port;

	*parts = (struct parts){ 0 };
	url = take_scheme(parts, &text);
	if (!take_host(parts, text, url))
		return false;
	port = parts->port_n ? strtoul(parts->port, NULL, 10) : 1;
	return (parts->brackets ? is_ipv6(parts->host, parts->host_n) :
				  is_host_name(parts->host, parts->host_n)) &&
	       port > 0 && port <= 65535 && (!*parts->path || exporter_path_is_valid(parts->path));
}

bool exporter_is_valid(const char *host)
{
	struct parts parts;

	return parse(host, &parts);
}

int exporter_url(const char *host, unsigned port, const char *path, char *ret_url, size_t size)
{
	struct parts parts;
	char url[URL_MAX + 1], port_text[8];
	int n;

	if (!parse(host, &parts))
		return -EINVAL;
	snprintf(port_text, sizeof(port_text), "%u", port % 65536);
	n = snprintf(url, sizeof(url), "%.*s%s%.*s%s:%.*s%s", parts.scheme_n, parts.scheme,
		     parts.brackets ? "[" : "", parts.host_n, parts.host, parts.brackets ? "]" : "",
		     parts.port_n ? parts.port_n : (int)strlen(port_text),
		     parts.port_n ? parts.port : port_text, *parts.path ? parts.path : path);
	if (n >= (int)MIN(size, sizeof(url)))
		return -ENAMETOOLONG;
	memcpy(ret_url, url, (size_t)n + 1);
	return 0;
}
