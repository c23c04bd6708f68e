// SPDX-License-Identifier: Apache-2.0
#include "inference/find.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/macro.h"
#include "inference/names.h"
#include "inference/ports.h"
#include "proc/proc.h"

enum {
	PROCESSES_MAX = 65536,
	GENERATIONS_MAX = 64,
	ARGUMENTS_MAX = 16 << 10, /* bytes of a command line; what is behind them is not looked at */
};

struct seen {
	struct process_id id;
	uint32_t parent; /* PID */
	enum server_kind kind; /* SERVER_KINDS: of none */
	uint32_t server; /* index of the process that it comes from, of the same kind; UINT32_MAX: of none */
};

struct finder {
	const char *root;
	bool arguments;
	uint32_t n;
	struct seen *list; /* by PID */
	struct ports *ports; /* of this network namespace */
	char text[ARGUMENTS_MAX];
};

/* ---- processes ---- */

static size_t read_arguments(struct finder *finder, uint32_t pid)
{
	char path[256];
	size_t n = 0;
	int r;

	if (!finder->arguments)
		return 0;
	snprintf(path, sizeof(path), "%s/%u/cmdline", finder->root, pid);
	r = read_file(path, finder->text, sizeof(finder->text), &n);
	if (r == -E2BIG)
		return sizeof(finder->text) - 1;
	return r < 0 ? 0 : n;
}

static enum server_kind kind_of(struct finder *finder, uint32_t pid, const struct cursor *comm)
{
	enum server_kind kind = server_of_comm(comm);

	if (kind == SERVER_KINDS && comm_hides_program(comm))
		kind = server_of_arguments(finder->text, read_arguments(finder, pid));
	return kind;
}

static void look_at_process(struct finder *finder, uint32_t pid)
{
	struct seen *seen = &finder->list[finder->n];
	struct process_stat stat;
	char path[256], text[1024];
	size_t n;

	snprintf(path, sizeof(path), "%s/%u/stat", finder->root, pid);
	if (read_file(path, text, sizeof(text), &n) < 0 || process_stat_parse(text, n, &stat) < 0)
		return;
	*seen = (struct seen){ .id = { pid, stat.start_ticks },
			       .parent = (uint32_t)stat.parent,
			       .kind = kind_of(finder, pid, &stat.comm),
			       .server = UINT32_MAX };
	finder->n++;
}

static int seen_by_pid(const void *a, const void *b)
{
	const struct seen *x = a, *y = b;

	return (x->id.pid > y->id.pid) - (x->id.pid < y->id.pid);
}

static void close_proc(DIR **dir)
{
	if (*dir)
		closedir(*dir);
}

static int look_at_all(struct finder *finder)
{
	_cleanup_(close_proc) DIR *dir = opendir(finder->root);
	const struct dirent *entry;

	if (!dir)
		return -errno;
	while (finder->n < PROCESSES_MAX && (entry = readdir(dir)))
		if (isdigit((unsigned char)entry->d_name[0]))
			look_at_process(finder, (uint32_t)strtoul(entry->d_name, NULL, 10));
	qsort(finder->list, finder->n, sizeof(finder->list[0]), seen_by_pid);
	return 0;
}

static struct seen *parent_of(const struct finder *finder, const struct seen *seen)
{
	const struct seen key = { .id.pid = seen->parent };

	return seen->parent ? bsearch(&key, finder->list, finder->n, sizeof(key), seen_by_pid) : NULL;
}

/* Of the ancestors, itself included, the first one of a kind that is: the others come from it. */
static void find_origins(struct finder *finder)
{
	for (uint32_t i = 0; i < finder->n; i++) {
		const struct seen *at = &finder->list[i];

		for (unsigned n = 0; at && n < GENERATIONS_MAX; n++, at = parent_of(finder, at))
			if (at->kind != SERVER_KINDS)
				finder->list[i].server = (uint32_t)(at - finder->list);
	}
}

/* ---- where they listen ---- */

static bool is_elsewhere(const struct finder *finder, uint32_t pid)
{
	char path[256], here[64], there[64];
	ssize_t n, m;

	snprintf(path, sizeof(path), "%s/%u/ns/net", finder->root, pid);
	n = readlink("/proc/self/ns/net", here, sizeof(here));
	m = readlink(path, there, sizeof(there));
	return n > 0 && m > 0 && (n != m || memcmp(here, there, (size_t)n) != 0);
}

struct candidates {
	uint32_t own_n, all_n; /* of the first process; of all of the same kind */
	const struct listening *own[PROCESS_PORTS_MAX], *all[SERVER_MEMBERS_MAX * PROCESS_PORTS_MAX];
};

