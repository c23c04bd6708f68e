// SPDX-License-Identifier: Apache-2.0
#include "push/batch.h"

#include <errno.h>
#include <stdlib.h>

void batch_done(struct batch *batch)
{
	free(batch->data);
	*batch = (struct batch){ 0 };
}

int batches_add(struct batches *batches, struct batch *batch)
{
	if (batches->n == BATCHES_MAX) {
		batch_done(batch);
		return -EFBIG;
	}
	batches->list[batches->n++] = *batch;
	*batch = (struct batch){ 0 };
	return 0;
}

void batches_done(struct batches *batches)
{
	while (batches->n > 0)
		batch_done(&batches->list[--batches->n]);
}
