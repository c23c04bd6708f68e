// SPDX-License-Identifier: Apache-2.0
/* Stands in for gpusonde-dcgm as a hostile exporter may have made it: the path of the first URL says how. */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/macro.h"
#include "dcgm/protocol.h"
#include "helper/message.h"
#include "helper/spawn.h"

static struct dcgm_question question;
static struct dcgm_part part;

static void send_all(const void *message, size_t n)
{
	if (send_with_fd(HELPER_SOCKET, message, n, -1) < 0)
		exit(1);
}

static void send_rows(uint32_t target, uint32_t n)
{
	part = (struct dcgm_part){ .message = DCGM_PART_ROWS, .target = target, .n = n };
	for (uint32_t i = 0; i < MIN(n, (uint32_t)DCGM_ROWS); i++) {
		snprintf(part.rows[i].uuid, sizeof(part.rows[i].uuid), "GPU-%u", target);
		snprintf(part.rows[i].pod, sizeof(part.rows[i].pod), "pod-%u", i);
		part.rows[i].present = 1u << CONTRACT_temperature;
		part.rows[i].v[CONTRACT_temperature] = 40 + i;
	}
	send_all(&part,
		 offsetof(struct dcgm_part, rows) + MIN(n, (uint32_t)DCGM_ROWS) * sizeof(part.rows[0]));
}

static void send_device(uint32_t target, uint32_t xid, bool unterminated)
{
	struct dcgm_device *d = &part.devices[0];

	part = (struct dcgm_part){ .message = DCGM_PART_DEVICES, .target = target, .n = 1 };
	if (unterminated)
		memset(d, 0xff, sizeof(*d));
	snprintf(d->uuid, sizeof(d->uuid), "GPU-%u", target);
	snprintf(d->pci_bus_id, sizeof(d->pci_bus_id), "00000000:%02X:00.0", target + 1);
	d->index = d->minor = target;
	d->gi = UINT32_MAX;
	d->xid = xid;
	d->v[GPU_TEMPERATURE] = 40;
	d->p[GPU_TEMPERATURE] = PRESENCE_PRESENT;
	if (unterminated)
		memset(d->name, 'n', sizeof(d->name));
	send_all(&part, offsetof(struct dcgm_part, devices) + sizeof(part.devices[0]));
}

static void send_outcome(uint32_t target, uint32_t failure)
{
	struct dcgm_outcome outcome = { .message = DCGM_TARGET, .target = target, .failure = failure };

	outcome.boot_ns = clock_boot_ns();
	outcome.real_ns = clock_real_ns();
	outcome.bytes = 1000;
	outcome.dropped[SCRAPE_LINE_VALUE] = 2;
	if (failure)
		memset(outcome.error, 'e', sizeof(outcome.error));
	send_all(&outcome, sizeof(outcome));
}

static void send_end(int64_t cpu_ns)
{
	struct dcgm_end end = { .message = DCGM_END, .begin_ns = clock_boot_ns(), .cpu_ns = cpu_ns };

	end.end_ns = clock_boot_ns();
	send_all(&end, sizeof(end));
}

static void tell(uint32_t xid, int64_t cpu_ns)
{
	for (uint32_t i = 0; i < question.n; i++) {
		send_rows(i, 2);
		send_device(i, xid, false);
		send_outcome(i, SCRAPE_READ);
	}
	send_end(cpu_ns);
}

static void answer(const char *how, unsigned questions)
{
	if (strcmp(how, "well") == 0) {
		tell(0, 0);
	} else if (strcmp(how, "busy") == 0) {
		tell(0, 5 * NSEC_PER_SEC);
	} else if (strcmp(how, "liar") == 0) {
		tell(0, INT64_MAX);
	} else if (strcmp(how, "xids") == 0) {
		tell(questions == 1 ? 79 : 31, 0);
	} else if (strcmp(how, "fails") == 0 || (strcmp(how, "once") == 0 && questions > 1)) {
		send_rows(0, 1);
		send_outcome(0, SCRAPE_FAILED_CONNECT);
		send_end(0);
	} else if (strcmp(how, "once") == 0) {
		tell(0, 0);
	} else if (strcmp(how, "others") == 0) {
		send_rows(0, 2);
		send_outcome(0, SCRAPE_READ);
		send_end(0);
	} else if (strcmp(how, "unterminated") == 0) {
		send_rows(0, 1);
		send_device(0, 0, true);
		send_outcome(0, SCRAPE_READ);
		send_end(0);
	} else if (strcmp(how, "target") == 0) {
		send_rows(7, 1);
	} else if (strcmp(how, "rows") == 0) {
		send_rows(0, DCGM_ROWS + 1);
	} else if (strcmp(how, "many") == 0) {
		for (unsigned i = 0; i < 100; i++)
			send_rows(0, DCGM_ROWS);
	} else if (strcmp(how, "twice") == 0) {
		send_outcome(0, SCRAPE_READ);
		send_outcome(0, SCRAPE_READ);
	} else if (strcmp(how, "early") == 0) {
		send_end(0);
	} else if (strcmp(how, "silent") == 0) {
		pause();
	} else if (strcmp(how, "turns") == 0) {
		send_outcome(0, questions % 2 ? SCRAPE_FAILED_CONNECT : SCRAPE_READ);
		send_end(0);
	} else if (strcmp(how, "failure") == 0) {
		send_outcome(0, SCRAPE_FAILURES);
	} else {
		send_all("junk", 4);
	}
}

int main(void)
{
	int fd;

	close(HELPER_PROGRAM);
	for (unsigned questions = 1; receive_with_fd(HELPER_SOCKET, &question, sizeof(question), &fd) > 0;
	     questions++)
		answer(strrchr(question.asked[0].url, '/') + 1, questions);
	return 0;
}
