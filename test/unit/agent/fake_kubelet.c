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

static struct part part;
static struct kubelet_end end;

static void send_rows(uint32_t n)
{
	part.header.n = n;
	if (send_with_fd(HELPER_SOCKET, &part, sizeof(part.header) + n * part.header.row_bytes, -1) < 0)
		exit(1);
}

static void send_end(void)
{
	if (send_with_fd(HELPER_SOCKET, &end, sizeof(end), -1) < 0)
		exit(1);
}

static void begin_part(uint32_t table, uint32_t rows, uint32_t row_bytes)
{
	part = (struct part){ .header = { .message = PART_ROWS,
					  .table = table,
					  .digest = 7 + table,
					  .rows = rows,
					  .row_bytes = row_bytes } };
}

static void begin_owners(void)
{
	const struct owner owner = {
		.workload = WORKLOAD_POD, .id = "uid", .namespace = "ml", .pod = "train"
	};

	begin_part(KUBELET_OWNERS, 1, sizeof(owner));
	memcpy(part.data, &owner, sizeof(owner));
}

static void begin_allocations(void)
{
	const struct allocation row = { .namespace = "ml", .pod = "train", .device = { .kind = DEVICE_ALL } };

	begin_part(KUBELET_ALLOCATIONS, 2, sizeof(row));
	memcpy(part.data, &row, sizeof(row));
}

/* An owner, and allocations in two parts. */
static void tell_all(uint32_t second_at)
{
	begin_owners();
	send_rows(1);
	begin_allocations();
	send_rows(1);
	part.header.at = second_at;
	send_rows(1);
	end.digest[KUBELET_OWNERS] = 7;
	end.digest[KUBELET_ALLOCATIONS] = 8;
}

/* No member of the row has an end. */
static void tell_unterminated(void)
{
	memset(part.data, 'x', sizeof(struct owner));
	((struct owner *)part.data)->workload = WORKLOAD_POD;
	send_rows(1);
	end.digest[KUBELET_OWNERS] = 7;
}

static void tell_strange_parts(const char *how)
{
	begin_owners();
	if (strcmp(how, "table of no kind") == 0)
		part.header.table = KUBELET_TABLES, send_rows(0);
	else if (strcmp(how, "too many rows") == 0)
		part.header.rows = OWNERS_MAX + 1, send_rows(1);
	else if (strcmp(how, "more than the table") == 0)
		send_rows(2);
	else if (strcmp(how, "no digest") == 0)
		part.header.digest = 0, send_rows(1);
	else if (strcmp(how, "short") == 0)
		part.header.n = 1, send_with_fd(HELPER_SOCKET, &part, 40, -1);
	else if (strcmp(how, "cut table") == 0)
		part.header.rows = 2, send_rows(1), end.digest[KUBELET_OWNERS] = 7;
	else if (strcmp(how, "another digest") == 0)
		send_rows(1), end.digest[KUBELET_OWNERS] = 9;
	else if (strcmp(how, "unterminated") == 0)
		tell_unterminated();
}

static void behave(const char *how)
{
	static uint32_t questions;

	questions++;
	end = (struct kubelet_end){ .message = PART_OTHERS, .allocatable = UINT32_MAX };
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
