// SPDX-License-Identifier: Apache-2.0
/*
 * Stands in for gpusonde-owners as a hostile file may have made it: the root that it is asked for says how.
 */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "helper/message.h"
#include "helper/spawn.h"
#include "owners/protocol.h"

static struct owners_answer answer;

static void send_rows(uint32_t n)
{
	answer.n = n;
	if (send_with_fd(HELPER_SOCKET, &answer,
			 offsetof(struct owners_answer, names) + n * sizeof(answer.names[0]), -1) < 0)
		exit(1);
}

static void send_given(uint32_t rows, uint32_t n)
{
	answer.given = 1;
	answer.given_rows = rows;
	answer.n = n;
	for (uint32_t i = 0; i < n; i++)
		answer.allocations[i] = (struct allocation){ .workload = WORKLOAD_CONTAINER,
							     .id = "c",
							     .device.kind = DEVICE_ALL };
	if (send_with_fd(HELPER_SOCKET, &answer,
			 offsetof(struct owners_answer, names) + n * sizeof(answer.allocations[0]), -1) < 0)
		exit(1);
}

static void row(uint32_t i, const char *pod)
{
	answer.names[i] = (struct owner){ .workload = WORKLOAD_POD };
	snprintf(answer.names[i].id, sizeof(answer.names[i].id), "%s", pod);
	snprintf(answer.names[i].pod, sizeof(answer.names[i].pod), "%s", pod);
}

/* Two parts of one row each. */
static void two_parts(uint32_t second_at)
{
	answer.rows = 2;
	row(0, "one");
	send_rows(1);
	answer.at = second_at;
	row(0, "two");
	send_rows(1);
}

static void behave(const char *how)
{
	answer = (struct owners_answer){ .table = 7 };
	if (strcmp(how, "well") == 0)
		two_parts(1);
	else if (strcmp(how, "says an error") == 0)
		strcpy(answer.error, "/var/log: \xff\n"), send_rows(0);
	else if (strcmp(how, "error without end") == 0)
		memset(answer.error, 'e', sizeof(answer.error)), send_rows(0);
	else if (strcmp(how, "part twice") == 0)
		two_parts(0), two_parts(0);
	else if (strcmp(how, "part beyond the end") == 0)
		two_parts(3);
	else if (strcmp(how, "too many rows") == 0)
		answer.rows = OWNERS_MAX + 1, send_rows(OWNERS_ROWS);
	else if (strcmp(how, "more than the table") == 0)
		answer.rows = 1, send_rows(2);
	else if (strcmp(how, "no table") == 0)
		answer.table = 0, send_rows(0);
	else if (strcmp(how, "same as none") == 0)
		answer.same = 1, send_rows(0);
	else if (strcmp(how, "short") == 0)
		answer.rows = answer.n = 3, send_with_fd(HELPER_SOCKET, &answer, 40, -1);
	else if (strcmp(how, "unterminated") == 0)
		memset(&answer.names, 'x', sizeof(answer.names)),
			answer.rows = 1, answer.names[0].workload = WORKLOAD_POD, send_rows(1);
	else if (strcmp(how, "given before names") == 0)
		answer.rows = 1, send_given(1, 1);
	else if (strcmp(how, "too many given") == 0)
		send_given(ALLOCATIONS_MAX + 1, 1);
	else if (strcmp(how, "more given than said") == 0)
		send_given(1, 2);
	else if (strcmp(how, "names for given") == 0)
		answer.given_rows = 1, row(0, "one"), send_rows(1);
	else if (strcmp(how, "given") == 0)
		send_given(3, 2), answer.at = 2, answer.given_dropped = 5, send_given(3, 1);
	else if (strcmp(how, "ends") == 0)
		exit(1);
}

int main(void)
{
	static struct owners_question question;
	int fd;

	close(HELPER_PROGRAM);
	while (receive_with_fd(HELPER_SOCKET, &question, sizeof(question), &fd) > 0)
		behave(question.root);
	return 0;
}
