// SPDX-License-Identifier: Apache-2.0
/* Sockets that listen for TCP in a network namespace, and which of them a process has. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { PORTS_MAX = 4096, PROCESS_PORTS_MAX = 64 };

struct listening {
	uint64_t inode;
	uint16_t port;
	bool is_ipv6;
	uint8_t address[16]; /* to connect to: where it listens at all addresses, the loopback one */
};

struct ports {
	uint32_t n;
	struct listening list[PORTS_MAX];
};

/* A table of /proc/PID/net, tcp or tcp6, of @n bytes. What does not fit is left out. */
void ports_parse(struct ports *ports, bool is_ipv6, const char *text, size_t n);
/* Of the network namespace of @process, as /proc/PID is one. */
int ports_read(struct ports *ports, const char *process);
/* Those that the process has, at most PROCESS_PORTS_MAX. */
uint32_t ports_of_process(const struct ports *ports, const char *root, uint32_t pid,
			  const struct listening **ret_list);
