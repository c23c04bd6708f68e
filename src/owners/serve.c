// SPDX-License-Identifier: Apache-2.0
#include "owners/serve.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/macro.h"
#include "helper/message.h"
#include "owners/protocol.h"
#include "owners/scan.h"

/*
 * Memory: OWNERS_MAX rows of each of nine places, of the table, and all of them twice while they are sorted,
 * are 95 MiB; what containers were given and a CDI specification while it is read, 20 MiB.
 */
const struct confinement owners_confinement = {
	.name = "gpusonde-owners",
	.capabilities = OWNERS_CAPABILITIES,
	.opens = true,
	.memory_bytes = UINT64_C(192) << 20,
};

static int send_rows(int channel, const struct owners_answer *answer)
{
	size_t size = answer->given ? sizeof(answer->allocations[0]) : sizeof(answer->names[0]);

	return send_with_fd(channel, answer, offsetof(struct owners_answer, names) + answer->n * size, -1);
}

static int send_names(int channel, const struct scan_table *table, struct owners_answer *answer)
{
	int r = 0;

	for (; r == 0 && answer->at < table->n; answer->at += answer->n) {
		answer->n = MIN(table->n - answer->at, (uint32_t)OWNERS_ROWS);
		memcpy(answer->names, table->list + answer->at, answer->n * sizeof(answer->names[0]));
		r = send_rows(channel, answer);
	}
	return r;
}

static int send_given(int channel, const struct scan_table *table, struct owners_answer *answer)
{
	int r = 0;

	answer->given = 1;
	for (answer->at = 0; r == 0 && answer->at < table->given_n; answer->at += answer->n) {
		answer->n = MIN(table->given_n - answer->at, (uint32_t)OWNERS_ROWS);
		memcpy(answer->allocations, table->given + answer->at,
		       answer->n * sizeof(answer->allocations[0]));
		r = send_rows(channel, answer);
	}
	return r;
}

static int send_table(int channel, const struct scan_table *table, uint64_t known)
{
	static struct owners_answer answer;
	int r;

	answer = (struct owners_answer){ .table = table->digest,
					 .rows = table->n,
					 .given_rows = table->given_n,
					 .dropped = table->dropped,
					 .given_dropped = table->given_dropped,
					 .same = table->digest == known };
	memcpy(answer.error, table->error, sizeof(answer.error));
	if (answer.same || table->n + table->given_n == 0)
		return send_rows(channel, &answer);
	r = send_names(channel, table, &answer);
	return r == 0 ? send_given(channel, table, &answer) : r;
}

static int answer_question(struct scan *scan, int channel, const struct owners_question *question)
{
	struct scan_table table = { .digest = question->known ? question->known : 1 };
	int r = scan_run(scan, question->root, question->job_dir, &table);

	/* What the agent knows stays. */
	if (r < 0)
		snprintf(table.error, sizeof(table.error), "%.64s: %s", question->root, strerror(-r));
	return send_table(channel, &table, question->known);
}

int owners_serve(int channel)
{
	static struct owners_question question;
	struct scan *scan = NULL;
	int r = scan_new(&scan);

	while (r == 0) {
		r = receive_question(channel, &question, sizeof(question), NULL);
		question.root[sizeof(question.root) - 1] = '\0';
		question.job_dir[sizeof(question.job_dir) - 1] = '\0';
		if (r == 0)
			r = answer_question(scan, channel, &question);
	}
	scan_free(scan);
	return r == -EPROTONOSUPPORT ? HELPER_FOREIGN : r == 1 ? EXIT_SUCCESS : EXIT_FAILURE;
}
