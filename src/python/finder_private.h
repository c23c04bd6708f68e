// SPDX-License-Identifier: Apache-2.0
/* What both ends of the finder's socket know. */
#pragma once

#include <linux/capability.h>
#include <stdint.h>

#include "bpf/stack.h"
#include "config.h"
#include "helper/message.h"
#include "python/finder.h"

struct finder_question {
	char version[QUESTION_VERSION_BYTES];
	int32_t pid;
};

struct finder_answer {
	int32_t error; /* as of python_find() */
	uint32_t version;
	struct trace_python python;
};
