// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/inspect/inspect.h"
#include "cubin/name.h"

enum {
	/* longest name shown; the longest known symbols, 16 KiB, demangle to at most 200 KiB */
	NAME_BYTES = 1 << 20,
	BRIEF_BYTES = 16 << 10,
	SLOTS = 4096, /* cached names */
	SLOT_BYTES = 16 << 10, /* longest cached symbol and name; in PyTorch they have 1 KiB */
	CACHE_BYTES = 3 << 20, /* all of them */
};

struct slot {
	uint32_t symbol_n, name_n;
	bool has_brief;
	bool plain;
	char text[]; /* symbol, NUL, name, NUL, the brief name, NUL */
};

struct inspect_names {
	struct slot *slots[SLOTS];
	size_t cached_bytes;
	uint64_t mangled;
	bool with_brief;
	char brief[BRIEF_BYTES];
	char buf[NAME_BYTES];
};

int inspect_names_new(bool brief, struct inspect_names **ret_names)
{
	struct inspect_names *names = calloc(1, sizeof(*names));

	if (!names)
		return -ENOMEM;
	names->with_brief = brief;
	*ret_names = names;
	return 0;
}

static void clear_cache(struct inspect_names *names)
{
	for (unsigned i = 0; i < SLOTS; i++) {
		free(names->slots[i]);
		names->slots[i] = NULL;
	}
	names->cached_bytes = 0;
}

void inspect_names_free(struct inspect_names *names)
{
	if (!names)
		return;
	clear_cache(names);
	free(names);
}

/* A name that is not cached is demangled again the next time. */
static void cache_name(struct inspect_names *names, struct slot **slot, const char *symbol, size_t n,
		       const struct inspect_name *name)
{
	size_t brief_n = name->brief ? strlen(name->brief) + 1 : 0,
	       bytes = sizeof(**slot) + n + name->n + 2 + brief_n;
	struct slot *copy;

	if (bytes > SLOT_BYTES)
		return;
	if (names->cached_bytes + bytes > CACHE_BYTES)
		clear_cache(names);
	copy = malloc(bytes);
	if (!copy)
		return;
	*copy = (struct slot){ .symbol_n = (uint32_t)n,
			       .name_n = (uint32_t)name->n,
			       .plain = name->plain,
			       .has_brief = name->brief };
	memcpy(copy->text, symbol, n + 1);
	memcpy(copy->text + n + 1, name->text, name->n + 1);
	if (name->brief)
		memcpy(copy->text + n + name->n + 2, name->brief, brief_n);
	free(*slot);
	*slot = copy;
	names->cached_bytes += bytes; /* includes replaced entries, until the cache is cleared */
}

/* Names are long, so eight bytes at a time. The multiplier is 2^64 divided by the golden ratio. */
static size_t slot_of(const char *symbol, size_t n)
{
	uint64_t hash = n, word = 0;
	size_t i = 0;

	for (; i + sizeof(word) <= n; i += sizeof(word)) {
		memcpy(&word, symbol + i, sizeof(word));
		hash = (hash ^ word) * 0x9e3779b97f4a7c15;
		hash ^= hash >> 32;
	}
	word = 0;
	memcpy(&word, symbol + i, n - i);
	hash = (hash ^ word) * 0x9e3779b97f4a7c15;
	return (hash >> 32) % SLOTS;
}

struct inspect_name inspect_names_get(struct inspect_names *names, const char *symbol, size_t n)
{
	struct slot **at = &names->slots[slot_of(symbol, n)], *slot = *at;
	struct inspect_name name = { .text = names->buf };
	bool done;

	if (slot && slot->symbol_n == n && memcmp(slot->text, symbol, n) == 0)
		return (struct inspect_name){ slot->text + n + 1, slot->name_n, slot->plain,
					      slot->has_brief ? slot->text + n + slot->name_n + 2 : NULL };
	done = kernel_name_demangle(symbol, names->buf, sizeof(names->buf));
	name.n = strlen(names->buf);
	if (names->with_brief) {
		kernel_name_brief(name.text, names->brief, sizeof(names->brief));
		name.brief = names->brief;
	}
	name.plain = inspect_is_plain(symbol, n) && inspect_is_plain(name.text, name.n);
	if (!done && strncmp(symbol, "_Z", 2) == 0)
		names->mangled++;
	else
		cache_name(names, at, symbol, n, &name);
	return name;
}

uint64_t inspect_names_mangled(const struct inspect_names *names)
{
	return names->mangled;
}
