// SPDX-License-Identifier: Apache-2.0
#include "dcgm/serve.h"

#include <errno.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/macro.h"
#include "config.h"
#include "helper/below.h"
#include "helper/message.h"

/* What resolving names and TLS open. Folders: files in them are replaced. */
static const char *const opened[] = {
	"/etc",
	"/run/systemd/resolve",
	"/run/resolvconf",
	"/run/NetworkManager",
	"/usr/lib/ssl",
	"/usr/share/ca-certificates",
	NULL,
};

/*
 * Memory: fifteen pages of at most 3 MiB, libcurl with its TLS library, a thread for each name that is being
 * resolved.
 */
const struct confinement dcgm_confinement = {
	.name = "gpusonde-dcgm",
	.opens = true,
	.connects = true,
	.below = opened,
	.memory_bytes = UINT64_C(512) << 20,
};

int dcgm_confine(const struct dcgm_question *question, pid_t owner)
{
	static struct below below;
	struct confinement confinement = dcgm_confinement;

	for (size_t i = 0; opened[i]; i++)
		below_add(&below, opened[i]);
	below_add_folder_of(&below, question->ca_file);
	confinement.below = below.list;
	return confine(&confinement, owner);
}

enum { ASKED_MAX = 512 };

/* ---- questions ---- */

static bool is_whole(const struct dcgm_question *question, size_t n)
{
	return n >= offsetof(struct dcgm_question, asked) && question->n <= DCGM_ASKED_MAX &&
	       n == offsetof(struct dcgm_question, asked) + question->n * sizeof(question->asked[0]);
}

static int receive_part(int channel, struct dcgm_question *question)
{
	int fd = -1;
	ssize_t n = receive_with_fd(channel, question, sizeof(*question), &fd);

	closep(&fd);
	if (n <= 0)
		return n < 0 ? (int)n : 1;
	if ((size_t)n < sizeof(question->version) ||
	    strncmp(question->version, GPUSONDE_VERSION, sizeof(question->version)) != 0)
		return -EPROTONOSUPPORT;
	return is_whole(question, (size_t)n) ? 0 : -EBADMSG;
}

static int add_asked(struct dcgm_request *request)
{
	const struct dcgm_question *question = &request->question;
	struct dcgm_asked *asked;

	if (request->n + question->n > ASKED_MAX)
		return -EBADMSG;
	asked = realloc(request->asked, (request->n + question->n + 1) * sizeof(*asked));
	if (!asked)
		return -ENOMEM;
	request->asked = asked;
	memcpy(asked + request->n, question->asked, question->n * sizeof(*asked));
	for (uint32_t i = 0; i < question->n; i++, request->n++) {
		asked[request->n].url[DCGM_URL_MAX - 1] = '\0';
		asked[request->n].node[DCGM_NODE_MAX - 1] = '\0';
	}
	return 0;
}

int dcgm_receive(int channel, struct dcgm_request *request)
{
	int r;

	request->n = 0;
	do {
		r = receive_part(channel, &request->question);
		if (r == 0)
			r = add_asked(request);
	} while (r == 0 && request->question.more);
	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(request->question.nodes); i++)
		request->question.nodes[i][DCGM_NODE_MAX - 1] = '\0';
	request->question.ca_file[sizeof(request->question.ca_file) - 1] = '\0';
	return r;
}

/* ---- answers ---- */

static int64_t cpu_ns(void)
{
	struct timespec used;

	return clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used) < 0 ? 0 :
								    used.tv_sec * NSEC_PER_SEC + used.tv_nsec;
}

static int send_rows(int channel, struct dcgm_part *part, const struct dcgm_outcome *outcome,
		     const struct page *page)
{
	const uint32_t n = page_rows(page);
	int r = 0;

	for (uint32_t at = 0; r == 0 && at < n; at += part->n) {
		part->message = DCGM_PART_ROWS;
		part->n = MIN(n - at, (uint32_t)DCGM_ROWS);
		for (uint32_t i = 0; i < part->n; i++) {
			page_row(page, at + i, &part->rows[i]);
			part->rows[i].target = outcome->target;
			part->rows[i].real_ns = outcome->real_ns;
			part->rows[i].boot_ns = outcome->boot_ns;
		}
		r = send_with_fd(channel, part,
				 offsetof(struct dcgm_part, rows) + part->n * sizeof(part->rows[0]), -1);
	}
	return r;
}

static int send_devices(int channel, struct dcgm_part *part, const struct page *page)
{
	const uint32_t n = page_devices(page);
	int r = 0;

	for (uint32_t at = 0; r == 0 && at < n; at += part->n) {
		part->message = DCGM_PART_DEVICES;
		part->n = MIN(n - at, (uint32_t)DCGM_DEVICES);
		for (uint32_t i = 0; i < part->n; i++)
			part->devices[i] = *page_device(page, at + i);
		r = send_with_fd(channel, part,
				 offsetof(struct dcgm_part, devices) + part->n * sizeof(part->devices[0]),
				 -1);
	}
	return r;
}

static int send_outcome(const struct dcgm_outcome *outcome, const struct page *page, void *userdata)
{
	const int channel = *(const int *)userdata;
	_cleanup_free_ struct dcgm_part *part = page ? malloc(sizeof(*part)) : NULL;
	int r = 0;

	if (page && !part)
		return -ENOMEM;
	if (page) {
		part->target = outcome->target;
		part->reserved = 0;
		r = send_rows(channel, part, outcome, page);
	}
	if (r == 0 && page)
		r = send_devices(channel, part, page);
	return r == 0 ? send_with_fd(channel, outcome, sizeof(*outcome), -1) : r;
}

int dcgm_answer(struct fetcher *fetcher, int channel, const struct dcgm_request *request)
{
	const struct dcgm_question *question = &request->question;
	const char *nodes[ARRAY_SIZE(question->nodes) + 1] = { NULL };
	struct dcgm_end end = { .message = DCGM_END, .begin_ns = clock_boot_ns() };
	const int64_t begin_cpu_ns = cpu_ns();
	struct fetch_config config = { .strict = question->strict,
				       .here = question->here,
				       .ca_file = question->ca_file,
				       .page_cpu_ns = question->page_cpu_ns,
				       .nodes = nodes,
				       .done = send_outcome,
				       .userdata = &channel };
	size_t n = 0;
	int r;

	families_leave_out(question->left_out);
	for (size_t i = 0; i < ARRAY_SIZE(question->nodes); i++)
		if (question->nodes[i][0])
			nodes[n++] = question->nodes[i];
	r = fetcher_run(fetcher, &config, request->asked, request->n);
	malloc_trim(0);
	end.end_ns = clock_boot_ns();
	end.cpu_ns = cpu_ns() - begin_cpu_ns;
	return r == 0 ? send_with_fd(channel, &end, sizeof(end), -1) : r;
}