static const struct listening *find_port(const struct candidates *c, uint16_t port)
{
	for (uint32_t i = 0; i < c->all_n; i++)
		if (c->all[i]->port == port)
			return c->all[i];
	return NULL;
}

/* The same port at several addresses is one. */
static const struct listening *only_one(const struct listening *const *list, uint32_t n)
{
	for (uint32_t i = 1; i < n; i++)
		if (list[i]->port != list[0]->port)
			return NULL;
	return n > 0 ? list[0] : NULL;
}

/* NULL: it has several, of which none is known to be its page's. */
static const struct listening *choose_port(struct finder *finder, const struct found_server *server,
					   const struct candidates *c)
{
	const size_t n = read_arguments(finder, server->id.pid);
	uint16_t said = port_of_arguments(server->kind, finder->text, n);
	const struct listening *found = find_port(c, said ? said : server_kinds[server->kind].port);

	if (!found && !said)
		found = only_one(c->own, c->own_n);
	return found;
}

static void collect_ports(const struct finder *finder, const struct ports *ports, uint32_t server,
			  struct candidates *c)
{
	c->own_n = c->all_n = 0;
	for (uint32_t i = 0; i < finder->n; i++) {
		const struct seen *seen = &finder->list[i];
		uint32_t n;

		if (seen->server != server || seen->kind == SERVER_KINDS ||
		    c->all_n + PROCESS_PORTS_MAX > ARRAY_SIZE(c->all))
			continue;
		n = ports_of_process(ports, finder->root, seen->id.pid, c->all + c->all_n);
		if (i == server) {
			memcpy(c->own, c->all + c->all_n, n * sizeof(c->own[0]));
			c->own_n = n;
		}
		c->all_n += n;
	}
}

/* False: it listens nowhere, and is none. */
static bool find_page(struct finder *finder, uint32_t index, struct found_server *server)
{
	static struct candidates c;
	static struct ports there;
	const bool elsewhere = is_elsewhere(finder, server->id.pid);
	const struct listening *socket;
	char process[256];

	snprintf(process, sizeof(process), "%s/%u", finder->root, server->id.pid);
	if (elsewhere && ports_read(&there, process) < 0)
		return false;
	collect_ports(finder, elsewhere ? &there : finder->ports, index, &c);
	if (c.all_n == 0)
		return false;
	socket = choose_port(finder, server, &c);
	if (server_kinds[server->kind].port == 0)
		server->state = SERVER_STATE_NO_PAGE;
	else if (!socket)
		server->state = SERVER_STATE_NO_PORT;
	else
		server->state = elsewhere ? SERVER_STATE_ELSEWHERE : SERVER_STATE_NEW;
	if (!socket)
		return true;
	server->port = socket->port;
	server->is_ipv6 = socket->is_ipv6;
	memcpy(server->address, socket->address, sizeof(server->address));
	return true;
}

/* ---- all together ---- */

static void add_members(const struct finder *finder, uint32_t index, struct found_server *server)
{
	for (uint32_t i = 0; i < finder->n && server->members_n < SERVER_MEMBERS_MAX; i++)
		if (finder->list[i].server == index)
			server->members[server->members_n++] = finder->list[i].id;
}

static void add_server(struct finder *finder, uint32_t index, struct find_answer *answer)
{
	const struct seen *seen = &finder->list[index];
	struct found_server server = { .id = seen->id, .uid = UINT32_MAX, .kind = seen->kind };
	struct proc_identity identity;

	if (!find_page(finder, index, &server))
		return;
	if (answer->n == SERVERS_MAX) {
		answer->left_out++;
		return;
	}
	if (proc_identify(finder->root, seen->id.pid, &identity) == 0 &&
	    process_id_equal(identity.id, seen->id))
		server.uid = identity.uid;
	add_members(finder, index, &server);
	answer->list[answer->n++] = server;
}

int servers_find(const char *root, bool arguments, struct find_answer *ret_answer)
{
	struct finder finder = { .root = root, .arguments = arguments };
	int r = -ENOMEM;

	memset(ret_answer, 0, sizeof(*ret_answer));
	finder.list = malloc(PROCESSES_MAX * sizeof(*finder.list));
	finder.ports = malloc(sizeof(*finder.ports));
	if (finder.list && finder.ports)
		r = ports_read(finder.ports, "/proc/self");
	if (r == 0)
		r = look_at_all(&finder);
	if (r == 0) {
		find_origins(&finder);
		for (uint32_t i = 0; i < finder.n; i++)
			if (finder.list[i].server == i)
				add_server(&finder, i, ret_answer);
	}
	free(finder.list);
	free(finder.ports);
	return r;
}
