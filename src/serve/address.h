// SPDX-License-Identifier: Apache-2.0
/*
 * Addresses to listen on, as people write them, and the listening sockets made from them. No names are looked
 * up but "localhost", which is both loopback addresses: a resolver may block, and where we listen must not
 * depend on one.
 */
#pragma once

#include <netinet/in.h>
#include <stdbool.h>
#include <sys/socket.h>
#include <sys/un.h>

/* "localhost" is two addresses. */
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
 * machine, IPv4 and IPv6), "*:9470" (the same). Port 0 lets the kernel choose. -EINVAL when the text is none
 * of these.
 */
int address_parse(const char *text, struct addresses *ret_addresses);

/* False also for text that is no address: what cannot be read is not called safe. */
bool address_is_loopback(const char *text);

/*
 * A listening TCP socket, non-blocking. -EADDRINUSE, -EACCES, -EADDRNOTAVAIL and whatever else bind() says.
 */
int listen_tcp(const struct address *address, int *ret_fd);

/* Port of a bound TCP socket, 0 when it has none. */
unsigned listen_port(int fd);

/*
 * A listening UNIX stream socket at @path, or at the abstract name after "@". A socket file that nobody
 * listens on is replaced; a live one is -EADDRINUSE, any other kind of file -EEXIST, a missing folder
 * -ENOENT, a path longer than the kernel's 107 bytes -ENAMETOOLONG. At no instant is the file open to more
 * than @mode says.
 */
int listen_unix(const char *path, mode_t mode, int *ret_fd);

/*
 * Address of a UNIX socket, abstract if @path begins with "@": its length has no trailing NUL then. -EINVAL,
 * -ENAMETOOLONG.
 */
int unix_address(const char *path, struct sockaddr_un *ret_address, socklen_t *ret_len);
