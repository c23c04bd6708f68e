// SPDX-License-Identifier: Apache-2.0
/*
 * The configuration file: sections and keys of the option table, with scalar values.
 */
#include "config/options.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/yaml.h"
#include "config/nearest.h"

struct reader {
	struct options *options;
	const char *name; /* of the file */
	struct strbuf *errors;
};

static const char *const kind_names[] = {
	[YAML_SCALAR_N] = "a single value",
	[YAML_MAP] = "a group of keys",
	[YAML_LIST] = "a list",
};

static void complain(const struct reader *reader, int line)
{
	strbuf_adds(reader->errors, reader->name);
	if (line > 0)
		strbuf_addf(reader->errors, ":%d", line);
	strbuf_adds(reader->errors, ": ");
}

/*
 * The file may be any that somebody named to be shown its lines, such as /etc/shadow: a key is quoted only if
 * a known one is near.
 */
static void complain_unknown(const struct reader *reader, const struct yaml_node *node, const char *section,
			     const struct nearest *nearest)
{
	complain(reader, node->line);
	if (nearest->best)
		strbuf_addf(reader->errors, "unknown key \"%.80s\"%s%s: did you mean \"%s\"?\n", node->key,
			    *section ? " in " : "", section, nearest->best);
	else
		strbuf_addf(reader->errors, "unknown key%s%s: remove it; gpusonde.yaml(5) lists all keys\n",
			    *section ? " in " : "", section);
}

static void unknown_section(const struct reader *reader, const struct yaml_node *node)
{
	const struct option *dotted = option_by_key(node->key);
	struct nearest nearest;

	if (dotted) {
		complain(reader, node->line);
		strbuf_addf(reader->errors,
			    "unknown key \"%s\": write the key %s below %s:, on a line of its own\n",
			    node->key, dotted->name, dotted->section);
		return;
	}
	nearest_init(&nearest, node->key);
	for (unsigned i = 0; i < section_count; i++)
		nearest_offer(&nearest, section_table[i].name);
	complain_unknown(reader, node, "", &nearest);
}

static void unknown_key(const struct reader *reader, const char *section, const struct yaml_node *node)
{
	struct nearest nearest;

	nearest_init(&nearest, node->key);
	for (unsigned i = 0; i < OPTIONS; i++)
		if (STRV_EQ(option_table[i].section, section))
			nearest_offer(&nearest, option_table[i].name);
	complain_unknown(reader, node, section, &nearest);
}

static int read_key(const struct reader *reader, const char *section, const struct yaml_node *node)
{
	char key[2 * OPTION_NAME_MAX], where[4096 + 16];
	const struct option *option;

	snprintf(key, sizeof(key), "%s.%s", section, node->key);
	option = option_by_key(key);
	if (!option) {
		unknown_key(reader, section, node);
		return 0;
	}
	if (node->kind != YAML_SCALAR_N) {
		complain(reader, node->line);
		strbuf_addf(reader->errors, "%s needs a single value, not %s: it must be ", key,
			    kind_names[node->kind]);
		option_describe(option, reader->errors);
		strbuf_addc(reader->errors, '\n');
		return 0;
	}
	snprintf(where, sizeof(where), "%s:%d", reader->name, node->line);
	return options_set(reader->options, option, node->scalar, ORIGIN_FILE, where, reader->errors);
}

static int read_section(const struct reader *reader, const struct yaml_node *node)
{
	bool known = false;
	int r = 0;

	for (unsigned i = 0; i < section_count; i++)
		known = known || STRV_EQ(section_table[i].name, node->key);
	if (!known) {
		unknown_section(reader, node);
		return 0;
	}
	/* "section:" with every key commented out is an empty scalar */
	if (node->kind != YAML_MAP && !(node->kind == YAML_SCALAR_N && node->scalar[0] == 0)) {
		complain(reader, node->line);
		strbuf_addf(reader->errors,
			    "%s needs keys below it, not %s: put each key on a line of its own, indented\n",
			    node->key, kind_names[node->kind]);
		return 0;
	}
	for (const struct yaml_node *child = node->children; r == 0 && child; child = child->next)
		r = read_key(reader, node->key, child);
	return r;
}

static int read_document(const struct reader *reader, const struct yaml_doc *doc)
{
	int r = 0;

	if (doc->root->kind != YAML_MAP) {
		complain(reader, doc->root->line);
		strbuf_adds(
			reader->errors,
			"the file must begin with a section such as \"http:\"; gpusonde.yaml(5) shows one\n");
		return 0;
	}
	for (const struct yaml_node *node = doc->root->children; r == 0 && node; node = node->next)
		r = read_section(reader, node);
	return r;
}

static int take(const struct reader *reader, int r, const struct yaml_doc *doc, const struct yaml_error *err)
{
	if (r == 0)
		return read_document(reader, doc);
	if (r == -ENOMEM)
		return r;
	complain(reader, err->line);
	strbuf_addf(reader->errors, "%s\n", err->message);
	return r == -EEXIST ? read_document(reader, doc) : 0;
}

int options_from_file(struct options *options, const char *path, struct strbuf *errors)
{
	_cleanup_(yaml_doc_freep) struct yaml_doc *doc = NULL;
	struct reader reader = { options, path, errors };
	struct yaml_error err = { 0 };
	char *file = strdup(path);

	if (!file)
		return -ENOMEM;
	free(options->file);
	options->file = file;
	int r = yaml_parse_file(path, &doc, &err);

	return take(&reader, r, doc, &err);
}

int options_from_yaml(struct options *options, const char *name, const void *text, size_t length,
		      struct strbuf *errors)
{
	_cleanup_(yaml_doc_freep) struct yaml_doc *doc = NULL;
	struct reader reader = { options, name, errors };
	struct yaml_error err = { 0 };
	int r = yaml_parse_buffer(name, text, length, &doc, &err);

	return take(&reader, r, doc, &err);
}
