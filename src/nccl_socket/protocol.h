// SPDX-License-Identifier: Apache-2.0
/* Between the agent (agent/nccl.c) and the process that receives: a question, then rows and an answer. */
#pragma once

#include <stdint.h>

#include "helper/parts.h"

enum { NCCL_ANSWER = PART_OTHERS };

struct nccl_question {
	char version[32]; /* GPUSONDE_VERSION */
	/* With the first one comes the socket that listens. */
};

/* After the rows (struct nccl_measured), of table 0. */
struct nccl_answer {
	uint32_t message; /* NCCL_ANSWER */
	uint32_t rows;
	uint64_t digest; /* of the rows; 0: there are none */
	uint64_t refused, dropped;
};
