// SPDX-License-Identifier: Apache-2.0
#include "python/layout.h"

#include <errno.h>

#include "base/macro.h"
#include "python/private.h"

enum {
	WORD = 8,
	/* Of every version: PyThreadState begins so, and objects do. */
	THREAD_PREV = 0,
	THREAD_NEXT = 8,
	THREAD_INTERPRETER = 16,
	VAR_SIZE = 16,
	BYTES_DATA = 32,
	TEXT_LENGTH = 16,
	TEXT_HASH = 24,
	TEXT_STATE = 32,
	TEXT_KIND_SHIFT = 2,
};

static const struct python_layout layouts[] = {
#define LAYOUT(minor_, ...) [minor_] = { __VA_ARGS__ },
#include "python/layout.def"
#undef LAYOUT
};

void python_window(const uint32_t *offsets, const uint8_t *sizes, size_t n, uint32_t *ret_from,
		   uint32_t *ret_n)
{
	uint32_t from = UINT32_MAX, end = 0;

	for (size_t i = 0; i < n; i++) {
		from = MIN(from, offsets[i]);
		end = MAX(end, offsets[i] + sizes[i]);
	}
	from &= ~(uint32_t)(WORD - 1);
	*ret_from = from;
	*ret_n = (end - from + WORD - 1) & ~(uint32_t)(WORD - 1);
}

int python_set_windows(const struct python_layout *layout, struct trace_python *python)
{
	bool lasti = layout->flags & TRACE_PYTHON_LASTI, owner = layout->flags & TRACE_PYTHON_OWNER;
	const uint32_t frame[] = { layout->back, layout->code, layout->at,
				   owner ? layout->owner : layout->at,
				   layout->entry ? layout->entry : layout->at,
				   layout->tlbc ? layout->tlbc : layout->at };
	const uint8_t frame_sizes[] = { WORD, WORD, lasti ? 4 : WORD, 1, 1, 4 };
	const uint32_t code[] = { layout->first_line, layout->file, layout->name, layout->lines };
	const uint8_t code_sizes[] = { 4, WORD, WORD, WORD };
	uint32_t from, n;

	/* Members of 8 bytes are read at such places. */
	if ((layout->back | layout->code | layout->file | layout->name | layout->lines) % WORD ||
	    (layout->first_line | layout->tlbc) % 4 || layout->at % (lasti ? 4 : WORD))
		return -EBADMSG;
	python_window(frame, frame_sizes, ARRAY_SIZE(frame), &from, &n);
	if (n > TRACE_PYTHON_FRAME)
		return -EBADMSG;
	python->frame_from = (uint16_t)from;
	python->frame_n = (uint16_t)n;
	python->frame_back = (uint16_t)(layout->back - from);
	python->frame_code = (uint16_t)(layout->code - from);
	python->frame_at = (uint16_t)(layout->at - from);
	python->frame_owner = (uint16_t)(owner ? layout->owner - from : 0);
	python->frame_entry = (uint16_t)(layout->entry ? layout->entry - from : 0);
	python->frame_tlbc = (uint16_t)(layout->tlbc ? layout->tlbc - from : 0);
	python_window(code, code_sizes, ARRAY_SIZE(code), &from, &n);
	if (n > TRACE_PYTHON_CODE)
		return -EBADMSG;
	python->code_from = (uint16_t)from;
	python->code_n = (uint16_t)n;
	python->code_first_line = (uint16_t)(layout->first_line - from);
	python->code_file = (uint16_t)(layout->file - from);
	python->code_name = (uint16_t)(layout->name - from);
	python->code_lines = (uint16_t)(layout->lines - from);
	return 0;
}

int python_set_thread(struct trace_python *python)
{
	const uint16_t at[] = { python->thread_prev, python->thread_next,  python->thread_interpreter,
				python->thread_id,   python->thread_frame, python->thread_status };

	python->thread_n = 0;
	for (size_t i = 0; i < ARRAY_SIZE(at); i++) {
		if (at[i] + WORD > TRACE_PYTHON_STATE || (at[i] % WORD && at[i] != python->thread_status))
			return -EBADMSG;
		python->thread_n = (uint16_t)MAX(python->thread_n, at[i] + WORD);
	}
	return 0;
}

int python_layout(uint32_t version, struct trace_python *ret_python)
{
	uint32_t minor = version >> 16 & 0xff;
	const struct python_layout *layout = minor < ARRAY_SIZE(layouts) ? &layouts[minor] : NULL;
	struct trace_python python;

	if (version >> 24 != 3 || !layout || !layout->thread_id)
		return -ENOTSUP;
	python = (struct trace_python){
		.interpreters = layout->interpreters,
		.current = layout->current,
		.interpreter_threads = layout->threads,
		.thread_prev = THREAD_PREV,
		.thread_next = THREAD_NEXT,
		.thread_interpreter = THREAD_INTERPRETER,
		.thread_id = layout->thread_id,
		.thread_frame = layout->frame,
		.thread_status = layout->status,
		.cframe_frame = layout->cframe,
		.code_size = layout->instructions ? VAR_SIZE : 0,
		.code_instructions = layout->instructions,
		.text_state = TEXT_STATE,
		.text_length = TEXT_LENGTH,
		.text_hash = TEXT_HASH,
		.text_ascii = layout->text_ascii,
		.text_compact = layout->text_compact,
		.bytes_size = VAR_SIZE,
		.bytes_data = BYTES_DATA,
		.text_kind_shift = TEXT_KIND_SHIFT,
		.status_active = PYTHON_STATUS_ACTIVE,
		.flags = layout->flags,
		.lines = layout->table,
	};
	if (python_set_windows(layout, &python) < 0 || python_set_thread(&python) < 0)
		return -ENOTSUP;
	*ret_python = python;
	return 0;
}
