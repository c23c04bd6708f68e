// SPDX-License-Identifier: Apache-2.0
#include "fuzz.h"

#include <stdlib.h>

#include "push/queue.h"

/* What a file of the queue holds lies within it, and is what the file's length says. */
int fuzz_one(const uint8_t *data, size_t size)
{
	struct batch batch;

	if (queue_parse((uint8_t *)data, size, &batch) < 0)
		return 0;
	if (batch.n == 0 || batch.data < data || batch.data + batch.n != data + size)
		abort();
	return 0;
}
