// SPDX-License-Identifier: Apache-2.0
#include "model/node_tag.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "base/macro.h"
#include "base/text.h"
#include "model/private.h"

#define RESERVED "gpu_" /* keys of what is known of the GPUs */

static bool is_key(const char *key, size_t n)
{
	if (n == 0 || n >= sizeof(((struct node_tag *)0)->key) ||
	    strncmp(key, RESERVED, sizeof(RESERVED) - 1) == 0)
		return false;
	for (size_t i = 0; i < n; i++)
		if (!isalnum((unsigned char)key[i]) && !strchr("_./-", key[i]))
			return false;
	return true;
}

static int parse_one(const char *text, size_t n, struct node_tag *ret_tag)
{
	const char *colon = memchr(text, ':', n);
	struct node_tag tag = { 0 };
	size_t key_n, value_n;

	if (!colon)
		return -EINVAL;
	key_n = (size_t)(colon - text);
	value_n = n - key_n - 1;
	if (!is_key(text, key_n) || value_n == 0 || value_n >= sizeof(tag.value))
		return -EINVAL;
	memcpy(tag.key, text, key_n);
	memcpy(tag.value, colon + 1, value_n);
	if (!text_is_printable(tag.value))
		return -EINVAL;
	*ret_tag = tag;
	return 0;
}

int node_tags_parse(const char *text, struct node_tag *ret_tags, uint32_t *ret_n)
{
	uint32_t n = 0;

	while (*text) {
		size_t length = strcspn(text, ",");
		int r;

		if (n == NODE_TAGS_MAX)
			return -E2BIG;
		r = parse_one(text, length, &ret_tags[n]);
		if (r < 0)
			return r;
		for (uint32_t i = 0; i < n; i++)
			if (STRV_EQ(ret_tags[i].key, ret_tags[n].key))
				return -EINVAL;
		n++;
		text += length;
		if (*text == ',' && !*++text)
			return -EINVAL; /* a comma at the end */
	}
	*ret_n = n;
	return 0;
}

void model_set_tags(struct model *model, const struct node_tag *tags, uint32_t n)
{
	model->tags_n = MIN(n, (uint32_t)NODE_TAGS_MAX);
	if (model->tags_n)
		memcpy(model->tags, tags, model->tags_n * sizeof(model->tags[0]));
}
