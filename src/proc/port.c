// SPDX-License-Identifier: Apache-2.0
#include "proc/port.h"

#include <ctype.h>
#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/macro.h"

enum { TCP_LISTEN_STATE = 0x0a }; /* of include/net/tcp_states.h */

static void fclosep(FILE **file)
{
	if (*file)
		fclose(*file);
}

static void closedirp(DIR **dir)
{
	if (*dir)
		closedir(*dir);
}

/* Inode of the socket that listens on this port, by /proc/net/tcp or tcp6; 0 none. */
static unsigned long tcp_inode(const char *path, uint16_t port)
{
	_cleanup_(fclosep) FILE *file = fopen(path, "re");
	char line[512];

	while (file && fgets(line, sizeof(line), file)) {
		unsigned local_port, state;
		unsigned long inode;

		if (sscanf(line, " %*d: %*[0-9A-Fa-f]:%x %*[0-9A-Fa-f]:%*x %x %*s %*s %*s %*s %*s %lu",
			   &local_port, &state, &inode) == 3 &&
		    local_port == port && state == TCP_LISTEN_STATE)
			return inode;
	}
	return 0;
}

static unsigned long abstract_inode(const char *name)
{
	_cleanup_(fclosep) FILE *file = fopen("/proc/net/unix", "re");
	char line[512], path[128];
	unsigned long inode;

	while (file && fgets(line, sizeof(line), file))
		if (sscanf(line, "%*s %*s %*s %*s %*s %*s %lu @%127s", &inode, path) == 2 &&
		    STRV_EQ(path, name))
			return inode;
	return 0;
}

static bool holds(const char *pid, unsigned long inode)
{
	char path[300], link[64], wanted[64];
	const struct dirent *entry;

	snprintf(path, sizeof(path), "/proc/%s/fd", pid);
	snprintf(wanted, sizeof(wanted), "socket:[%lu]", inode);
	_cleanup_(closedirp) DIR *dir = opendir(path);

	while (dir && (entry = readdir(dir))) {
		ssize_t n = readlinkat(dirfd(dir), entry->d_name, link, sizeof(link) - 1);

		if (n > 0 && (size_t)n == strlen(wanted) && memcmp(link, wanted, (size_t)n) == 0)
			return true;
	}
	return false;
}

static void inode_owner(unsigned long inode, char *ret_who, size_t size)
{
	_cleanup_(closedirp) DIR *dir = inode ? opendir("/proc") : NULL;
	char path[300], comm[32];
	const struct dirent *entry;

	snprintf(ret_who, size, PORT_OWNER_UNKNOWN);
	while (dir && (entry = readdir(dir))) {
		if (!isdigit((unsigned char)entry->d_name[0]) || !holds(entry->d_name, inode))
			continue;
		snprintf(path, sizeof(path), "/proc/%s/comm", entry->d_name);
		if (read_file(path, comm, sizeof(comm), NULL) < 0)
			continue;
		comm[strcspn(comm, "\n")] = 0;
		snprintf(ret_who, size, "%s (PID %s)", comm, entry->d_name);
		return;
	}
}

void port_owner(uint16_t port, char *ret_who, size_t size)
{
	unsigned long inode = tcp_inode("/proc/net/tcp", port);

	inode_owner(inode ? inode : tcp_inode("/proc/net/tcp6", port), ret_who, size);
}

void abstract_owner(const char *name, char *ret_who, size_t size)
{
	inode_owner(abstract_inode(name), ret_who, size);
}

bool asks_for_any_port(const char *address)
{
	const char *colon = strrchr(address, ':');

	return colon && STRV_EQ(colon, ":0");
}
