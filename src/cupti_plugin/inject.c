// SPDX-License-Identifier: Apache-2.0
#include "cupti_plugin/plugin.h"

#include <errno.h>
#include <pthread.h>

#define EXPORTED __attribute__((visibility("default")))

/* The CUDA driver calls it once it is initialised. */
EXPORTED int InitializeInjection(void);

int InitializeInjection(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	int error = errno;

	pthread_once(&once, slices_start);
	errno = error;
	return 1;
}
