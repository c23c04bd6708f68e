// SPDX-License-Identifier: Apache-2.0
#include "kubelet/unpack.h"

#include <stdlib.h>

#include "base/macro.h"

/*
 * Counts what a message takes while it is unpacked. Not what is freed meanwhile, so that work is bounded,
 * too.
 */
static void *take(void *userdata, size_t n)
{
	size_t *taken = userdata;

	if (n > UNPACK_MAX - *taken)
		return NULL;
	*taken += n;
	return malloc(n);
}

static void give_back(_unused_ void *userdata, void *memory)
{
	free(memory);
}

void *unpack(const ProtobufCMessageDescriptor *type, const uint8_t *data, size_t n)
{
	size_t taken = 0;
	ProtobufCAllocator allocator = { take, give_back, &taken };

	return protobuf_c_message_unpack(type, &allocator, n, data);
}

void unpack_free(void *message)
{
	size_t taken = 0;
	ProtobufCAllocator allocator = { take, give_back, &taken };

	if (message)
		protobuf_c_message_free_unpacked(message, &allocator);
}
