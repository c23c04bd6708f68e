// SPDX-License-Identifier: Apache-2.0
#include "serve/address.h"

#include <arpa/inet.h>
#include <errno.h>
#include <net/if.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/text.h"

/* More than the kernel's usual maximum, which then applies: connections of a flood queue in the kernel. */
enum { BACKLOG = 4096 };

static void add_v4(struct addresses *to, struct in_addr ip, uint16_t port)
{
	struct address *a = &to->list[to->n++];

	a->in = (struct sockaddr_in){ .sin_family = AF_INET, .sin_port = htons(port), .sin_addr = ip };
	a->len = sizeof(a->in);
}

static void add_v6(struct addresses *to, struct in6_addr ip, uint32_t scope, uint16_t port)
{
	struct address *a = &to->list[to->n++];

	a->in6 = (struct sockaddr_in6){
		.sin6_family = AF_INET6, .sin6_port = htons(port), .sin6_addr = ip, .sin6_scope_id = scope
	};
	a->len = sizeof(a->in6);
}

/* Splits "HOST:PORT" or "[HOST]:PORT" in place. */
static int split(char *text, char **ret_host, bool *ret_bracketed, uint16_t *ret_port)
{
	char *host = text, *colon = strrchr(text, ':');
	bool bracketed = text[0] == '[';
	uint64_t port;

	if (!colon || parse_u64(colon + 1, &port) < 0 || port > UINT16_MAX)
		return -EINVAL;
	*colon = '\0';
	if (bracketed) {
		if (colon - text < 3 || colon[-1] != ']')
			return -EINVAL;
		colon[-1] = '\0';
		host++;
	}
	*ret_host = host;
	*ret_bracketed = bracketed;
	*ret_port = (uint16_t)port;
	return 0;
}

static int parse_v6(char *host, uint16_t port, struct addresses *to)
{
	struct in6_addr ip;
	uint32_t scope = 0;
	char *percent = strchr(host, '%');

	if (percent) {
		*percent = '\0';
		scope = if_nametoindex(percent + 1);
		if (!scope)
			return -EINVAL;
	}
	if (inet_pton(AF_INET6, host, &ip) != 1)
		return -EINVAL;
	add_v6(to, ip, scope, port);
	return 0;
}

int address_parse(const char *text, struct addresses *ret_addresses)
{
	struct addresses found = { 0 };
	char copy[128], *host;
	struct in_addr ip;
	bool bracketed;
	uint16_t port;
	int r;

	if (strlen(text) >= sizeof(copy))
		return -EINVAL;
	strcpy(copy, text);
	r = split(copy, &host, &bracketed, &port);
	if (r < 0)
		return r;
	if (bracketed) {
		r = parse_v6(host, port, &found);
		if (r < 0)
			return r;
	} else if (!*host || STRV_EQ(host, "*")) {
		add_v6(&found, in6addr_any, 0, port);
	} else if (STRV_EQ(host, "localhost")) {
		add_v4(&found, (struct in_addr){ htonl(INADDR_LOOPBACK) }, port);
		add_v6(&found, in6addr_loopback, 0, port);
	} else if (inet_pton(AF_INET, host, &ip) == 1) {
		add_v4(&found, ip, port);
	} else {
		return -EINVAL;
	}
	*ret_addresses = found;
	return 0;
}

bool address_is_loopback(const char *text)
{
	struct addresses a;

	if (address_parse(text, &a) < 0)
		return false;
	if (a.list[0].sa.sa_family == AF_INET)
		return (ntohl(a.list[0].in.sin_addr.s_addr) >> 24) == IN_LOOPBACKNET;
	return IN6_IS_ADDR_LOOPBACK(&a.list[0].in6.sin6_addr);
}

static int listen_on(const struct sockaddr *sa, socklen_t len, int *ret_fd)
{
	_cleanup_close_ int fd = socket(sa->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int one = 1, zero = 0;

	if (fd < 0)
		return -errno;
	/* Connections of an agent that has just ended must not prevent the next one from using its port. */
	if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) < 0)
		return -errno;
	/* Makes [::] accept IPv4, too, independent of the system's default; no effect on other addresses. */
	if (sa->sa_family == AF_INET6 && setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &zero, sizeof(zero)) < 0)
		return -errno;
	if (bind(fd, sa, len) < 0 || listen(fd, BACKLOG) < 0)
		return -errno;
	*ret_fd = TAKE_FD(fd);
	return 0;
}

