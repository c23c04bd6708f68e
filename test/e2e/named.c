// SPDX-License-Identifier: Apache-2.0
/* A library whose functions --probe names. Each does something that the compiler cannot take away. */
#include "named.h"

#include <stdlib.h>
#include <string.h>

#define NAMED __attribute__((noinline, visibility("default")))

static volatile int sink;

NAMED int named_leaf(int n, const char *text)
{
	sink += (int)strlen(text);
	return n < 0 ? -1 : 0;
}

NAMED int named_outer(int n, const char *text)
{
	int status = named_leaf(n, text);

	sink += n;
	return status + named_leaf(n, "inner");
}

NAMED int named_recursive(int n)
{
	int below = n > 0 ? named_recursive(n - 1) : 0;

	sink += below;
	return below;
}

NAMED void *named_alloc(unsigned long size)
{
	sink++;
	return size > 100 ? NULL : malloc(size);
}

NAMED int cpp_named(int n)
{
	sink += n;
	return sink;
}
