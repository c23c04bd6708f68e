// SPDX-License-Identifier: Apache-2.0
#include "fuzz.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "torch/name.h"
#include "torch/torch.h"

/* A name is text, the same each time, and no longer than the symbol. */
static void check_operator(const char *symbol)
{
	char name[TORCH_NAME_MAX], again[TORCH_NAME_MAX];
	size_t n;

	torch_name(symbol, name);
	torch_name(symbol, again);
	n = strnlen(name, sizeof(name));
	if (n == sizeof(name) || !utf8_valid(name, n) || strcmp(name, again) != 0)
		abort();
	/* What is not understood is the symbol, in which what is no text is replaced by longer characters. */
	if (n > 3 * strlen(symbol) && strcmp(name, "backward.node") != 0)
		abort();
}

/* A name of a type is an identifier, and a part of what it was made of; or nothing is said. */
static void check_node(const char *type)
{
	char name[TORCH_LABEL] = "unsaid";

	if (!torch_node_name(type, name)) {
		if (strcmp(name, "unsaid") != 0)
			abort();
		return;
	}
	if (strnlen(name, sizeof(name)) == sizeof(name) || !*name || !strstr(type, name))
		abort();
	for (const char *c = name; *c; c++)
		if (!isalnum((unsigned char)*c) && *c != '_')
			abort();
}

/* The input as a symbol of an operator, and as the name of a node's type in C++. */
int fuzz_one(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 1);

	if (!text)
		abort();
	memcpy(text, data, size);
	text[size] = '\0';
	check_operator(text);
	check_node(text);
	free(text);
	return 0;
}
