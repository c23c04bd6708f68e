// SPDX-License-Identifier: Apache-2.0
/* Names of types of nodes. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "torch/torch.h"

static bool is_identifier(const char *at, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!isalnum((unsigned char)at[i]) && at[i] != '_')
			return false;
	return true;
}

/* One name after the other, each with its length before it. Of templates only torch::autograd::CppNode<T>. */
bool torch_node_name(const char *type, char name[static TORCH_LABEL])
{
	const char *at = type + (*type == '*'), *last = NULL;
	size_t last_n = 0;

	if (*at != 'N')
		return false;
	for (at++; *at >= '1' && *at <= '9'; at += last_n) {
		char *word;

		last_n = strtoul(at, &word, 10);
		if (last_n == 0 || last_n >= TORCH_LABEL || strnlen(word, last_n) < last_n ||
		    !is_identifier(word, last_n))
			return false;
		last = at = word;
	}
	if (!last || (strcmp(at, "E") != 0 && strncmp(type, "N5torch8autograd7CppNodeI", 25) != 0))
		return false;
	memcpy(name, last, last_n);
	name[last_n] = '\0';
	return true;
}
