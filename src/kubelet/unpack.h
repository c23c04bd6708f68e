// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <protobuf-c/protobuf-c.h>
#include <stddef.h>
#include <stdint.h>

enum { UNPACK_MAX = 16 << 20 }; /* bytes of memory that a message may become */

/*
 * A message of this type, which unpack_free() frees; NULL: it is none, or becomes larger than UNPACK_MAX:
 * two bytes can ask for a hundred.
 */
void *unpack(const ProtobufCMessageDescriptor *type, const uint8_t *data, size_t n);
void unpack_free(void *message);
