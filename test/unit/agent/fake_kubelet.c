// SPDX-License-Identifier: Apache-2.0
/* Stands in for gpusonde-kubelet as a hostile kubelet may have made it: the names of resources say how. */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "helper/message.h"
#include "helper/spawn.h"
#include "kubelet/protocol.h"

static struct kubelet_part part;
static struct kubelet_end end;

static void send_rows(uint32_t n)
{
	const size_t row = part.table == KUBELET_OWNERS ? sizeof(struct owner) : sizeof(struct allocation);

	part.n = n;
	if (send_with_fd(HELPER_SOCKET, &part, offsetof(struct kubelet_part, owners) + n * row, -1) < 0)
		exit(1);
}

static void send_end(void)
{
	if (send_with_fd(HELPER_SOCKET, &end, sizeof(end), -1) < 0)
		exit(1);
}

static void begin_part(uint32_t table, uint32_t rows)
{
	part = (struct kubelet_part){
		.message = KUBELET_PART, .table = table, .digest = 7 + table, .rows = rows
	};
}

static void put_owner(void)
{
	part.owners[0] =
		(struct owner){ .workload = WORKLOAD_POD, .id = "uid", .namespace = "ml", .pod = "train" };
}

static void put_allocation(void)
{
	part.allocations[0] =
		(struct allocation){ .namespace = "ml", .pod = "train", .device = { .kind = DEVICE_ALL } };
}

/* An owner, and allocations in two parts. */
static void tell_all(uint32_t second_at)
{
	begin_part(KUBELET_OWNERS, 1);
	put_owner();
	send_rows(1);
	begin_part(KUBELET_ALLOCATIONS, 2);
	put_allocation();
	send_rows(1);
	part.at = second_at;
	send_rows(1);
	end.digest[KUBELET_OWNERS] = 7;
	end.digest[KUBELET_ALLOCATIONS] = 8;
}

static void tell_strange_parts(const char *how)
{
	begin_part(KUBELET_OWNERS, 1);
	put_owner();
	if (strcmp(how, "table of no kind") == 0)
		part.table = KUBELET_TABLES, send_rows(0);
	else if (strcmp(how, "too many rows") == 0)
		part.rows = OWNERS_MAX + 1, send_rows(1);
	else if (strcmp(how, "more than the table") == 0)
		send_rows(2);
	else if (strcmp(how, "no digest") == 0)
		part.digest = 0, send_rows(1);
	else if (strcmp(how, "short") == 0)
		part.n = 1, send_with_fd(HELPER_SOCKET, &part, 40, -1);
	else if (strcmp(how, "cut table") == 0)
		part.rows = 2, send_rows(1), end.digest[KUBELET_OWNERS] = 7;
	else if (strcmp(how, "another digest") == 0)
		send_rows(1), end.digest[KUBELET_OWNERS] = 9;
	else if (strcmp(how, "unterminated") == 0)
		memset(&part.owners, 'x', sizeof(part.owners)), part.owners[0].workload = WORKLOAD_POD,
								send_rows(1), end.digest[KUBELET_OWNERS] = 7;
}

static void behave(const char *how)
{
	static uint32_t questions;

	questions++;
	end = (struct kubelet_end){ .message = KUBELET_END, .allocatable = UINT32_MAX };
	if (strcmp(how, "well") == 0)
		tell_all(1), end.allocatable = 3, end.unmatched = 2, strcpy(end.note, "one is strange");
	else if (strcmp(how, "part twice") == 0)
		tell_all(0);
	else if (strcmp(how, "fails") == 0)
		end.outcome = KUBELET_FAILED, strcpy(end.error, "List: \xff\n"), end.replace = 1;
	else if (strcmp(how, "error without end") == 0)
		end.outcome = KUBELET_BUSY, memset(end.error, 'e', sizeof(end.error));
	else if (strcmp(how, "same as none") == 0)
		end.digest[KUBELET_OWNERS] = 5;
	else if (strcmp(how, "strange outcome") == 0)
		end.outcome = 77;
	else if (strcmp(how, "strange message") == 0)
		end.message = 77;
	else if (strcmp(how, "ends") == 0)
		exit(1);
	else if (strcmp(how, "counts") == 0)
		end.allocatable = questions;
	else if (strcmp(how, "refuses and closes") == 0)
		end.outcome = KUBELET_BUSY, send_end(), exit(0);
	else if (strcmp(how, "closes") == 0)
		send_end(), exit(0);
	else
		tell_strange_parts(how);
	send_end();
}

int main(void)
{
	static struct kubelet_question question;
	int fd;

	close(HELPER_PROGRAM);
	while (receive_with_fd(HELPER_SOCKET, &question, sizeof(question), &fd) > 0)
		behave(question.resources);
	return 0;
}
