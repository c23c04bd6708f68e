// SPDX-License-Identifier: Apache-2.0
#include "base/yaml.h"

#include <errno.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>

#include <yaml.h>

#include "base/fd.h"
#include "base/hashmap.h"

/* An open map or list: where its next child goes, and in a map the key that waits for its value. */
struct level {
	struct yaml_node *node;
	struct yaml_node **tail;
	char *key;
	int key_line;
};

struct builder {
	yaml_parser_t parser;
	struct yaml_doc *doc;
	struct yaml_error *err;
	struct level levels[YAML_MAX_DEPTH];
	unsigned depth;
	uint32_t nodes;
	struct hashmap keys; /* what was seen: hash of (map, key) */
	bool twice; /* a key was given twice, and err says which */
};

static int yaml_fail(struct yaml_error *err, int code, size_t line, const char *fmt, ...) _printf_(4, 5);

static int yaml_fail(struct yaml_error *err, int code, size_t line, const char *fmt, ...)
{
	va_list ap;

	err->line = (int)line;
	va_start(ap, fmt);
	vsnprintf(err->message, sizeof(err->message), fmt, ap);
	va_end(ap);
	return code;
}

static int out_of_memory(struct yaml_error *err)
{
	return yaml_fail(err, -ENOMEM, 0, "out of memory while reading; free some and try again");
}

static size_t line_of(const yaml_event_t *event)
{
	return event->start_mark.line + 1;
}

static struct level *top(struct builder *b)
{
	return b->depth > 0 ? &b->levels[b->depth - 1] : NULL;
}

/* Recursion is at most YAML_MAX_DEPTH deep. */
static void free_nodes(struct yaml_node *node)
{
	while (node) {
		struct yaml_node *next = node->next;

		free_nodes(node->children);
		free(node->key);
		free(node->scalar);
		free(node);
		node = next;
	}
}

void yaml_doc_free(struct yaml_doc *doc)
{
	if (!doc)
		return;
	free_nodes(doc->root);
	free(doc->name);
	free(doc);
}

/* The first node becomes the root; any other goes to the end of the innermost map or list. */
static int add_node(struct builder *b, enum yaml_kind kind, size_t line, char *scalar,
		    struct yaml_node **ret_node)
{
	struct level *level = top(b);
	struct yaml_node *node;

	if (b->nodes == YAML_MAX_NODES)
		return yaml_fail(b->err, -E2BIG, line, "more than %d entries; make the file smaller",
				 YAML_MAX_NODES);
	node = calloc(1, sizeof(*node));
	if (!node)
		return out_of_memory(b->err);
	node->kind = kind;
	node->line = (int)line;
	node->scalar = scalar;
	b->nodes++;
	if (level) {
		node->key = TAKE_PTR(level->key);
		if (node->key)
			node->line = level->key_line;
		*level->tail = node;
		level->tail = &node->next;
	} else {
		b->doc->root = node;
	}
	*ret_node = node;
	return 0;
}

/*
 * A hash makes this cheap for maps of any size; equal hashes of different keys are told apart by
 * looking, so that a file is never refused by accident.
 */
static int check_new_key(struct builder *b, const struct level *level, const char *key, size_t line)
{
	uint64_t hash = hash_bytes(key, strlen(key)) ^ hash_bytes(&level->node, sizeof(level->node));
	const struct yaml_node *earlier;
	uint32_t seen;

	if (!hashmap_get(&b->keys, hash, &seen))
		return hashmap_put(&b->keys, hash, 1) < 0 ? out_of_memory(b->err) : 0;
	earlier = yaml_get(level->node, key);
	if (!earlier)
		return 0;
	if (!b->twice)
		yaml_fail(b->err, -EEXIST, line,
			  "the same key was given in line %d already; keep one of the two", earlier->line);
	b->twice = true;
	return 0;
}

static int on_scalar(struct builder *b, const yaml_event_t *event)
{
	const char *text = (const char *)event->data.scalar.value;
	struct level *level = top(b);
	_cleanup_free_ char *copy = NULL;
	struct yaml_node *node;
	int r;

	if (event->data.scalar.tag)
		return yaml_fail(b->err, -EINVAL, line_of(event), "tags (!) are not supported; remove it");
	if (strlen(text) != event->data.scalar.length)
		return yaml_fail(b->err, -EINVAL, line_of(event),
				 "text contains a NUL character; remove the \\0");
	copy = strdup(text);
	if (!copy)
		return out_of_memory(b->err);
	if (level && level->node->kind == YAML_MAP && !level->key) {
		r = check_new_key(b, level, copy, line_of(event));
		if (r < 0)
			return r;
		level->key = TAKE_PTR(copy);
		level->key_line = (int)line_of(event);
		return 0;
	}
	r = add_node(b, YAML_SCALAR_N, line_of(event), copy, &node);
	if (r == 0)
		copy = NULL;
	return r;
}

static int on_open(struct builder *b, const yaml_event_t *event, enum yaml_kind kind, const void *tag)
{
	const struct level *level = top(b);
	struct yaml_node *node;
	int r;

	if (tag)
		return yaml_fail(b->err, -EINVAL, line_of(event), "tags (!) are not supported; remove it");
	if (level && level->node->kind == YAML_MAP && !level->key)
		return yaml_fail(b->err, -EINVAL, line_of(event),
				 "a key must be plain text, not a map or a list");
	if (b->depth == YAML_MAX_DEPTH)
		return yaml_fail(b->err, -E2BIG, line_of(event), "more than %d levels; nest less deeply",
				 YAML_MAX_DEPTH);
	r = add_node(b, kind, line_of(event), NULL, &node);
	if (r < 0)
		return r;
	b->levels[b->depth++] = (struct level){ .node = node, .tail = &node->children };
	return 0;
}

