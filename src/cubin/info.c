// SPDX-License-Identifier: Apache-2.0
#include "cubin/private.h"

#include <string.h>

enum attribute {
#define ATTRIBUTE(number_, name_) ATTRIBUTE_##name_ = number_,
#include "cubin/eiattr.def"
#undef ATTRIBUTE
};

/*
 * Formats of an attribute's value: none, or 8 or 16 bits in the attribute's first word, or a size there,
 * followed by that many bytes.
 */
enum format { FORMAT_NONE = 1, FORMAT_BYTE, FORMAT_HALF, FORMAT_SIZED };

struct attribute_value {
	uint8_t number;
	uint32_t value; /* of the short formats */
	const uint8_t *bytes;
	size_t n;
};

/* 1: one more; 0: the end; -1: they end in the middle of one. */
static int next(const uint8_t **at, const uint8_t *end, struct attribute_value *ret)
{
	const uint8_t *p = *at;
	size_t n = 0;

	if (p == end)
		return 0;
	if (end - p < 4 || p[0] < FORMAT_NONE || p[0] > FORMAT_SIZED)
		return -1;
	*ret = (struct attribute_value){ .number = p[1],
					 .value = p[2] | (uint32_t)p[3] << 8,
					 .bytes = p + 4 };
	if (p[0] == FORMAT_BYTE)
		ret->value &= 0xff;
	if (p[0] == FORMAT_SIZED)
		n = ret->n = ret->value;
	if ((size_t)(end - p) < 4 + n)
		return -1;
	*at = p + 4 + n;
	return 1;
}

static bool words(const struct attribute_value *attribute, uint32_t *words, size_t n)
{
	if (attribute->n < n * sizeof(*words))
		return false;
	memcpy(words, attribute->bytes, n * sizeof(*words));
	return true;
}

static int64_t threads(const uint32_t shape[3])
{
	uint64_t n = (uint64_t)shape[0] * shape[1];

	return __builtin_mul_overflow(n, shape[2], &n) || n > INT64_MAX ? -1 : (int64_t)n;
}

bool info_of_kernel(const uint8_t *bytes, size_t n, struct facts *facts)
{
	const uint8_t *end = bytes + n;
	struct attribute_value attribute;
	uint32_t shape[3];
	int r;

	while ((r = next(&bytes, end, &attribute)) > 0) {
		switch ((enum attribute)attribute.number) {
		case ATTRIBUTE_MAX_THREADS:
			if (words(&attribute, shape, 3) && facts->required_block[0] == 0)
				facts->figures[KERNEL_MAX_THREADS] = threads(shape);
			break;
		case ATTRIBUTE_REQNTID:
			if (words(&attribute, facts->required_block, 3))
				facts->figures[KERNEL_MAX_THREADS] = threads(facts->required_block);
			break;
		case ATTRIBUTE_CTA_PER_CLUSTER:
			words(&attribute, facts->cluster, 3);
			break;
		case ATTRIBUTE_CBANK_PARAM_SIZE:
			facts->parameters_bytes = attribute.value;
			break;
		case ATTRIBUTE_NUM_BARRIERS:
			facts->figures[KERNEL_BARRIERS] = attribute.value;
			break;
		case ATTRIBUTE_FRAME_SIZE:
		case ATTRIBUTE_MIN_STACK_SIZE:
		case ATTRIBUTE_REGCOUNT:
			break;
		}
	}
	return r == 0;
}

bool info_of_image(const uint8_t *bytes, size_t n, struct facts *(*facts_of)(uint32_t symbol, void *userdata),
		   void *userdata)
{
	const uint8_t *end = bytes + n;
	struct attribute_value attribute;
	struct facts *facts;
	uint32_t pair[2]; /* symbol, value */
	int r;

	while ((r = next(&bytes, end, &attribute)) > 0) {
		if (attribute.number != ATTRIBUTE_FRAME_SIZE &&
		    attribute.number != ATTRIBUTE_MIN_STACK_SIZE && attribute.number != ATTRIBUTE_REGCOUNT)
			continue;
		facts = words(&attribute, pair, 2) ? facts_of(pair[0], userdata) : NULL;
		if (!facts)
			continue;
		if (attribute.number == ATTRIBUTE_REGCOUNT)
			facts->figures[KERNEL_REGISTERS] = pair[1];
		else if (attribute.number == ATTRIBUTE_FRAME_SIZE)
			facts->frame_bytes = pair[1];
		else if (pair[1] == UINT32_MAX)
			facts->stack_unknown = true;
		else
			facts->figures[KERNEL_STACK] = pair[1];
	}
	return r == 0;
}

bool info_accelerated(const uint8_t *bytes, size_t n)
{
	enum { ACCELERATOR_TARGET = 9 }; /* EICOMPAT_ATTR_CUDA_ACCELERATOR_TARGET */
	const uint8_t *end = bytes + n;
	struct attribute_value attribute;

	while (next(&bytes, end, &attribute) > 0)
		if (attribute.number == ACCELERATOR_TARGET)
			return attribute.value != 0;
	return false;
}
