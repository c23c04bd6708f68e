// SPDX-License-Identifier: Apache-2.0
/*
 * cuFuncGetName() returns a pointer to text of the driver's, so a function's name is reached from what its
 * handle points to. Where exactly is the driver's own affair: any text that is the name of a kernel which
 * this process has will do, if there is but one. An object's neighbours have names as well, so little is read
 * first: the nearest names decide, and where these are two, nothing is said.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "symbolize/answer.h"
#include "symbolize/figures.h"
#include "symbolize/file.h"
#include "symbolize/image.h"
#include "symbolize/names.h"
#include "symbolize/process.h"
#include "symbolize/stubs.h"
#include "symbolize/worker.h"

enum { LOOK_FIRST = 256, LOOK = 1024, TEXT = 4096, TEXT_MIN = 1, PAGE = 4096 };

struct search {
	struct symbolizer *symbolizer;
	struct process *process;
	char *text; /* of TEXT + 1 bytes */
	char *found;
	struct symbol_key found_key;
	bool ambiguous;
};

static bool known(struct search *search, struct symbol_key key)
{
	struct process *process = search->process;

	for (uint32_t i = 0; i < process->mapped_n; i++) {
		const struct file *file = process->mapped[i].file;

		if (!file)
			continue;
		if (file->stubs && stub_table_has(file->stubs, key))
			return true;
		for (unsigned a = 0; a < FILE_ARCHS; a++)
			if (file->figures[a] && figures_has(file->figures[a], key))
				return true;
	}
	return image_has(search->symbolizer, (pid_t)process->id.pid, process->incarnation, key);
}

static int consider(struct search *search, const char *text, size_t n)
{
	struct symbol_key key = symbol_key(text, n);

	if (n < TEXT_MIN || !known(search, key))
		return 0;
	if (search->found) {
		search->ambiguous |=
			key.hash != search->found_key.hash || key.check != search->found_key.check;
		return 0;
	}
	search->found = strndup(text, n);
	search->found_key = key;
	return search->found ? 0 : -ENOMEM;
}

/* Whether a character may start a compiler's symbol. */
static bool begins_a_name(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '$';
}

static int follow(struct search *search, uint64_t address)
{
	size_t want = MIN((size_t)TEXT, PAGE - (size_t)(address % PAGE)), n = 0;

	/* Page by page, since the next page may not be mapped. */
	while (n < TEXT) {
		ssize_t got =
			process_peek((pid_t)search->process->id.pid, address + n, search->text + n, want);
		const char *end;

		if (got <= 0 || (n == 0 && !begins_a_name(search->text[0])))
			return 0;
		end = memchr(search->text + n, '\0', (size_t)got);
		n += (size_t)got;
		if (end)
			return consider(search, search->text, (size_t)(end - search->text));
		want = MIN((size_t)PAGE, TEXT - n);
	}
	return 0;
}

static int look(struct search *search, const char *bytes, size_t from, size_t n)
{
	for (size_t at = from; at + 8 <= n; at += 8) {
		const char *end = memchr(bytes + at, '\0', n - at);
		uint64_t word;
		int r = 0;

		memcpy(&word, bytes + at, sizeof(word));
		if (begins_a_name(bytes[at]) && end)
			r = consider(search, bytes + at, (size_t)(end - (bytes + at)));
		if (r == 0 && word >= PAGE && word < UINT64_C(1) << 56)
			r = follow(search, word);
		if (r < 0)
			return r;
	}
	return 0;
}

int memory_symbol(struct symbolizer *symbolizer, struct process *process, uint64_t handle, char **ret_symbol)
{
	_cleanup_free_ char *text = malloc(TEXT + 1);
	struct search search = { .symbolizer = symbolizer, .process = process, .text = text };
	char bytes[LOOK];
	ssize_t n;
	int r = 0;

	if (!text)
		return -ENOMEM;
	n = process->gone ? -ESRCH : process_peek((pid_t)process->id.pid, handle, bytes, sizeof(bytes));
	if (n == -EFAULT) /* the mapping ends before */
		n = process_peek((pid_t)process->id.pid, handle, bytes,
				 MIN(sizeof(bytes), PAGE - (size_t)(handle % PAGE)));
	if (n < 0)
		return -ENOENT;
	for (size_t from = 0, to = LOOK_FIRST; r == 0 && !search.found && from < (size_t)n;
	     from = to, to *= 2)
		r = look(&search, bytes, from, MIN(to, (size_t)n));
	if (r == 0 && (!search.found || search.ambiguous))
		r = -ENOENT;
	if (r < 0) {
		free(search.found);
		return r;
	}
	*ret_symbol = search.found;
	return 0;
}
