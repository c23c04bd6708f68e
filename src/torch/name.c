// SPDX-License-Identifier: Apache-2.0
#include "torch/name.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/macro.h"
#include "base/text.h"

static bool is_one_of(const char *const *list, size_t n, const char *word, size_t word_n)
{
	for (size_t i = 0; i < n; i++)
		if (strlen(list[i]) == word_n && memcmp(list[i], word, word_n) == 0)
			return true;
	return false;
}

static bool is_overload(const char *word, size_t n)
{
	static const char *const overloads[] = {
#define OVERLOAD(name) name,
#define WHOLE(name)
#include "torch/overloads.def"
#undef OVERLOAD
#undef WHOLE
	};
	const size_t out = strlen("_out");

	if (isupper((unsigned char)*word) || is_one_of(overloads, ARRAY_SIZE(overloads), word, n))
		return true;
	return n > out && memcmp(word + n - out, "_out", out) == 0 &&
	       is_one_of(overloads, ARRAY_SIZE(overloads), word, n - out);
}

static bool is_whole(const char *class, size_t n)
{
	static const char *const whole[] = {
#define OVERLOAD(name)
#define WHOLE(name) name,
#include "torch/overloads.def"
#undef OVERLOAD
#undef WHOLE
	};

	return is_one_of(whole, ARRAY_SIZE(whole), class, n);
}

/* Where the overload begins; 0: there is none. */
static size_t overload_at(const char *class, size_t n)
{
	const size_t out = strlen("_out");

	if (is_whole(class, n))
		return 0;
	if (n > out && memcmp(class + n - out, "_out", out) == 0 && is_whole(class, n - out))
		return n - out + 1;
	for (size_t i = 2; i < n; i++)
		if (class[i - 1] == '_' && is_overload(class + i, n - i))
			return i;
	return 0;
}

static void write_name(const char *class, size_t n, char *name)
{
	size_t at = overload_at(class, n);

	snprintf(name, TORCH_NAME_MAX, "%.*s", (int)n, class);
	if (at > 0 && at < TORCH_NAME_MAX)
		name[at - 1] = '.';
}

/* After @begin; NULL: the symbol begins otherwise. */
static const char *name_after(const char *symbol, const char *begin)
{
	size_t n = strlen(begin);

	return strncmp(symbol, begin, n) == 0 ? symbol + n : NULL;
}

void torch_name(const char *symbol, char name[static TORCH_NAME_MAX])
{
	static const char binding[] = "THPVariable_";
	const char *of_operator = name_after(symbol, "_ZN2at4_ops");
	const char *bound = name_after(symbol, "_ZN5torch8autogradL");
	char *word = NULL;
	size_t n = 0;

	if (of_operator || bound)
		n = strtoul(of_operator ? of_operator : bound, &word, 10);
	if (word && (n == 0 || strnlen(word, MIN(n, (size_t)TORCH_NAME_MAX * 8)) < n))
		word = NULL;
	if (word && of_operator)
		write_name(word, n, name);
	else if (word && n > strlen(binding) && name_after(word, binding))
		snprintf(name, TORCH_NAME_MAX, "%.*s", (int)(n - strlen(binding)), word + strlen(binding));
	else if (strstr(symbol, "THPEngine_run_backward"))
		snprintf(name, TORCH_NAME_MAX, "backward");
	else if (name_after(symbol, "_ZN5torch8autograd6Engine17evaluate_functionE"))
		snprintf(name, TORCH_NAME_MAX, "backward.node");
	else
		snprintf(name, TORCH_NAME_MAX, "%s", symbol);
	utf8_sanitize(name); /* a character may be cut */
}
