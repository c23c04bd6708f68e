// SPDX-License-Identifier: Apache-2.0
#include "kube/node_labels.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/strbuf.h"
#include "base/text.h"
#include "base/json_reader.h"
#include "kube/protocol.h"
#include "kube/url.h"

#define AGAIN_NS (600 * NSEC_PER_SEC)
#define FAILED_NS (60 * NSEC_PER_SEC)

struct node_labels {
	struct client *client;
	struct row_list *table;
	char *keys; /* ",a,b," */
	char *path;
	struct request *request;
	struct json_reader *reader;
	struct row_list coming;
	int64_t due_ns; /* monotonic clock */
	uint64_t digest;
	char error[200];
};

static bool is_wanted_key(const struct node_labels *labels, const char *key)
{
	char quoted[JSON_KEY_MAX + 2];

	snprintf(quoted, sizeof(quoted), ",%s,", key);
	return !strchr(key, ',') && strstr(labels->keys, quoted);
}

static int on_label(_unused_ int id, const struct json_value *value, void *userdata)
{
	struct node_labels *labels = userdata;
	struct kube_label *row;

	if (value->kind != JSON_VALUE_TEXT || !is_wanted_key(labels, value->key))
		return 0;
	row = row_list_add(&labels->coming);
	if (row) {
		PUT_TEXT(row->key, value->key);
		put_text(row->value, sizeof(row->value), value->text, value->n);
	}
	return 0;
}

static int on_labels_data(const char *data, size_t n, void *userdata)
{
	struct node_labels *labels = userdata;

	return json_feed(labels->reader, data, n);
}

static void on_labels_done(const struct outcome *outcome, void *userdata)
{
	struct node_labels *labels = userdata;
	struct row_list swapped = *labels->table;
	bool answered = !outcome->error && outcome->status == 200;

	labels->request = NULL;
	/* Of a part of an answer it is not known which labels the rest has. */
	if (!answered || json_end(labels->reader) < 0) {
		snprintf(labels->error, sizeof(labels->error), "the node's labels: %.170s",
			 answered ? "what it sends is not whole" : outcome->words);
		labels->due_ns = clock_mono_ns() + MAX(FAILED_NS, outcome->retry_after_ns);
		return;
	}
	labels->error[0] = '\0';
	labels->due_ns = clock_mono_ns() + AGAIN_NS;
	*labels->table = labels->coming;
	labels->coming = swapped;
	labels->digest = row_list_digest(labels->table);
}

int64_t node_labels_step(struct node_labels *labels, int64_t now_ns)
{
	static const struct request_ops ops = { on_labels_data, on_labels_done };

	if (!labels || labels->request)
		return INT64_MAX;
	if (now_ns < labels->due_ns)
		return labels->due_ns;
	row_list_clear(&labels->coming);
	labels->due_ns = now_ns + FAILED_NS;
	if (json_reader_reset(labels->reader) == 0)
		(void)client_get(labels->client, labels->path,
				 "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1, "
				 "application/json",
				 &REQUEST_LIMITS_SHORT, &ops, labels, &labels->request);
	return labels->due_ns;
}

uint64_t node_labels_digest(const struct node_labels *labels)
{
	return labels ? labels->digest : 0;
}

const char *node_labels_error(const struct node_labels *labels)
{
	return labels ? labels->error : "";
}

/* "a, b" becomes ",a,b,". */
static char *quote_keys(const char *keys)
{
	char *quoted = calloc(1, strlen(keys) + 3), *to = quoted;

	if (!quoted)
		return NULL;
	*to++ = ',';
	for (; *keys; keys++)
		if (*keys != ' ')
			*to++ = *keys;
	*to = ',';
	return quoted;
}

int node_labels_new(struct client *client, const char *node, const char *keys, struct row_list *table,
		    struct node_labels **ret_labels)
{
	static const struct json_ops ops = { .value = on_label };
	static const struct json_path path = { "metadata labels *", 1 };
	_cleanup_(node_labels_freep) struct node_labels *labels = NULL;
	struct strbuf url;

	if (!*keys || !url_is_segment(node))
		return 0;
	labels = calloc(1, sizeof(*labels));
	if (!labels)
		return -ENOMEM;
	labels->client = client;
	labels->table = table;
	labels->coming = (struct row_list){ .size = table->size, .max = table->max };
	labels->keys = quote_keys(keys);
	strbuf_init(&url, 0);
	strbuf_adds(&url, "/api/v1/nodes/");
	url_add(&url, node);
	labels->path = strbuf_take(&url);
	if (!labels->keys || !labels->path || json_reader_new(&ops, labels, &labels->reader) < 0 ||
	    json_reader_add(labels->reader, "", &path, 1) < 0)
		return -ENOMEM;
	*ret_labels = TAKE_PTR(labels);
	return 0;
}

void node_labels_free(struct node_labels *labels)
{
	if (!labels)
		return;
	client_cancel(labels->client, labels->request);
	json_reader_free(labels->reader);
	row_list_done(&labels->coming);
	free(labels->keys);
	free(labels->path);
	free(labels);
}
