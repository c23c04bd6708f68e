// SPDX-License-Identifier: Apache-2.0
/* Inference servers: the first byte says which kind; the rest is its page, its command line, its sockets. */
#include "fuzz.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/macro.h"
#include "inference/names.h"
#include "inference/page.h"
#include "inference/ports.h"

static int read_page(enum server_kind kind, const char *text, size_t n, size_t piece,
		     struct server_page *ret_page)
{
	struct figure_page page;
	int r = 0;

	figure_page_init(&page, kind);
	for (size_t at = 0; r == 0 && at < n; at += piece)
		r = figure_page_feed(&page, text + at, MIN(piece, n - at));
	if (r == 0)
		r = figure_page_end(&page, ret_page);
	figure_page_done(&page);
	return r;
}

static void check_page(enum server_kind kind, const char *text, size_t n)
{
	struct server_page page = { 0 }, pieces = { 0 };
	int r = read_page(kind, text, n, n + 1, &page);

	if (r != read_page(kind, text, n, 7, &pieces) || memcmp(&page, &pieces, sizeof(page)) != 0)
		abort();
	for (unsigned row = 0; row < SERVER_METRICS; row++)
		if (presence_is(page.p[row]) &&
		    (row >= SERVER_TOLD || !isfinite(page.v[row]) || page.v[row] < 0))
			abort();
}

int fuzz_one(const uint8_t *data, size_t size)
{
	static struct ports ports;
	const char *text = (const char *)data + 1;
	enum server_kind kind;
	struct cursor comm;

	if (size < 1)
		return 0;
	kind = data[0] % SERVER_KINDS;
	check_page(kind, text, size - 1);
	comm = cursor_over(text, MIN(size - 1, (size_t)15));
	(void)server_of_comm(&comm);
	(void)comm_hides_program(&comm);
	if (server_of_arguments(text, size - 1) > SERVER_KINDS)
		abort();
	(void)port_of_arguments(kind, text, size - 1);
	ports.n = 0;
	ports_parse(&ports, data[0] & 1, text, size - 1);
	for (uint32_t i = 0; i < ports.n; i++)
		if (ports.list[i].inode == 0)
			abort();
	return 0;
}
