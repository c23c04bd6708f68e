// SPDX-License-Identifier: Apache-2.0
/* What stands in a stack where frames are missing. */
#include "base/macro.h"
#include "python/private.h"

const char *native_stop_text(uint8_t stop)
{
	static const char *const texts[TRACE_NATIVE_STOPS] = {
		[TRACE_NATIVE_CUT] = "[deeper stack]",
		[TRACE_NATIVE_UNMAPPED] = "[stopped: unknown code]",
		[TRACE_NATIVE_NO_RULE] = "[stopped: no unwind rule]",
		[TRACE_NATIVE_PENDING] = "[stopped: unwind rules not read yet]",
		[TRACE_NATIVE_FULL] = "[stopped: unwind rules beyond a limit]",
		[TRACE_NATIVE_CROWDED] = "[stopped: table of files full]",
		[TRACE_NATIVE_NO_FILE] = "[stopped: code of no file]",
		[TRACE_NATIVE_UNREAD] = "[stopped: stack not readable]",
		[TRACE_NATIVE_BROKEN] = "[stopped: broken stack]",
	};

	return stop < ARRAY_SIZE(texts) ? texts[stop] : "[stopped]";
}

const char *python_mark_text(uint64_t mark)
{
	static const char *const texts[TRACE_FRAME_MARKS] = {
		[TRACE_FRAME_AWAITED_BY] = "[awaited by]",
		[TRACE_FRAME_AWAITED_BY_ONE] = "[awaited by another task]",
		[TRACE_FRAME_AWAITED_BY_SEVERAL] = "[awaited by several tasks]",
		[TRACE_FRAME_AWAITED_FURTHER] = "[awaited further]",
	};

	return mark < ARRAY_SIZE(texts) ? texts[mark] : NULL;
}

const char *python_none_text(uint8_t why)
{
	switch (why) {
	case TRACE_STACK_AMBIGUOUS:
		return "[Python: one of several interpreters]";
	case TRACE_STACK_UNREAD:
	case TRACE_STACK_LOST:
		return "[Python: stack not readable]";
	}
	return NULL; /* it has none */
}
