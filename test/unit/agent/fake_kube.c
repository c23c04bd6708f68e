// SPDX-License-Identifier: Apache-2.0
/* Stands in for gpusonde-kube as a hostile API server may have made it: the context says how. */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "helper/message.h"
#include "helper/spawn.h"
#include "kube/protocol.h"

static struct kube_end end;
static unsigned asked;

static void send_rows(uint32_t table, uint64_t digest, const void *rows, uint32_t n, size_t size)
{
	const struct row_list list = { .list = (void *)rows, .n = n, .size = size, .max = n };

	if (parts_send(HELPER_SOCKET, table, digest, &list) < 0)
		exit(1);
	end.digest[table] = digest;
}

static void send_tables(void)
{
	static const struct owner owners[2] = {
		{ .workload = WORKLOAD_POD,
		  .id = "u1",
		  .namespace = "ml",
		  .pod = "train",
		  .owner_kind = "Job" },
		{ .workload = WORKLOAD_POD, .id = "u2", .namespace = "ml", .pod = "other" },
	};
	static struct kube_exporter exporter = { .namespace = "gpu", .pod = "dcgm" };
	static struct kube_label label = { .key = "zone" };

	/* The whole member is written to. */
	memset(exporter.uid, '1', sizeof(exporter.uid));
	memcpy(exporter.address, "http://127.0.0.1:1/x", sizeof("http://127.0.0.1:1/x"));
	memset(label.value, '\xff', sizeof(label.value));
	send_rows(KUBE_OWNERS, 7, owners, 2, sizeof(owners[0]));
	send_rows(KUBE_EXPORTERS, 8, &exporter, 1, sizeof(exporter));
	send_rows(KUBE_LABELS, 9, &label, 1, sizeof(label));
	end.pods = 2;
	end.bytes = 1000;
}

static void send_strange(const char *how)
{
	static const struct owner owners[2];

	if (strcmp(how, "table of no kind") == 0)
		send_rows(KUBE_TABLES - 1, 7, owners, 1, sizeof(owners[0]));
	else if (strcmp(how, "another digest") == 0)
		send_rows(KUBE_OWNERS, 7, owners, 1, sizeof(owners[0])), end.digest[KUBE_OWNERS] = 8;
	else if (strcmp(how, "a digest of nothing") == 0)
		end.digest[KUBE_OWNERS] = 5;
	else if (strcmp(how, "strange outcome") == 0)
		end.outcome = 77;
	else if (strcmp(how, "strange message") == 0)
		end.message = 77;
	else if (strcmp(how, "ends") == 0)
		exit(1);
}

static void behave(const char *how)
{
	end = (struct kube_end){ .message = PART_OTHERS };
	asked++;
	if (strcmp(how, "well") == 0) {
		send_tables();
	} else if (strcmp(how, "fails") == 0) {
		end.outcome = KUBE_FAILED;
		memset(end.error, 'e', sizeof(end.error));
	} else if (strcmp(how, "refuses") == 0) {
		end.outcome = KUBE_REFUSED;
		strcpy(end.error, "not permitted");
	} else if (strcmp(how, "well, then refuses") == 0) {
		end.outcome = asked > 1 ? KUBE_REFUSED : KUBE_OK;
		strcpy(end.error, asked > 1 ? "not permitted" : "");
	} else {
		send_strange(how);
	}
	if (send_with_fd(HELPER_SOCKET, &end, sizeof(end), -1) < 0)
		exit(1);
}

int main(void)
{
	static struct kube_question question;
	int fd;

	close(HELPER_PROGRAM);
	while (receive_with_fd(HELPER_SOCKET, &question, sizeof(question), &fd) > 0)
		behave(question.settings.context);
	return 0;
}
