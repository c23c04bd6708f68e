// SPDX-License-Identifier: Apache-2.0
#include "view/labels.h"

#include <errno.h>
#include <stdlib.h>

int labels_init(struct labels *labels, uint32_t n)
{
	*labels = (struct labels){ 0 };
	strbuf_init(&labels->text, 0);
	labels->at = calloc(n > 0 ? n : 1, sizeof(*labels->at));
	return labels->at ? 0 : -ENOMEM;
}

void labels_done(struct labels *labels)
{
	strbuf_done(&labels->text);
	free(labels->at);
	*labels = (struct labels){ 0 };
}

void labels_add(struct labels *labels, const struct strbuf *entry)
{
	labels->at[labels->n++] = labels->text.len;
	if (entry->failed)
		labels->text.failed = true;
	strbuf_add(&labels->text, entry->data, entry->len + 1);
}

int labels_check(const struct labels *labels)
{
	return labels->text.failed ? -ENOMEM : 0;
}
