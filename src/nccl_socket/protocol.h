// SPDX-License-Identifier: Apache-2.0
/* Between the agent (agent/nccl.c) and the process that receives: a question, then rows and an answer. */
#pragma once

#include <stdint.h>

#include "helper/parts.h"

enum { NCCL_ANSWER = PART_OTHERS };

/* Tables of struct nccl_measured. */
enum nccl_table { NCCL_TABLE_ROWS, NCCL_TABLE_TOTALS, NCCL_TABLES };

struct nccl_question {
	char version[32]; /* GPUSONDE_VERSION */
	/* With the first one comes the socket that listens. */
};

/* After the tables. */
struct nccl_answer {
	uint32_t message; /* NCCL_ANSWER */
	uint32_t rows[NCCL_TABLES];
	uint32_t pad;
	uint64_t digest[NCCL_TABLES]; /* 0: the table is empty */
	uint64_t refused, dropped;
	uint64_t lost; /* of the totals */
};
