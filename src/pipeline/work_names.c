// SPDX-License-Identifier: Apache-2.0
#include "pipeline/work_names.h"

#include <stdlib.h>
#include <string.h>

#include "base/macro.h"
#include "cubin/name.h"

struct work_name {
	uint64_t owner, key;
	char *symbol; /* as far as it has come */
	char *shown; /* demangled; NULL: not yet */
	uint16_t have, size;
};

static struct work_name *name_at(const struct work_names *names, uint32_t index)
{
	return &((struct work_name *)names->list.list)[index];
}

static uint64_t name_key(uint64_t owner, uint64_t name)
{
	const uint64_t both[] = { owner, name };

	return hash_bytes_secret(both, sizeof(both));
}

void work_names_init(struct work_names *names, uint32_t max)
{
	*names = (struct work_names){ .list = { .size = sizeof(struct work_name), .max = max } };
}

void work_names_done(struct work_names *names)
{
	for (uint32_t i = 0; i < names->list.n; i++) {
		free(name_at(names, i)->symbol);
		free(name_at(names, i)->shown);
	}
	row_list_done(&names->list);
	hashmap_done(&names->by);
}

uint32_t work_names_find(const struct work_names *names, uint64_t owner, uint64_t name)
{
	uint32_t index;

	return hashmap_get(&names->by, name_key(owner, name), &index) ? index + 1 : 0;
}

uint32_t work_names_bytes(const struct cupti_name *told)
{
	return (uint32_t)(sizeof(struct work_name) + told->size + 1U);
}

static struct work_name *name_new(struct work_names *names, uint64_t owner, const struct cupti_name *told)
{
	struct work_name *name = row_list_add(&names->list);

	if (!name)
		return NULL;
	name->owner = owner;
	name->key = name_key(owner, told->name);
	name->size = told->size;
	name->symbol = calloc(1, told->size + 1U);
	if (!name->symbol || hashmap_put(&names->by, name->key, names->list.n - 1) < 0) {
		free(name->symbol);
		names->list.n--;
		return NULL;
	}
	return name;
}

uint32_t work_names_told(struct work_names *names, uint64_t owner, const struct cupti_name *told)
{
	uint32_t found = work_names_find(names, owner, told->name);
	struct work_name *name = NULL;

	if (found)
		name = name_at(names, found - 1);
	else if (told->at == 0)
		name = name_new(names, owner, told);
	if (!name || name->shown || told->at != name->have || (found && told->at == 0) ||
	    name->have + told->n > name->size)
		return 0;
	memcpy(name->symbol + name->have, told->text, told->n);
	name->have = (uint16_t)(name->have + told->n);
	return found ? 0 : work_names_bytes(told);
}

const char *work_names_symbol(const struct work_names *names, uint32_t found)
{
	return found ? name_at(names, found - 1)->symbol : "";
}

/* When it is first shown. */
const char *work_names_shown(struct work_names *names, uint32_t found)
{
	struct work_name *name = found ? name_at(names, found - 1) : NULL;
	char *buf;

	if (!name)
		return "";
	if (name->shown)
		return name->shown;
	buf = malloc(KERNEL_NAME_MAX);
	if (!buf)
		return "";
	kernel_name_demangle(name->symbol, buf, KERNEL_NAME_MAX);
	name->shown = strdup(buf);
	free(buf);
	return name->shown ? name->shown : "";
}

void work_names_forget(struct work_names *names, uint64_t owner)
{
	for (uint32_t i = names->list.n; i > 0; i--) {
		struct work_name *name = name_at(names, i - 1);

		if (name->owner != owner)
			continue;
		hashmap_del(&names->by, name->key);
		free(name->symbol);
		free(name->shown);
		*name = *name_at(names, --names->list.n);
		if (i - 1 < names->list.n)
			hashmap_put(&names->by, name->key, i - 1); /* replaces, so that it cannot fail */
	}
}
