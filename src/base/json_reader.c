// SPDX-License-Identifier: Apache-2.0
#include "base/json_reader.h"

#include <errno.h>
#include <string.h>

#include <yajl/yajl_parse.h>

enum {
	NO_NODE = -1,
	FEED_MAX = 16 << 10, /* so much more than JSON_TOKEN_MAX may be kept */
};

/* The paths as a tree of their segments; node 0 is the document. */
struct node {
	const char *segment;
	size_t n;
	int id; /* 0: not told itself */
	int child, sibling; /* NO_NODE */
};

struct json_level {
	int node; /* that the map or list is at; NO_NODE */
	bool list;
	int pending; /* of a map: where its next value is */
};

struct json_reader {
	struct json_ops ops;
	void *userdata;
	yajl_handle yajl;
	struct node nodes[JSON_NODES_MAX];
	int nodes_n;
	struct json_level levels[JSON_DEPTH_MAX];
	int depth;
	char key[JSON_KEY_MAX];
	size_t quiet; /* bytes since the last token ended */
	int error;
};

void json_copy_text(char *to, size_t size, const struct json_value *value)
{
	to[0] = '\0';
	if (value->kind != JSON_VALUE_TEXT || value->n >= size || memchr(value->text, 0, value->n))
		return;
	memcpy(to, value->text, value->n);
	to[value->n] = '\0';
}

/* ---- paths ---- */

static bool segment_is(const struct node *node, const char *segment, size_t n)
{
	return node->n == n && memcmp(node->segment, segment, n) == 0;
}

static int child_of(const struct json_reader *reader, int parent, const char *segment, size_t n)
{
	int found = parent == NO_NODE ? NO_NODE : reader->nodes[parent].child;

	while (found != NO_NODE && !segment_is(&reader->nodes[found], segment, n))
		found = reader->nodes[found].sibling;
	return found;
}

static int add_segment(struct json_reader *reader, int parent, const char *segment, size_t n)
{
	int at = child_of(reader, parent, segment, n);

	if (at != NO_NODE)
		return at;
	if (reader->nodes_n == JSON_NODES_MAX)
		return -E2BIG;
	at = reader->nodes_n++;
	reader->nodes[at] = (struct node){
		.segment = segment, .n = n, .child = NO_NODE, .sibling = reader->nodes[parent].child
	};
	reader->nodes[parent].child = at;
	return at;
}

/* Returns the path's node. */
static int add_path(struct json_reader *reader, int at, const char *path)
{
	while (at >= 0 && *path) {
		size_t n = strcspn(path, " ");

		at = add_segment(reader, at, path, n);
		path += n + (path[n] == ' ');
	}
	return at;
}

int json_reader_add(struct json_reader *reader, const char *prefix, const struct json_path *paths, size_t n)
{
	int below = add_path(reader, 0, prefix);

	for (size_t i = 0; i < n; i++) {
		int at = below < 0 ? below : add_path(reader, below, paths[i].path);

		if (at < 0)
			return at;
		reader->nodes[at].id = paths[i].id;
	}
	return 0;
}

/* ---- what the parser calls; 0 makes it stop ---- */

static int stop_if(struct json_reader *reader, int error)
{
	reader->error = error;
	return error == 0;
}

/* Where the value is that comes now. */
static int node_of_value(struct json_reader *reader)
{
	struct json_level *top = reader->depth ? &reader->levels[reader->depth - 1] : NULL;

	reader->quiet = 0;
	if (!top)
		return 0;
	return top->list ? child_of(reader, top->node, "[]", 2) : top->pending;
}

static int tell_value(struct json_reader *reader, struct json_value value)
{
	int node = node_of_value(reader);

	if (node == NO_NODE || reader->nodes[node].id == 0)
		return 1;
	value.key = reader->key;
	return stop_if(reader, reader->ops.value(reader->nodes[node].id, &value, reader->userdata));
}

static int on_null(void *userdata)
{
	return tell_value(userdata, (struct json_value){ .kind = JSON_VALUE_NULL });
}

static int on_bool(void *userdata, int yes)
{
	return tell_value(userdata, (struct json_value){ .kind = JSON_VALUE_BOOL, .yes = yes });
}

static int on_number(void *userdata, const char *text, size_t n)
{
	return tell_value(userdata, (struct json_value){ .kind = JSON_VALUE_NUMBER, .text = text, .n = n });
}

