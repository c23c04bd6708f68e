// SPDX-License-Identifier: Apache-2.0
/* gpusonde mcp: a line of standard input is a message, a line of standard output an answer. */
#include "cmd/mcp/mcp.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "cmd/cmd.h"

enum { MESSAGE_MAX = 1 << 20 };

static int put_answer(json_t *answer)
{
	char *text = answer ? json_dumps(answer, JSON_COMPACT) : NULL;
	struct strbuf line;
	int r = 0;

	json_decref(answer);
	if (!text)
		return 0;
	strbuf_init(&line, 0);
	strbuf_adds(&line, text);
	strbuf_addc(&line, '\n');
	r = line.failed ? -ENOMEM : (int)MIN(write_all(STDOUT_FILENO, line.data, line.len), 0);
	strbuf_done(&line);
	free(text);
	return r;
}

static int take_line(const char *line, size_t n)
{
	json_error_t error;
	json_t *message;
	int r;

	if (strspn(line, " \t\r") == n)
		return 0;
	message = json_loadb(line, n, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &error);
	if (!message)
		return put_answer(mcp_error_answer(NULL, MCP_PARSE_ERROR, error.text));
	r = put_answer(mcp_answer(message));
	json_decref(message);
	return r;
}

/* What a tool asks is asked of the same agent and configuration: commands find them in the environment. */
static int hand_on_options(const struct invocation *inv)
{
	char name[OPTION_NAME_MAX];

	if (inv->flag[FLAG_CONFIG] && setenv("GPUSONDE_CONFIG", inv->flag[FLAG_CONFIG], 1) < 0)
		return -errno;
	for (unsigned i = 0; i < OPTIONS; i++) {
		if (inv->options.v[i].origin != ORIGIN_FLAG)
			continue;
		option_environment(&option_table[i], name);
		if (setenv(name, inv->options.v[i].text, 1) < 0)
			return -errno;
	}
	return 0;
}

static int serve_messages(char *line)
{
	size_t n = 0;
	bool too_long = false;
	int c, r = 0;

	while (r == 0 && (c = getchar_unlocked()) != EOF) {
		if (c != '\n') {
			too_long |= n == MESSAGE_MAX;
			if (!too_long)
				line[n++] = (char)c;
			continue;
		}
		line[n] = '\0';
		r = too_long ? put_answer(mcp_error_answer(NULL, MCP_INVALID_REQUEST,
							   "a message of more than 1 MiB")) :
			       take_line(line, n);
		n = 0;
		too_long = false;
	}
	return r;
}

int mcp_main(struct invocation *inv)
{
	_cleanup_free_ char *line = malloc(MESSAGE_MAX + 1);
	int r = line ? hand_on_options(inv) : -ENOMEM;

	if (r == 0 && isatty(STDIN_FILENO))
		fprintf(stderr,
			"gpusonde mcp: this is for a program that speaks the Model Context Protocol: "
			"see gpusonde mcp --help\n");
	if (r == 0)
		r = serve_messages(line);
	if (r == 0 || r == -EPIPE)
		return EXIT_SUCCESS;
	fprintf(stderr, "gpusonde mcp: %s\n", strerror(-r));
	return EXIT_FAILURE;
}
