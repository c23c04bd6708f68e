// SPDX-License-Identifier: Apache-2.0
#include "fuzz.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/yaml.h"

/* Nodes are what the header promises: each has exactly the fields of its kind. */
static void check(const struct yaml_node *node, bool in_map, unsigned depth)
{
	if (node && depth > YAML_MAX_DEPTH)
		abort();
	for (; node; node = node->next) {
		if (!!node->key != in_map || !!node->scalar != (node->kind == YAML_SCALAR_N) ||
		    node->line < 1)
			abort();
		if (node->kind == YAML_SCALAR_N && node->children)
			abort();
		check(node->children, node->kind == YAML_MAP, depth + 1);
	}
}

int fuzz_one(const uint8_t *data, size_t size)
{
	_cleanup_(yaml_doc_freep) struct yaml_doc *doc = NULL;
	struct yaml_error err = { .line = -1 };
	int r = yaml_parse_buffer("fuzz", data, size, &doc, &err);

	if (r == 0 || r == -EEXIST)
		check(doc->root, false, 0);
	else if (doc || err.line < 0 || err.message[0] == '\0')
		abort();
	return 0;
}
