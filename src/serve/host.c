// SPDX-License-Identifier: Apache-2.0
#include "serve/host.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/macro.h"

enum { NAME_BYTES = 256 }; /* a DNS name has at most 253 characters */

static bool is_ip(const char *name)
{
	struct in6_addr address;

	return inet_pton(AF_INET, name, &address) == 1 || inet_pton(AF_INET6, name, &address) == 1;
}

/* Copies the name without port and brackets. False: not a valid Host header. */
static bool name_of(const char *host, char name[static NAME_BYTES])
{
	bool bracketed = host[0] == '[';
	size_t n = bracketed ? strcspn(++host, "]") : strcspn(host, ":");

	if (n == 0 || n >= NAME_BYTES)
		return false;
	memcpy(name, host, n);
	name[n] = '\0';
	if (name[n - 1] == '.') /* a fully qualified name */
		name[n - 1] = '\0';
	return true;
}

static bool is_listed(const char *name, const char *names)
{
	static const char separators[] = ", \t";
	size_t length = strlen(name);

	for (const char *at = names + strspn(names, separators); *at; at += strspn(at, separators)) {
		size_t n = strcspn(at, separators);

		if (n == length && strncasecmp(at, name, n) == 0)
			return true;
		at += n;
	}
	return false;
}

static bool is_own(const char *name)
{
	char own[NAME_BYTES];

	return gethostname(own, sizeof(own)) == 0 && strcasecmp(own, name) == 0;
}

static bool is_to_loopback(int fd)
{
	union {
		struct sockaddr any;
		struct sockaddr_in in;
		struct sockaddr_in6 in6;
	} local = { .any.sa_family = AF_UNSPEC };
	socklen_t n = sizeof(local);

	if (getsockname(fd, &local.any, &n) < 0)
		return true;
	if (local.any.sa_family == AF_INET)
		return ntohl(local.in.sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
	if (local.any.sa_family != AF_INET6)
		return false;
	if (IN6_IS_ADDR_V4MAPPED(&local.in6.sin6_addr))
		return local.in6.sin6_addr.s6_addr[12] == IN_LOOPBACKNET;
	return IN6_IS_ADDR_LOOPBACK(&local.in6.sin6_addr);
}

bool host_is_allowed(const char *host, const char *names, int fd)
{
	char name[NAME_BYTES];

	if (!name_of(host, name))
		return false;
	if (is_ip(name) || strcasecmp(name, "localhost") == 0 || is_listed(name, names) || is_own(name))
		return true;
	return !*names && !is_to_loopback(fd);
}
