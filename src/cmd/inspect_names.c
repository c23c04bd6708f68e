// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/hashmap.h"
#include "cmd/inspect.h"
#include "cubin/name.h"

enum {
	NAME_BYTES = 1 << 20, /* the longest that is shown; 16 KiB of symbol make 200 KiB of name at most that are known */
	SLOTS = 4096, /* names that are remembered */
	SLOT_BYTES = 16 << 10, /* symbol and name of one that is; with PyTorch's, 1 KiB */
	KEPT_BYTES = 8 << 20, /* all of them */
};

struct inspect_names {
	char *slots[SLOTS]; /* symbol, NUL, name */
	size_t kept;
	uint64_t mangled;
	char buf[NAME_BYTES];
};

int inspect_names_new(struct inspect_names **ret_names)
{
	struct inspect_names *names = calloc(1, sizeof(*names));

	if (!names)
		return -ENOMEM;
	*ret_names = names;
	return 0;
}

static void forget(struct inspect_names *names)
{
	for (unsigned i = 0; i < SLOTS; i++) {
		free(names->slots[i]);
		names->slots[i] = NULL;
	}
	names->kept = 0;
}

void inspect_names_free(struct inspect_names *names)
{
	if (!names)
		return;
	forget(names);
	free(names);
}

/* What cannot be kept is demangled again. */
static void keep(struct inspect_names *names, char **slot, const char *symbol, size_t n)
{
	size_t name_n = strlen(names->buf), bytes = n + name_n + 2;
	char *copy;

	if (bytes > SLOT_BYTES)
		return;
	if (names->kept + bytes > KEPT_BYTES)
		forget(names);
	copy = malloc(bytes);
	if (!copy)
		return;
	memcpy(copy, symbol, n + 1);
	memcpy(copy + n + 1, names->buf, name_n + 1);
	free(*slot);
	*slot = copy;
	names->kept += bytes; /* of those that were replaced, too: forgotten with the others */
}

const char *inspect_names_get(struct inspect_names *names, const char *symbol, size_t n)
{
	char **slot = &names->slots[hash_bytes(symbol, n) % SLOTS];
	bool done;

	if (*slot && STRV_EQ(*slot, symbol))
		return *slot + n + 1;
	done = kernel_name_demangle(symbol, names->buf, sizeof(names->buf));
	if (!done && strncmp(symbol, "_Z", 2) == 0)
		names->mangled++;
	else
		keep(names, slot, symbol, n);
	return names->buf;
}

uint64_t inspect_names_mangled(const struct inspect_names *names)
{
	return names->mangled;
}
