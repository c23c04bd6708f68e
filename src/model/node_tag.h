// SPDX-License-Identifier: Apache-2.0
/*
 * Tags of the node that somebody gave it: what the configuration says, and labels of a cluster's node. What
 * is known of its GPUs is a tag, too, but made of the snapshot (view/tags.h).
 */
#pragma once

#include <stdint.h>

enum { NODE_NAME_MAX = 254 }; /* 253 bytes, as of any object of Kubernetes, and NUL */
enum { NODE_TAGS_MAX = 64 };

struct node_tag {
	char key[128], value[128]; /* valid UTF-8 */
};

/*
 * Parses "key:value,key:value": keys of letters, digits, '_', '.', '/' and '-', not beginning with "gpu_",
 * each once; values are not empty. *ret_n of @ret_tags, of which there are NODE_TAGS_MAX. -EINVAL, -E2BIG:
 * too many.
 */
int node_tags_parse(const char *text, struct node_tag *ret_tags, uint32_t *ret_n);
