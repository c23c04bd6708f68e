// SPDX-License-Identifier: Apache-2.0
/* Queries are the texts called "expr" and "query", wherever they stand: boards have rows within rows. */
#include "cmd/lint/lint.h"

#include <errno.h>
#include <jansson.h>
#include <string.h>

#include "base/text.h"
#include "base/yaml.h"

/* What a query belongs to: the innermost thing around it that has a name. */
struct owner_name {
	const char *title;
	bool records;
};

struct query_reader {
	lint_take_query *take;
	void *userdata;
};

static const char *const query_keys[] = { "expr", "query" };
static const char *const title_keys[] = { "alert", "record", "title", "name" };

static bool is_query(const char *key)
{
	for (size_t i = 0; i < ARRAY_SIZE(query_keys); i++)
		if (STRV_EQ(query_keys[i], key))
			return true;
	return false;
}

static struct owner_name owner_of(const char *key, const char *title)
{
	return (struct owner_name){ title, STRV_EQ(key, "record") };
}

/* Recursion is as deep as the parser lets documents be. */
static void read_json(const struct query_reader *reader, json_t *value, struct owner_name owner)
{
	const char *key;
	json_t *child;
	const char *type = json_string_value(json_object_get(value, "type"));
	size_t i;

	if (type && STRV_EQ(type, "datasource")) /* a variable whose "query" is a kind of source */
		return;
	for (i = 0; i < ARRAY_SIZE(title_keys); i++) {
		const char *text = json_string_value(json_object_get(value, title_keys[i]));

		if (text && *text) {
			owner = owner_of(title_keys[i], text);
			break;
		}
	}
	json_array_foreach(value, i, child)
		read_json(reader, child, owner);
	json_object_foreach(value, key, child) {
		if (json_is_string(child) && is_query(key)) {
			struct lint_query query = { owner.title, owner.records, 0, json_string_value(child) };

			reader->take(&query, reader->userdata);
		} else {
			read_json(reader, child, owner);
		}
	}
}

static void read_yaml(const struct query_reader *reader, const struct yaml_node *node,
		      struct owner_name owner)
{
	for (size_t i = 0; i < ARRAY_SIZE(title_keys); i++) {
		const struct yaml_node *named = yaml_get(node, title_keys[i]);

		if (named && named->scalar && *named->scalar) {
			owner = owner_of(title_keys[i], named->scalar);
			break;
		}
	}
	for (const struct yaml_node *child = node->children; child; child = child->next) {
		if (child->scalar && child->key && is_query(child->key)) {
			struct lint_query query = { owner.title, owner.records, child->line, child->scalar };

			reader->take(&query, reader->userdata);
		} else {
			read_yaml(reader, child, owner);
		}
	}
}

static int lint_json(const struct query_reader *reader, const char *data, size_t n, struct strbuf *why)
{
	json_error_t err;
	json_t *root = json_loadb(data, n, 0, &err);

	if (!root) {
		strbuf_addf(why, "line %d: %s", err.line, err.text);
		return -EBADMSG;
	}
	read_json(reader, root, (struct owner_name){ "", false });
	json_decref(root);
	return 0;
}

static int lint_yaml(const struct query_reader *reader, const char *name, const char *data, size_t n,
		     struct strbuf *why)
{
	_cleanup_(yaml_doc_freep) struct yaml_doc *doc = NULL;
	struct yaml_error err;
	int r = yaml_parse_buffer(name, data, n, &doc, &err);

	if (r < 0 && r != -EEXIST) {
		strbuf_addf(why, "line %d: %s", err.line, err.message);
		return r == -ENOMEM ? r : -EBADMSG;
	}
	read_yaml(reader, doc->root, (struct owner_name){ "", false });
	return 0;
}

int lint_read(const char *name, const char *data, size_t n, lint_take_query *take, void *userdata,
	      struct strbuf *why)
{
	const struct query_reader reader = { take, userdata };
	size_t at = 0;

	if (n > LINT_FILE_MAX) {
		strbuf_adds(why, "it has more than 4 MiB");
		return -EBADMSG;
	}
	while (at < n && strchr(" \t\r\n", data[at]) && data[at])
		at++;
	return at < n && data[at] == '{' ? lint_json(&reader, data, n, why) :
					   lint_yaml(&reader, name, data, n, why);
}
