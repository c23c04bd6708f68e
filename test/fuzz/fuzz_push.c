// SPDX-License-Identifier: Apache-2.0
#include "fuzz.h"

#include <stdlib.h>

#include "push/queue.h"

/* What a file of the queue holds lies within it, and is what the file's length says. */
int fuzz_one(const uint8_t *data, size_t size)
{
	const uint8_t *batch;
	size_t n;

	if (queue_parse(data, size, &batch, &n) < 0)
		return 0;
	if (n == 0 || batch < data || batch + n != data + size)
		abort();
	return 0;
}
