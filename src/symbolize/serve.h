// SPDX-License-Identifier: Apache-2.0
/* The helper that names kernels: the symbolizer, and the messages that it gets and sends. */
#pragma once

#include <linux/capability.h>

#include "helper/confine.h"

/* Others' memory and mappings; files that only they may open, with their rights. */
#define SYMBOLS_CAPABILITIES                                                    \
	(CONFINE_CAPABILITY(SYS_PTRACE) | CONFINE_CAPABILITY(DAC_READ_SEARCH) | \
	 CONFINE_CAPABILITY(CHECKPOINT_RESTORE) | CONFINE_CAPABILITY(SETUID) | CONFINE_CAPABILITY(SETGID))

/* Serves until the owner closes the socket. Returns the exit status. */
int symbols_serve(int channel);