int listen_tcp(const struct address *address, int *ret_fd)
{
	int r = listen_on(&address->sa, address->len, ret_fd);

	/* Without IPv6 support in the kernel, listen on all IPv4 addresses. */
	if (r == -EAFNOSUPPORT && IN6_IS_ADDR_UNSPECIFIED(&address->in6.sin6_addr)) {
		struct sockaddr_in any = { .sin_family = AF_INET, .sin_port = address->in6.sin6_port };

		r = listen_on((const struct sockaddr *)&any, sizeof(any), ret_fd);
	}
	return r;
}

unsigned listen_port(int fd)
{
	struct address a;

	a.len = sizeof(a.in6);
	if (getsockname(fd, &a.sa, &a.len) < 0)
		return 0;
	if (a.sa.sa_family == AF_INET)
		return ntohs(a.in.sin_port);
	return a.sa.sa_family == AF_INET6 ? ntohs(a.in6.sin6_port) : 0;
}

void close_all(int *fds, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		closep(&fds[i]);
		fds[i] = -1;
	}
}

int listen_tcp_text(const char *text, int ret_fds[ADDRESS_MAX], unsigned *ret_n)
{
	struct addresses found;
	unsigned n = 0;
	int r = address_parse(text, &found);

	for (unsigned i = 0; r == 0 && i < found.n; i++) {
		r = listen_tcp(&found.list[i], &ret_fds[n]);
		if (r == 0)
			n++;
		else if (i > 0 && r != -EADDRINUSE)
			r = 0; /* "localhost" without IPv6 */
		if (i == 0 && found.n > 1 && r == 0)
			found.list[1].in6.sin6_port = htons((uint16_t)listen_port(ret_fds[0]));
	}
	if (r < 0)
		close_all(ret_fds, n);
	else
		*ret_n = n;
	return r;
}

int unix_address(const char *path, struct sockaddr_un *ret_address, socklen_t *ret_len)
{
	struct sockaddr_un sun = { .sun_family = AF_UNIX };
	size_t n = strlen(path);

	if (n == 0 || STRV_EQ(path, "@"))
		return -EINVAL;
	if (n >= sizeof(sun.sun_path))
		return -ENAMETOOLONG;
	memcpy(sun.sun_path, path, n);
	*ret_len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n + 1);
	if (path[0] == '@') {
		sun.sun_path[0] = '\0';
		(*ret_len)--;
	}
	*ret_address = sun;
	return 0;
}

/* Removes a socket file that nobody listens on. */
static int remove_stale(const struct sockaddr_un *sun, socklen_t len)
{
	_cleanup_close_ int fd = -1;
	struct stat st;

	if (lstat(sun->sun_path, &st) < 0)
		return -errno;
	if (!S_ISSOCK(st.st_mode))
		return -EEXIST;
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	if (connect(fd, (const struct sockaddr *)sun, len) == 0)
		return -EADDRINUSE;
	/* A full queue also means that somebody listens; without permission to connect, assume so. */
	if (errno != ECONNREFUSED)
		return errno == EAGAIN ? -EADDRINUSE : -errno;
	return unlink(sun->sun_path) < 0 ? -errno : 0;
}

int listen_unix(const char *path, mode_t mode, int *ret_fd)
{
	_cleanup_close_ int fd = -1;
	struct sockaddr_un sun;
	socklen_t len;
	int r;

	r = unix_address(path, &sun, &len);
	if (r < 0)
		return r;
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	/*
	 * The kernel creates the file with the socket's mode less the umask, so it is never more accessible
	 * than requested.
	 */
	if (fchmod(fd, mode) < 0)
		return -errno;
	r = bind(fd, (struct sockaddr *)&sun, len) < 0 ? -errno : 0;
	if (r == -EADDRINUSE && sun.sun_path[0]) {
		r = remove_stale(&sun, len);
		if (r == 0 && bind(fd, (struct sockaddr *)&sun, len) < 0)
			r = -errno;
	}
	if (r < 0)
		return r;
	if ((sun.sun_path[0] && chmod(sun.sun_path, mode) < 0) || listen(fd, BACKLOG) < 0) {
		r = -errno;
		if (sun.sun_path[0])
			unlink(sun.sun_path);
		return r;
	}
	*ret_fd = TAKE_FD(fd);
	return 0;
}

int listen_abstract(const char *name, int *ret_fd)
{
	char address[sizeof(((struct sockaddr_un *)NULL)->sun_path) + 1];

	if (strlen(name) + 2 > sizeof(address))
		return -ENAMETOOLONG;
	address[0] = '@';
	strcpy(address + 1, name);
	return listen_unix(address, 0666, ret_fd);
}
