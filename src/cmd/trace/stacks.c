// SPDX-License-Identifier: Apache-2.0
#include "cmd/trace/stacks.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/raised.h"
#include "cmd/trace/request.h"
#include "python/stacks.h"
#include "unwind/names.h"
#include "view/lines.h"
#include "view/table/table.h"

/* Of pprof and the page, which say each text once. */
enum { PIECE = 1 << 20 };
#define FILE_MAX ((size_t)1 << 30)

bool trace_stacks_format(const char *path, enum trace_stacks_format *ret_format)
{
	static const struct {
		const char *end;
		enum trace_stacks_format format;
	} ends[] = {
		{ ".folded", TRACE_STACKS_FOLDED },
		{ ".pb.gz", TRACE_STACKS_PPROF },
		{ ".html", TRACE_STACKS_HTML },
	};
	size_t n = strlen(path);

	for (size_t i = 0; i < ARRAY_SIZE(ends); i++) {
		size_t end = strlen(ends[i].end);

		if (n > end && strcmp(path + n - end, ends[i].end) == 0) {
			*ret_format = ends[i].format;
			return true;
		}
	}
	return false;
}

int trace_stacks_new(sd_event *event, unsigned kinds, struct stack_sums **ret_stacks)
{
	static const struct stack_limits limits = {
		.rows = 1 << 18,
		.paths = PYTHON_PATHS,
		.held = 1 << 20,
		.processes = 1 << 16,
		.places = PYTHON_PLACES,
		.frames = PYTHON_PATH_FRAMES_MAX,
		.text_bytes = PYTHON_TEXT_BYTES,
		.lines_bytes = PYTHON_LINES_BYTES,
		.names = UNWIND_NAMES,
		.names_bytes = UNWIND_NAMES_BYTES,
		.keep_held = true,
	};

	_cleanup_(stack_sums_freep) struct stack_sums *stacks = NULL;
	int r = stack_sums_new(&limits, &stacks);

	if (r == 0 && kinds & TRACE_STACK_NATIVE)
		r = stack_sums_add_native(stacks, event, false);
	if (r == 0)
		*ret_stacks = TAKE_PTR(stacks);
	else
		fprintf(stderr, "gpusonde %s: stacks cannot be recorded: %s\n", trace_command_name(),
			strerror(-r));
	return r;
}

static int flush(int fd, struct strbuf *text)
{
	ssize_t n = text->failed ? -ENOMEM : write_all(fd, text->data, text->len);

	strbuf_reset(text);
	return n < 0 ? (int)n : 0;
}

static int write_folded(int fd, const struct stack_page *page, enum stack_weight weight, struct strbuf *text)
{
	size_t row = 0;
	int r = 0;

	while (r == 0 && row < page->rows_n) {
		row = view_stacks_folded(page, weight, row, PIECE, text);
		r = flush(fd, text);
	}
	return r;
}

static int write_page(int fd, const char *path, const struct stack_page *page, enum stack_weight weight)
{
	enum trace_stacks_format format = TRACE_STACKS_FOLDED;
	struct strbuf text;
	int r;

	strbuf_init(&text, FILE_MAX);
	trace_stacks_format(path, &format);
	if (format == TRACE_STACKS_FOLDED)
		r = write_folded(fd, page, weight, &text);
	else if (format == TRACE_STACKS_PPROF)
		r = view_stacks_pprof(page, &text);
	else
		r = view_stacks_html(page, &text);
	if (r == 0)
		r = flush(fd, &text);
	strbuf_done(&text);
	return r;
}

static int write_beside(const char *path, const struct stack_page *page, enum stack_weight weight)
{
	WITH_RIGHTS_OF_USER;
	char beside[PATH_MAX];
	_cleanup_close_ int fd = -1;
	int r;

	if ((size_t)snprintf(beside, sizeof(beside), "%s.%d", path, (int)getpid()) >= sizeof(beside))
		return -ENAMETOOLONG;
	fd = open(beside, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
	if (fd < 0)
		return -errno;
	r = write_page(fd, path, page, weight);
	if (r == 0 && rename(beside, path) < 0)
		r = -errno;
	if (r < 0)
		unlink(beside);
	return r;
}

int trace_stacks_write(struct stack_sums *stacks, struct trace_engine *engine, const char *path,
		       enum stack_weight weight, char **ret_said)
{
	_cleanup_(stack_view_freep) struct stack_view *view = NULL;
	char *said;
	int r;

	trace_engine_drain(engine);
	r = stack_sums_view(stacks, 0, 0, &view);
	if (r == 0)
		r = write_beside(path, &view->page, weight);
	if (r < 0)
		return r;
	said = strdup(view->page.incomplete ? view->page.incomplete : "");
	if (!said)
		return -ENOMEM;
	*ret_said = said;
	return 0;
}

int trace_stacks_table(struct stack_sums *stacks, struct trace_engine *engine,
		       const struct table_options *options, size_t rows, struct strbuf *out)
{
	_cleanup_(stack_view_freep) struct stack_view *view = NULL;
	int r;

	trace_engine_drain(engine);
	r = stack_sums_view(stacks, 0, 0, &view);
	if (r == 0)
		r = table_lines(&view->page, options, rows, out);
	if (r == 0 && view->page.incomplete)
		table_line(options, out, COLOUR_BAD, view->page.incomplete);
	return r;
}

int trace_stacks_json(struct stack_sums *stacks, struct trace_engine *engine, struct strbuf *out)
{
	_cleanup_(stack_view_freep) struct stack_view *view = NULL;
	int r;

	trace_engine_drain(engine);
	r = stack_sums_view(stacks, 0, 0, &view);
	return r == 0 ? json_lines(&view->page, out) : r;
}