static int on_event(struct builder *b, const yaml_event_t *event)
{
	switch (event->type) {
	case YAML_SCALAR_EVENT:
		return on_scalar(b, event);
	case YAML_MAPPING_START_EVENT:
		return on_open(b, event, YAML_MAP, event->data.mapping_start.tag);
	case YAML_SEQUENCE_START_EVENT:
		return on_open(b, event, YAML_LIST, event->data.sequence_start.tag);
	case YAML_MAPPING_END_EVENT:
	case YAML_SEQUENCE_END_EVENT:
		b->depth--;
		return 0;
	case YAML_ALIAS_EVENT:
		return yaml_fail(b->err, -EINVAL, line_of(event),
				 "aliases (*) are not supported; write the value out");
	case YAML_DOCUMENT_START_EVENT:
		if (b->doc->root)
			return yaml_fail(b->err, -EINVAL, line_of(event),
					 "a second document begins; keep one per file");
		return 0;
	default:
		return 0;
	}
}

static int syntax_error(struct builder *b)
{
	const yaml_parser_t *p = &b->parser;
	const char *problem = p->problem ? p->problem : "not YAML";

	if (p->error == YAML_MEMORY_ERROR)
		return out_of_memory(b->err);
	/* A reader's error (bytes that are no text) has an offset but no line. */
	if (p->error == YAML_READER_ERROR)
		return yaml_fail(b->err, -EINVAL, p->mark.line + 1,
				 "%s at byte %zu; save the file as UTF-8 text", problem, p->problem_offset);
	return yaml_fail(b->err, -EINVAL, p->problem_mark.line + 1,
			 "%s%s%s; check indentation, quotes and brackets here and in the line before",
			 p->context ? p->context : "", p->context ? ": " : "", problem);
}

static int build_tree(struct builder *b)
{
	yaml_event_type_t type;
	struct yaml_node *root;

	do {
		yaml_event_t event;
		int r;

		if (!yaml_parser_parse(&b->parser, &event))
			return syntax_error(b);
		type = event.type;
		r = on_event(b, &event);
		yaml_event_delete(&event);
		if (r < 0)
			return r;
	} while (type != YAML_STREAM_END_EVENT);
	if (b->twice)
		return -EEXIST;
	return b->doc->root ? 0 : add_node(b, YAML_MAP, 1, NULL, &root);
}

static void builder_done(struct builder *b)
{
	for (unsigned i = 0; i < b->depth; i++)
		free(b->levels[i].key);
	hashmap_done(&b->keys);
	yaml_parser_delete(&b->parser);
}

int yaml_parse_buffer(const char *name, const void *data, size_t len, struct yaml_doc **ret_doc,
		      struct yaml_error *err)
{
	_cleanup_(yaml_doc_freep) struct yaml_doc *doc = NULL;
	struct builder b = { .err = err };
	int r;

	if (len > YAML_MAX_BYTES)
		return yaml_fail(err, -E2BIG, 0, "larger than %d bytes; make the file smaller",
				 YAML_MAX_BYTES);
	doc = calloc(1, sizeof(*doc));
	if (!doc)
		return out_of_memory(err);
	doc->name = strdup(name);
	if (!doc->name || !yaml_parser_initialize(&b.parser))
		return out_of_memory(err);
	b.doc = doc;
	yaml_parser_set_encoding(&b.parser, YAML_UTF8_ENCODING);
	yaml_parser_set_input_string(&b.parser, len > 0 ? data : (const void *)"", len);
	r = build_tree(&b);
	builder_done(&b);
	if (r == 0 || r == -EEXIST)
		*ret_doc = TAKE_PTR(doc);
	return r;
}

/* One buffer of the limit's size: it lives as long as this call. */
static int slurp(const char *path, char **ret_data, size_t *ret_len)
{
	_cleanup_free_ char *data = malloc(YAML_MAX_BYTES + 1);
	int r;

	if (!data)
		return -ENOMEM;
	r = read_file(path, data, YAML_MAX_BYTES + 1, ret_len);
	if (r == 0)
		*ret_data = TAKE_PTR(data);
	return r;
}

int yaml_parse_file(const char *path, struct yaml_doc **ret_doc, struct yaml_error *err)
{
	_cleanup_free_ char *data = NULL;
	size_t len;
	int r = slurp(path, &data, &len);

	if (r == -ENOMEM)
		return out_of_memory(err);
	if (r == -E2BIG)
		return yaml_fail(err, r, 0, "larger than %d bytes; make the file smaller", YAML_MAX_BYTES);
	if (r == -ENOTSUP)
		return yaml_fail(err, r, 0,
				 "not a regular file; name a file that can be read from its begin");
	if (r < 0)
		return yaml_fail(err, r, 0, "cannot be read: %s; check the path and its permissions",
				 strerror(-r));
	return yaml_parse_buffer(path, data, len, ret_doc, err);
}

const struct yaml_node *yaml_get(const struct yaml_node *node, const char *key)
{
	if (!node || node->kind != YAML_MAP)
		return NULL;
	for (const struct yaml_node *child = node->children; child; child = child->next) {
		if (STRV_EQ(child->key, key))
			return child;
	}
	return NULL;
}
