// SPDX-License-Identifier: Apache-2.0
/* A libcuda in which every call that is probed returns its first argument: crowd.c calls it. */
#define CROWD_CALL(name_)              \
	int name_(unsigned long code); \
	int name_(unsigned long code)  \
	{                              \
		return (int)code;      \
	}
#include "crowd_calls.def"
