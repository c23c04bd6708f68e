// SPDX-License-Identifier: Apache-2.0
/*
 * Parses addresses to listen on, and creates the listening sockets. No name is resolved except "localhost",
 * which means both loopback addresses: a resolver may block, and the listening addresses must not depend on
 * it.
 */
#pragma once

#include <netinet/in.h>
#include <stdbool.h>
#include <sys/socket.h>
#include <sys/un.h>

/* "localhost" yields two addresses. */
enum { ADDRESS_MAX = 2 };

struct address {
	union {
		struct sockaddr sa;
		struct sockaddr_in in;
		struct sockaddr_in6 in6;
	};
	socklen_t len;
};

struct addresses {
	struct address list[ADDRESS_MAX];
	unsigned n;
};

/*
 * "127.0.0.1:9470", "[::1]:9470", "[fe80::1%eth0]:9470", "localhost:9470", ":9470" (every address of this
 * machine, IPv4 and IPv6), "*:9470" (the same). Port 0: the kernel chooses. -EINVAL: invalid text.
 */
int address_parse(const char *text, struct addresses *ret_addresses);

/* Also false for invalid text. */
bool address_is_loopback(const char *text);

/* A listening TCP socket, non-blocking. -EADDRINUSE, -EACCES, -EADDRNOTAVAIL, other errors of bind(). */
int listen_tcp(const struct address *address, int *ret_fd);

/*
 * Listening TCP sockets on all addresses of @text, for port 0 on the same port; "localhost" is only 127.0.0.1
 * where the kernel lacks IPv6. They belong to the caller. Errors of address_parse() and listen_tcp().
 */
int listen_tcp_text(const char *text, int ret_fds[ADDRESS_MAX], unsigned *ret_n);
/* Closes the first @n of @fds, and sets them to -1. */
void close_all(int *fds, unsigned n);

/* Port of a bound TCP socket, 0 if it has none. */
unsigned listen_port(int fd);

/*
 * A listening UNIX stream socket at @path, or at the abstract name after "@". A socket file that nobody
 * listens on is replaced; a live one is -EADDRINUSE, any other kind of file -EEXIST, a missing folder
 * -ENOENT, a path longer than the kernel's 107 bytes -ENAMETOOLONG. At no instant is the file open to more
 * than @mode says.
 */
int listen_unix(const char *path, mode_t mode, int *ret_fd);

/* A listening UNIX stream socket at the abstract @name, without "@". Errors of listen_unix(). */
int listen_abstract(const char *name, int *ret_fd);

/*
 * Address of a UNIX socket, abstract if @path begins with "@": its length has no trailing NUL then. -EINVAL,
 * -ENAMETOOLONG.
 */
int unix_address(const char *path, struct sockaddr_un *ret_address, socklen_t *ret_len);
