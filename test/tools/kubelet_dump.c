// SPDX-License-Identifier: Apache-2.0
/*
 * Starts gpusonde-kubelet as the agent does, asks it, and prints its answers, a line of JSON for each row:
 *
 *     kubelet_dump PROGRAM ROOT SOCKET [RESOURCES [QUESTIONS]]
 */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "config.h"
#include "helper/message.h"
#include "helper/spawn.h"
#include "kubelet/protocol.h"

static struct arriving tables[KUBELET_TABLES] = {
	[KUBELET_OWNERS] = { .row_bytes = sizeof(struct owner), .max = OWNERS_MAX },
	[KUBELET_ALLOCATIONS] = { .row_bytes = sizeof(struct allocation), .max = ALLOCATIONS_MAX },
	[KUBELET_LISTED] = { .row_bytes = sizeof(struct device_health), .max = DEVICE_HEALTH_MAX },
	[KUBELET_POD_HEALTH] = { .row_bytes = sizeof(struct device_health), .max = DEVICE_HEALTH_MAX },
};

static void print(json_t *line)
{
	json_dumpf(line, stdout, JSON_COMPACT);
	putchar('\n');
	fflush(stdout);
	json_decref(line);
}

static void print_owner(const struct owner *owner)
{
	print(json_pack("{s:s, s:i, s:s, s:s, s:s, s:s, s:s, s:s}", "table", "owners", "workload",
			(int)owner->workload, "id", owner->id, "namespace", owner->namespace, "pod",
			owner->pod, "container", owner->container, "owner_kind", owner->owner_kind,
			"owner_name", owner->owner_name));
}

static json_t *number(uint32_t value)
{
	return value == UINT32_MAX ? json_null() : json_integer(value);
}

static void print_allocation(const struct allocation *row)
{
	static const char *const kinds[] = { "not", "all", "uuid", "index", "minor", "claimed" };
	const struct device_ref *device = &row->device;

	print(json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:i, s:s, s:o, s:o, s:i}", "table",
			"allocations", "namespace", row->namespace, "pod", row->pod, "pod_uid", row->pod_uid,
			"container", row->container, "resource", row->resource, "by", kinds[device->kind],
			"index", (int)device->index, "uuid", device->uuid, "gi", number(device->gi), "ci",
			number(device->ci), "slots", (int)row->slots));
}

static void print_health(uint32_t table, const struct device_health *row)
{
	print(json_pack("{s:s, s:s, s:i}", "table", table == KUBELET_LISTED ? "listed" : "pod_health", "uuid",
			row->device.uuid, "health", (int)row->health));
}

static void print_table(uint32_t which)
{
	for (uint32_t i = 0; i < tables[which].n; i++)
		if (which == KUBELET_OWNERS)
			print_owner((const struct owner *)tables[which].list + i);
		else if (which == KUBELET_ALLOCATIONS)
			print_allocation((const struct allocation *)tables[which].list + i);
		else
			print_health(which, (const struct device_health *)tables[which].list + i);
}

static void print_end(const struct kubelet_end *end)
{
	print(json_pack("{s:s, s:i, s:b, s:b, s:I, s:I, s:b, s:b, s:o, s:i, s:i, s:s, s:s}", "table", "end",
			"outcome", (int)end->outcome, "owners", end->digest[KUBELET_OWNERS] != 0,
			"allocations", end->digest[KUBELET_ALLOCATIONS] != 0, "dropped_owners",
			(json_int_t)end->dropped[KUBELET_OWNERS], "dropped_allocations",
			(json_int_t)end->dropped[KUBELET_ALLOCATIONS], "replace", (int)end->replace,
			"pods_api", (int)end->pods_api, "allocatable", number(end->allocatable), "unmatched",
			(int)end->unmatched, "claimed", (int)end->claimed, "error", end->error, "note",
			end->note));
}

/* One question and its answer; false: the process has ended. */
static bool ask(int channel, struct kubelet_question *question)
{
	static union {
		uint32_t message;
		struct part part;
		struct kubelet_end end;
	} answer;
	ssize_t n;
	int fd;

	if (send_with_fd(channel, question, sizeof(*question), -1) < 0)
		return false;
	while ((n = receive_with_fd(channel, &answer, sizeof(answer), &fd)) > 0 &&
	       answer.message == PART_ROWS)
		if (!parts_take(tables, KUBELET_TABLES, &answer, (size_t)n))
			abort();
	if (n != sizeof(answer.end) ||
	    !parts_are_whole(tables, KUBELET_TABLES, answer.end.digest, question->known))
		return false;
	for (uint32_t i = 0; i < KUBELET_TABLES; i++)
		print_table(i);
	parts_forget(tables, KUBELET_TABLES);
	print_end(&answer.end);
	memcpy(question->known, answer.end.digest, sizeof(question->known));
	return true;
}

static pid_t start(const char *program, int channel)
{
	char owner[16];
	pid_t pid;

	snprintf(owner, sizeof(owner), "%d", (int)getpid());
	pid = fork();
	if (pid != 0)
		return pid;
	dup2(channel, HELPER_SOCKET);
	execl(program, program, "kubelet", owner, (char *)NULL);
	_exit(127);
}

int main(int argc, char **argv)
{
	static struct kubelet_question question = { .version = GPUSONDE_VERSION };
	int pair[2], questions, status = 0;
	bool answered = true;
	pid_t pid;

	if (argc < 4)
		return 2;
	snprintf(question.root, sizeof(question.root), "%s", argv[2]);
	snprintf(question.socket, sizeof(question.socket), "%s", argv[3]);
	snprintf(question.resources, sizeof(question.resources), "%s", argc > 4 ? argv[4] : "");
	questions = argc > 5 ? atoi(argv[5]) : 1;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return 2;
	pid = start(argv[1], pair[1]);
	close(pair[1]);
	for (int i = 0; answered && i < questions; i++)
		answered = ask(pair[0], &question);
	close(pair[0]);
	waitpid(pid, &status, 0);
	return answered && WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : 1;
}
