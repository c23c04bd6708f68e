// SPDX-License-Identifier: Apache-2.0
/*
 * Threads that receive no signals, and are joined with a timeout.
 */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* @stack_bytes: only the used part becomes resident. -EAGAIN, -ENOMEM. */
int thread_start(size_t stack_bytes, void *(*run)(void *), void *userdata, pthread_t *ret_thread);
/* False: the thread has not ended within @patience_ns. */
bool thread_join(pthread_t thread, int64_t patience_ns);
