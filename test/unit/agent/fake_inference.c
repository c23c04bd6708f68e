// SPDX-License-Identifier: Apache-2.0
/*
 * Stands in for the processes that find inference servers and read their pages, as they may be after they
 * were taken over: the owner's file FAKE_INFERENCE says what they answer.
 */
#include "fake_inference.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "helper/message.h"
#include "helper/spawn.h"
#include "inference/protocol.h"

static struct find_answer answer;
static char plan[64];

static void find_servers(void)
{
	struct found_server *server = &answer.list[0];
	size_t n;

	*server = (struct found_server){ .id = { 4711, 1 }, .port = 8000, .members_n = 1 };
	server->state = strcmp(plan, "find read") == 0 ? SERVER_STATE_READ : SERVER_STATE_NEW;
	server->kind = strcmp(plan, "find kind") == 0 ? SERVER_KINDS : SERVER_VLLM;
	server->port = strcmp(plan, "find port") == 0 ? 0 : 8000;
	server->members_n = strcmp(plan, "find members") == 0 ? SERVER_MEMBERS_MAX + 1 : 1;
	answer.n = strcmp(plan, "find many") == 0 ? SERVERS_MAX + 1 : 1;
	answer.left_out = strcmp(plan, "find left") == 0 ? 3 : 0;
	n = offsetof(struct find_answer, list) + sizeof(*server);
	send_with_fd(HELPER_SOCKET, &answer, strcmp(plan, "find short") == 0 ? n - 1 : n, -1);
}

static void read_pages(void)
{
	struct page_answer page = { .read = 1 };

	page.page.p[SERVER_RUNNING] = PRESENCE_PRESENT;
	page.page.v[SERVER_RUNNING] = strcmp(plan, "page negative") == 0 ? -1 : 3;
	page.index = strcmp(plan, "page index") == 0 ? 5 : 0;
	if (strcmp(plan, "page presence") == 0)
		page.page.p[SERVER_WAITING] = 200;
	if (strcmp(plan, "page gpu") == 0)
		page.page.p[SERVER_GPU_SECONDS] = PRESENCE_PRESENT;
	if (strcmp(plan, "page endless") == 0)
		memset(page.error, 'x', sizeof(page.error));
	if (strcmp(plan, "page failed") == 0) {
		memset(&page.page, 0, sizeof(page.page));
		page.read = 0;
		strcpy(page.error, "status 404");
	}
	send_with_fd(HELPER_SOCKET, &page, sizeof(page), -1);
}

static void say_pid(int owner)
{
	char path[64];
	FILE *file;

	snprintf(path, sizeof(path), FAKE_INFERENCE_FINDER, owner);
	file = fopen(path, "we");
	if (file) {
		fprintf(file, "%d", (int)getpid());
		fclose(file);
	}
}

/* Arguments: the role, the owner's PID. */
int main(int argc, char *argv[])
{
	static struct pages_question question; /* the longer one */
	char path[64];
	FILE *file;
	int fd;

	close(HELPER_PROGRAM);
	snprintf(path, sizeof(path), FAKE_INFERENCE, argc > 2 ? atoi(argv[2]) : 0);
	while (receive_with_fd(HELPER_SOCKET, &question, sizeof(question), &fd) > 0) {
		file = fopen(path, "re");
		if (!file || !fgets(plan, sizeof(plan), file))
			return 1;
		fclose(file);
		if (strcmp(plan, "exit") == 0)
			return 1;
		if (strcmp(argv[1], "servers") == 0) {
			say_pid(atoi(argv[2])); /* first: the answer may be its end */
			find_servers();
		} else {
			read_pages();
		}
	}
	return 0;
}
