// SPDX-License-Identifier: Apache-2.0
#include "view/container/go_writer.h"

static void new_line(struct go_writer *w)
{
	static const char blanks[] = "                ";

	_Static_assert(sizeof(blanks) > 2 * GO_DEPTH_MAX, "two for each depth");
	strbuf_addc(w->out, '\n');
	strbuf_add(w->out, blanks, 2 * (size_t)w->depth);
}

void go_name(struct go_writer *w, const char *name)
{
	if (w->depth > 0) {
		if (w->filled[w->depth - 1])
			strbuf_addc(w->out, ',');
		w->filled[w->depth - 1] = true;
		new_line(w);
	}
	if (!name)
		return;
	strbuf_addc(w->out, '"');
	strbuf_adds(w->out, name);
	strbuf_adds(w->out, "\": ");
}

void go_open(struct go_writer *w, const char *name, char bracket)
{
	go_name(w, name);
	strbuf_addc(w->out, bracket);
	w->filled[w->depth++] = false;
}

void go_close(struct go_writer *w, char bracket)
{
	w->depth--;
	if (w->filled[w->depth])
		new_line(w);
	strbuf_addc(w->out, bracket);
	if (w->depth == 0)
		strbuf_addc(w->out, '\n');
}

void go_text(struct go_writer *w, const char *name, const char *text)
{
	go_name(w, name);
	go_json_string(w->out, text);
}

void go_number(struct go_writer *w, const char *name, double value)
{
	go_name(w, name);
	go_json_number(w->out, value);
}

void go_null(struct go_writer *w, const char *name)
{
	go_name(w, name);
	strbuf_adds(w->out, "null");
}

void go_time(struct go_writer *w, const char *name, int64_t real_ns)
{
	go_name(w, name);
	go_json_time(w->out, real_ns);
}
