// SPDX-License-Identifier: Apache-2.0
#include "fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "model/device_ref.h"

/*
 * What is taken names a device in one way, by a text that ends and is printable; what is not leaves all as
 * it was.
 */
int fuzz_one(const uint8_t *data, size_t size)
{
	struct device_ref ref, before;
	char text[512];
	size_t n = size < sizeof(text) - 1 ? size : sizeof(text) - 1;
	bool replica;

	memcpy(text, data, n);
	text[n] = '\0';
	memset(&ref, 0xa5, sizeof(ref));
	before = ref;
	if (device_ref_parse(text, &ref, &replica) < 0) {
		if (memcmp(&ref, &before, sizeof(ref)) != 0)
			abort();
		return 0;
	}
	if (ref.kind > DEVICE_BY_MINOR || !memchr(ref.uuid, 0, sizeof(ref.uuid)) ||
	    !text_is_printable(ref.uuid))
		abort();
	if ((ref.kind == DEVICE_BY_UUID) != (ref.uuid[0] != '\0'))
		abort();
	if ((ref.kind == DEVICE_BY_INDEX || ref.kind == DEVICE_BY_MINOR) != (ref.index != DEVICE_REF_NO))
		abort();
	if (ref.mig != DEVICE_REF_NO && ref.kind != DEVICE_BY_INDEX)
		abort();
	return 0;
}
