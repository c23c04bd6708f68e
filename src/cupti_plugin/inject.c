// SPDX-License-Identifier: Apache-2.0
#include "cupti_plugin/plugin.h"

#include <pthread.h>
#include <stdlib.h>

#define EXPORTED __attribute__((visibility("default")))

/* The CUDA driver calls it once it is initialised. */
EXPORTED int InitializeInjection(void);

static void inject_once(void)
{
	slices_start();
	/* After CUPTI is loaded, so that it is still there. */
	atexit(slices_end);
}

int InitializeInjection(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, inject_once);
	return 1;
}
