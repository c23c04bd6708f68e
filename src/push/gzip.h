// SPDX-License-Identifier: Apache-2.0
/* Messages of protobuf, packed by gzip as they are made, so that they are never whole unpacked. */
#pragma once

#include <protobuf-c/protobuf-c.h>

#include "push/batch.h"

/* Sets data and n of *ret_batch, and nothing else. -EFBIG: it is larger than BATCH_BYTES_MAX; -ENOMEM. */
int gzip_message(const ProtobufCMessage *message, struct batch *ret_batch);
