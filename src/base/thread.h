// SPDX-License-Identifier: Apache-2.0
/* Threads of the program's own: none of them gets a signal, and nobody waits for one for ever. */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* @stack_bytes: touched as far as it is used only. -EAGAIN, -ENOMEM. */
int thread_start(size_t stack_bytes, void *(*run)(void *), void *userdata, pthread_t *ret_thread);
/* False: it has not ended within @patience_ns. */
bool thread_join(pthread_t thread, int64_t patience_ns);
