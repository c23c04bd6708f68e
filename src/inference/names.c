// SPDX-License-Identifier: Apache-2.0
#include "inference/names.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/macro.h"

enum { COMM_MAX = 15 }; /* bytes that the kernel keeps of a name */

static const struct {
	enum server_kind kind;
	const char *name;
} programs[] = {
#define SERVER_PROGRAM(id_, name_) { SERVER_##id_, name_ },
#include "model/servers.def"
#undef SERVER_PROGRAM
};

/* "vllm", its module "vllm.entrypoints", and the titles that it gives its processes: "VLLM::EngineCore". */
static bool is_of_program(const char *text, size_t n, const char *program)
{
	size_t length = strlen(program);

	if (n < length || strncasecmp(text, program, length) != 0)
		return false;
	return n == length || text[length] == '.' || text[length] == ':';
}

enum server_kind server_of_comm(const struct cursor *comm)
{
	size_t n = cursor_left(comm);

	for (size_t i = 0; i < ARRAY_SIZE(programs); i++)
		if (is_of_program(comm->p, n, programs[i].name) ||
		    (n == COMM_MAX && strlen(programs[i].name) > n &&
		     memcmp(comm->p, programs[i].name, n) == 0))
			return programs[i].kind;
	return SERVER_KINDS;
}

bool comm_hides_program(const struct cursor *comm)
{
	/* PyTorch calls every process that imports it so. */
	static const char *const hiding[] = { "python", "pt_main_thread" };

	for (size_t i = 0; i < ARRAY_SIZE(hiding); i++)
		if (cursor_left(comm) >= strlen(hiding[i]) &&
		    memcmp(comm->p, hiding[i], strlen(hiding[i])) == 0)
			return true;
	return false;
}

/* The argument behind @argument; NULL: it is the last. One without its NUL is cut off: it is none. */
static const char *next_argument(const char *argument, const char *end)
{
	const char *nul = argument ? memchr(argument, '\0', (size_t)(end - argument)) : NULL;

	return nul && nul + 1 < end && memchr(nul + 1, '\0', (size_t)(end - nul - 1)) ? nul + 1 : NULL;
}

static const char *first_argument(const char *arguments, size_t n)
{
	return n > 0 && memchr(arguments, '\0', n) ? arguments : NULL;
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static enum server_kind server_of_program(const char *program)
{
	for (size_t i = 0; i < ARRAY_SIZE(programs); i++)
		if (is_of_program(program, strlen(program), programs[i].name))
			return programs[i].kind;
	return SERVER_KINDS;
}

/* python [-u ...] SCRIPT, python -m MODULE: the first that is no option of Python's. */
static const char *script_of(const char *python, const char *end)
{
	const char *argument = next_argument(python, end);

	while (argument && argument[0] == '-' && !STRV_EQ(argument, "-m"))
		argument = next_argument(argument, end);
	return argument && STRV_EQ(argument, "-m") ? next_argument(argument, end) : argument;
}

enum server_kind server_of_arguments(const char *arguments, size_t n)
{
	const char *program = first_argument(arguments, n), *end = arguments + n;

	if (program && strncmp(base_name(program), "python", strlen("python")) == 0)
		program = script_of(program, end);
	return program ? server_of_program(base_name(program)) : SERVER_KINDS;
}

static uint16_t port_of(const char *text)
{
	struct cursor c = cursor_over(text, strlen(text));
	uint64_t port;

	return cursor_u64(&c, &port) == 0 && cursor_eof(&c) && port <= UINT16_MAX ? (uint16_t)port : 0;
}

uint16_t port_of_arguments(enum server_kind kind, const char *arguments, size_t n)
{
	const char *flag = server_kinds[kind].flag, *end = arguments + n;
	const size_t length = strlen(flag);

	if (length == 0)
		return 0;
	for (const char *a = first_argument(arguments, n); a; a = next_argument(a, end)) {
		const char *next = next_argument(a, end);

		if (STRV_EQ(a, flag) && next)
			return port_of(next);
		if (strncmp(a, flag, length) == 0 && a[length] == '=')
			return port_of(a + length + 1);
	}
	return 0;
}
