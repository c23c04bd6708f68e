// SPDX-License-Identifier: Apache-2.0
#include "model/device_ref.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/hashmap.h"
#include "base/macro.h"

enum {
	TEXT_MAX = 200, /* a CDI name of an old driver's instance has about 80 characters */
	NUMBER_MAX = 65535, /* far above any index, minor number or instance */
};

/* A decimal number at *text, which is moved behind it. */
static bool take_number(const char **text, uint32_t *ret_number)
{
	const char *at = *text;
	uint32_t number = 0;

	for (; isdigit((unsigned char)*at); at++) {
		number = number * 10 + (uint32_t)(*at - '0');
		if (number > NUMBER_MAX)
			return false;
	}
	if (at == *text)
		return false;
	*text = at;
	*ret_number = number;
	return true;
}

static bool take_word(const char **text, const char *word)
{
	size_t n = strlen(word);

	if (strncmp(*text, word, n) != 0)
		return false;
	*text += n;
	return true;
}

/* Takes off "::N" or "/vgpuN". */
static bool take_replica(char *text)
{
	static const char *const marks[] = { "::", "/vgpu" };

	for (unsigned i = 0; i < ARRAY_SIZE(marks); i++) {
		char *mark = strstr(text, marks[i]);
		const char *at = mark;
		uint32_t number;

		if (!mark || !take_word(&at, marks[i]) || !take_number(&at, &number) || *at)
			continue;
		*mark = '\0';
		return true;
	}
	return false;
}

/* Behind CDI's vendor and class: "nvidia.com/gpu=0", "k8s.device-plugin.nvidia.com/gpu=GPU-…". */
static const char *after_cdi(const char *text)
{
	static const char vendor[] = "nvidia.com/";
	const char *end = strchr(text, '='), *at = strstr(text, vendor);

	if (!end || !at || at > end || (at > text && at[-1] != '.'))
		return text;
	return end + 1;
}

/* "GPU-" or "MIG-" and at least one character of a UUID; up to @end. */
static bool is_uuid(const char *text, const char *end)
{
	if (end - text < 5 || end - text >= (ptrdiff_t)sizeof(((struct device_ref *)0)->uuid))
		return false;
	for (const char *at = text + 4; at < end; at++)
		if (!isalnum((unsigned char)*at) && *at != '-')
			return false;
	return isalnum((unsigned char)text[4]);
}

static int parse_uuid(const char *text, struct device_ref *device)
{
	const char *end = text + strlen(text), *begin = text, *at = strchr(text, '/');

	device->kind = DEVICE_BY_UUID;
	if (at) {
		end = at;
		if (!take_word(&begin, "MIG-") || strncmp(begin, "GPU-", 4) != 0 || !take_word(&at, "/") ||
		    !take_number(&at, &device->gi) || !take_word(&at, "/") ||
		    !take_number(&at, &device->ci) || *at)
			return -EINVAL;
	} else if (strncmp(text, "MIG-GPU-", 8) == 0) {
		return -EINVAL;
	}
	if (!is_uuid(begin, end))
		return -EINVAL;
	snprintf(device->uuid, sizeof(device->uuid), "%.*s", (int)(end - begin), begin);
	return 0;
}

static int parse_numbers(const char *text, struct device_ref *device)
{
	const char *at = text;
	bool ok;

	if (take_word(&at, "nvidia")) {
		device->kind = DEVICE_BY_MINOR;
		ok = take_number(&at, &device->index) &&
		     (!take_word(&at, "/gi") || take_number(&at, &device->gi));
	} else if (take_word(&at, "gpu-")) {
		device->kind = DEVICE_BY_MINOR;
		ok = take_number(&at, &device->index);
	} else {
		device->kind = DEVICE_BY_INDEX;
		ok = take_number(&at, &device->index) &&
		     (!take_word(&at, ":") || take_number(&at, &device->mig));
	}
	return ok && !*at ? 0 : -EINVAL;
}

int device_ref_parse(const char *text, struct device_ref *ret_device, bool *ret_replica)
{
	struct device_ref device = { .kind = DEVICE_NOT,
				     .index = DEVICE_REF_NO,
				     .gi = DEVICE_REF_NO,
				     .ci = DEVICE_REF_NO,
				     .mig = DEVICE_REF_NO };
	char copy[TEXT_MAX];
	const char *name;
	bool replica;
	int r = 0;

	if (strnlen(text, sizeof(copy)) == sizeof(copy))
		return -EINVAL;
	strcpy(copy, text);
	replica = take_replica(copy);
	name = after_cdi(copy);
	if (STRV_EQ(name, "all"))
		device.kind = DEVICE_ALL;
	else if (strncmp(name, "GPU-", 4) == 0 || strncmp(name, "MIG-", 4) == 0)
		r = parse_uuid(name, &device);
	else if (!STRV_EQ(name, "none") && !STRV_EQ(name, "void"))
		r = parse_numbers(name, &device);
	if (r < 0)
		return r;
	*ret_device = device;
	if (ret_replica)
		*ret_replica = replica;
	return 0;
}

void device_ref_claimed(const char *driver, const char *pool, const char *device,
			struct device_ref *ret_device)
{
	const char *const names[] = { driver, pool, device };
	uint64_t digest = 0;

	memset(ret_device, 0, sizeof(*ret_device));
	ret_device->kind = DEVICE_CLAIMED;
	ret_device->gi = ret_device->ci = ret_device->mig = DEVICE_REF_NO;
	for (unsigned i = 0; i < ARRAY_SIZE(names); i++)
		digest = digest * 31 + hash_bytes(names[i], strlen(names[i]));
	snprintf(ret_device->uuid, sizeof(ret_device->uuid), "%016llx", (unsigned long long)digest);
}