static int on_string(void *userdata, const unsigned char *text, size_t n)
{
	return tell_value(userdata,
			  (struct json_value){ .kind = JSON_VALUE_TEXT, .text = (const char *)text, .n = n });
}

static int on_key(void *userdata, const unsigned char *key, size_t n)
{
	struct json_reader *reader = userdata;
	struct json_level *top = &reader->levels[reader->depth - 1];

	reader->quiet = 0;
	top->pending = child_of(reader, top->node, (const char *)key, n);
	if (top->pending == NO_NODE)
		top->pending = child_of(reader, top->node, "*", 1);
	if (top->pending != NO_NODE) {
		n = MIN(n, sizeof(reader->key) - 1);
		memcpy(reader->key, key, n);
		reader->key[n] = '\0';
	}
	return 1;
}

static int enter(struct json_reader *reader, bool list)
{
	int node = node_of_value(reader);
	int id = node == NO_NODE ? 0 : reader->nodes[node].id;

	if (reader->depth == JSON_DEPTH_MAX)
		return stop_if(reader, -E2BIG);
	reader->levels[reader->depth++] =
		(struct json_level){ .node = node, .list = list, .pending = NO_NODE };
	return !id || !reader->ops.begin || stop_if(reader, reader->ops.begin(id, reader->userdata));
}

static int leave(void *userdata)
{
	struct json_reader *reader = userdata;
	int node = reader->levels[--reader->depth].node;
	int id = node == NO_NODE ? 0 : reader->nodes[node].id;

	reader->quiet = 0;
	return !id || !reader->ops.end || stop_if(reader, reader->ops.end(id, reader->userdata));
}

static int on_map(void *userdata)
{
	return enter(userdata, false);
}

static int on_list(void *userdata)
{
	return enter(userdata, true);
}

static const yajl_callbacks callbacks = {
	.yajl_null = on_null,
	.yajl_boolean = on_bool,
	.yajl_number = on_number,
	.yajl_string = on_string,
	.yajl_start_map = on_map,
	.yajl_map_key = on_key,
	.yajl_end_map = leave,
	.yajl_start_array = on_list,
	.yajl_end_array = leave,
};

/* ---- life ---- */

int json_reader_reset(struct json_reader *reader)
{
	if (reader->yajl)
		yajl_free(reader->yajl);
	reader->depth = 0;
	reader->quiet = 0;
	reader->error = 0;
	reader->yajl = yajl_alloc(&callbacks, NULL, reader);
	if (!reader->yajl)
		return -ENOMEM;
	yajl_config(reader->yajl, yajl_allow_multiple_values, 1);
	return 0;
}

int json_reader_new(const struct json_ops *ops, void *userdata, struct json_reader **ret_reader)
{
	_cleanup_(json_reader_freep) struct json_reader *reader = calloc(1, sizeof(*reader));

	if (!reader)
		return -ENOMEM;
	reader->ops = *ops;
	reader->userdata = userdata;
	reader->nodes[0] = (struct node){ .segment = "", .child = NO_NODE, .sibling = NO_NODE };
	reader->nodes_n = 1;
	if (json_reader_reset(reader) < 0)
		return -ENOMEM;
	*ret_reader = TAKE_PTR(reader);
	return 0;
}

void json_reader_free(struct json_reader *reader)
{
	if (!reader)
		return;
	if (reader->yajl)
		yajl_free(reader->yajl);
	free(reader);
}

static int feed_piece(struct json_reader *reader, const char *data, size_t n)
{
	reader->quiet += n;
	if (yajl_parse(reader->yajl, (const unsigned char *)data, n) != yajl_status_ok)
		return reader->error ? reader->error : -EBADMSG;
	return reader->quiet > JSON_TOKEN_MAX ? -EFBIG : 0;
}

int json_feed(struct json_reader *reader, const char *data, size_t n)
{
	int r = reader->yajl ? 0 : -ENOMEM;

	while (r == 0 && n > 0) {
		size_t piece = MIN(n, (size_t)FEED_MAX);

		r = feed_piece(reader, data, piece);
		data += piece;
		n -= piece;
	}
	return r;
}

int json_end(const struct json_reader *reader)
{
	return reader->depth == 0 ? 0 : -EBADMSG;
}
