// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stddef.h>

#include "base/macro.h"

/*
 * A YAML file as a small tree with line numbers, so that the caller who interprets it can name the line of
 * what it does not like. Configuration and scenarios need maps, lists and scalars; the rest of YAML
 * (aliases, tags, several documents, keys that are not scalars) is refused, and so is a key given
 * twice in one map. All limits are checked before memory is spent.
 */
enum {
	YAML_MAX_BYTES = 4 << 20,
	YAML_MAX_NODES = 65536,
	YAML_MAX_DEPTH = 16, /* of maps and lists in each other */
};

enum yaml_kind {
	YAML_SCALAR_N, /* _N: <yaml.h> has a YAML_SCALAR_NODE and more */
	YAML_MAP,
	YAML_LIST,
};

struct yaml_node {
	enum yaml_kind kind;
	int line; /* from 1: of the key in a map, else where the node begins */
	char *key; /* in a map, else NULL */
	char *scalar; /* of a scalar (empty if nothing was written), else NULL; valid UTF-8 */
	struct yaml_node *children; /* of a map or list, in the file's order */
	struct yaml_node *next; /* the following sibling */
};

struct yaml_doc {
	char *name; /* of the file, for messages */
	struct yaml_node *root; /* never NULL: an empty file is an empty map */
};

/* The cause and the remedy; @line is 0 when the file as a whole is meant. */
struct yaml_error {
	int line;
	char message[256];
};

/*
 * 0 and a document that yaml_doc_free() frees; or -EINVAL (not YAML, or YAML we refuse), -E2BIG (a
 * limit above), -ENOMEM, or why the file cannot be read; then *err says it in words. -EEXIST: keys were
 * given twice, of which *err names the first; there is a document all the same, for a caller that looks for
 * further mistakes.
 */
int yaml_parse_file(const char *path, struct yaml_doc **ret_doc, struct yaml_error *err);
int yaml_parse_buffer(const char *name, const void *data, size_t len, struct yaml_doc **ret_doc,
		      struct yaml_error *err);

void yaml_doc_free(struct yaml_doc *doc);
DEFINE_CLEANUP(struct yaml_doc *, yaml_doc_free, yaml_doc_freep)

/* The child called @key; NULL if there is none, or @node is NULL or no map. Borrowed from the document. */
const struct yaml_node *yaml_get(const struct yaml_node *node, const char *key);
