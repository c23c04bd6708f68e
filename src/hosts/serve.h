// SPDX-License-Identifier: Apache-2.0
/* gpusonde-hosts: answers rounds until its owner ends. */
#pragma once

#include "hosts/protocol.h"

/* The first message. 1: the owner has ended. -EPROTONOSUPPORT: it is of another version; -errno. */
int hosts_receive_begin(int channel, struct hosts_begin *ret_begin);
/* 1: the owner has ended. -errno. */
int hosts_serve(int channel, const struct hosts_begin *begin);
