// SPDX-License-Identifier: Apache-2.0
#include "inference/ports.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cursor.h"
#include "base/fd.h"
#include "base/macro.h"

enum {
	TCP_LISTEN_STATE = 0x0a, /* of include/net/tcp_states.h */
	TABLE_BYTES = 8 << 20, /* of /proc/PID/net/tcp: 150 bytes a socket */
	FILES_MAX = 65536, /* descriptors of a process that are looked at */
};

/* Eight digits are a 32-bit number of the machine, in whose memory the address lies as the network has it. */
static int parse_address(struct cursor *c, bool is_ipv6, uint8_t address[static 16])
{
	const unsigned words = is_ipv6 ? 4 : 1;

	for (unsigned i = 0; i < words; i++) {
		struct cursor digits = cursor_over(c->p, 8);
		uint64_t word;
		uint32_t half;

		if (cursor_left(c) < 8 || cursor_hex(&digits, &word) < 0 || !cursor_eof(&digits))
			return -EBADMSG;
		half = (uint32_t)word;
		memcpy(address + 4 * i, &half, sizeof(half));
		c->p += 8;
	}
	return 0;
}

static void make_reachable(struct listening *socket)
{
	static const uint8_t any[16], v4_loopback[4] = { 127, 0, 0, 1 };

	if (memcmp(socket->address, any, socket->is_ipv6 ? 16 : 4) != 0)
		return;
	if (socket->is_ipv6)
		socket->address[15] = 1;
	else
		memcpy(socket->address, v4_loopback, sizeof(v4_loopback));
}

/* "  0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000  0 12345 ..." */
static int parse_socket(struct cursor c, bool is_ipv6, struct listening *ret_socket)
{
	struct listening socket = { .is_ipv6 = is_ipv6 };
	struct cursor word;
	uint64_t number;

	cursor_skip_space(&c);
	if (cursor_until(&c, ':', &word) < 0)
		return -EBADMSG;
	cursor_skip_space(&c);
	if (parse_address(&c, is_ipv6, socket.address) < 0 || !cursor_literal(&c, ":") ||
	    cursor_hex(&c, &number) < 0)
		return -EBADMSG;
	socket.port = (uint16_t)number;
	cursor_skip_space(&c);
	if (cursor_until(&c, ' ', &word) < 0 || cursor_hex(&c, &number) < 0 || number != TCP_LISTEN_STATE)
		return -EBADMSG;
	/* queues, timer, retransmits, user, timeout */
	for (unsigned i = 0; i < 5; i++) {
		cursor_skip_space(&c);
		if (cursor_until(&c, ' ', &word) < 0)
			return -EBADMSG;
	}
	cursor_skip_space(&c);
	if (cursor_u64(&c, &socket.inode) < 0 || socket.inode == 0)
		return -EBADMSG;
	make_reachable(&socket);
	*ret_socket = socket;
	return 0;
}

void ports_parse(struct ports *ports, bool is_ipv6, const char *text, size_t n)
{
	struct cursor c = cursor_over(text, n), line;

	while (ports->n < PORTS_MAX && cursor_until(&c, '\n', &line) == 0)
		if (parse_socket(line, is_ipv6, &ports->list[ports->n]) == 0)
			ports->n++;
}

int ports_read(struct ports *ports, const char *process)
{
	_cleanup_free_ char *text = malloc(TABLE_BYTES);
	char path[256];
	size_t n;
	int r = -ENOENT;

	if (!text)
		return -ENOMEM;
	ports->n = 0;
	for (unsigned is_ipv6 = 0; is_ipv6 < 2; is_ipv6++) {
		snprintf(path, sizeof(path), "%s/net/%s", process, is_ipv6 ? "tcp6" : "tcp");
		if (read_file(path, text, TABLE_BYTES, &n) < 0)
			continue;
		ports_parse(ports, is_ipv6, text, n);
		r = 0;
	}
	return r;
}

static const struct listening *find_inode(const struct ports *ports, uint64_t inode)
{
	for (uint32_t i = 0; i < ports->n; i++)
		if (ports->list[i].inode == inode)
			return &ports->list[i];
	return NULL;
}

/* Of "socket:[12345]"; 0: it is none. */
static uint64_t socket_inode(const char *link, size_t n)
{
	struct cursor c = cursor_over(link, n);
	uint64_t inode;

	return cursor_literal(&c, "socket:[") && cursor_u64(&c, &inode) == 0 && cursor_equals(&c, "]") ?
		       inode :
		       0;
}

static void close_descriptors(DIR **dir)
{
	if (*dir)
		closedir(*dir);
}

uint32_t ports_of_process(const struct ports *ports, const char *root, uint32_t pid,
			  const struct listening **ret_list)
{
	char path[256], link[64];
	const struct dirent *entry;
	uint32_t n = 0, files = 0;

	snprintf(path, sizeof(path), "%s/%u/fd", root, pid);
	_cleanup_(close_descriptors) DIR *dir = opendir(path);

	while (dir && n < PROCESS_PORTS_MAX && files++ < FILES_MAX && (entry = readdir(dir))) {
		ssize_t length = readlinkat(dirfd(dir), entry->d_name, link, sizeof(link));
		uint64_t inode = length > 0 ? socket_inode(link, (size_t)length) : 0;
		const struct listening *found = inode ? find_inode(ports, inode) : NULL;

		if (found)
			ret_list[n++] = found;
	}
	return n;
}
