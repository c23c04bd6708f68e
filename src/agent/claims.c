// SPDX-License-Identifier: Apache-2.0
#include "agent/claims.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/macro.h"

/* A device of DRA, by its names and by what it is. */
struct claimed_device {
	struct device_ref claimed, device;
};

struct claims {
	struct allocation *rows, *resolved;
	uint32_t rows_n, left;
	struct claimed_device *devices;
	uint32_t devices_n;
};

int claims_new(struct claims **ret_claims)
{
	*ret_claims = calloc(1, sizeof(**ret_claims));
	return *ret_claims ? 0 : -ENOMEM;
}

void claims_free(struct claims *claims)
{
	if (!claims)
		return;
	free(claims->rows);
	free(claims->resolved);
	free(claims->devices);
	free(claims);
}

int claims_set_rows(struct claims *claims, const struct allocation *rows, uint32_t n)
{
	struct allocation *copy = calloc(MAX(n, 1u), sizeof(*copy));

	if (!copy)
		return -ENOMEM;
	if (n > 0)
		memcpy(copy, rows, n * sizeof(*copy));
	free(claims->rows);
	claims->rows = copy;
	claims->rows_n = n;
	return 0;
}

int claims_set_devices(struct claims *claims, const struct kube_device *list, uint32_t n)
{
	struct claimed_device *devices = calloc(MAX(n, 1u), sizeof(*devices));
	uint32_t used = 0;

	if (!devices)
		return -ENOMEM;
	for (uint32_t i = 0; i < n; i++) {
		struct claimed_device *to = &devices[used];

		device_ref_claimed(list[i].driver, list[i].pool, list[i].device, &to->claimed);
		if (device_ref_parse(list[i].uuid, &to->device, NULL) == 0 &&
		    to->device.kind == DEVICE_BY_UUID)
			used++;
	}
	free(claims->devices);
	claims->devices = devices;
	claims->devices_n = used;
	return 0;
}

/* NULL: the API has not told. */
static const struct device_ref *find_device(const struct claims *claims, const struct device_ref *claimed)
{
	for (uint32_t i = 0; i < claims->devices_n; i++)
		if (strncmp(claims->devices[i].claimed.uuid, claimed->uuid, sizeof(claimed->uuid)) == 0)
			return &claims->devices[i].device;
	return NULL;
}

int claims_resolve(struct claims *claims, const struct allocation **ret_rows, uint32_t *ret_n)
{
	struct allocation *resolved = calloc(MAX(claims->rows_n, 1u), sizeof(*resolved));
	uint32_t n = 0;

	if (!resolved)
		return -ENOMEM;
	for (uint32_t i = 0; i < claims->rows_n; i++) {
		const struct device_ref *device = &claims->rows[i].device;

		if (device->kind == DEVICE_CLAIMED)
			device = find_device(claims, device);
		if (!device)
			continue;
		resolved[n] = claims->rows[i];
		resolved[n++].device = *device;
	}
	free(claims->resolved);
	claims->resolved = resolved;
	claims->left = claims->rows_n - n;
	*ret_rows = resolved;
	*ret_n = n;
	return 0;
}

bool claims_any(const struct claims *claims)
{
	for (uint32_t i = 0; i < claims->rows_n; i++)
		if (claims->rows[i].device.kind == DEVICE_CLAIMED)
			return true;
	return false;
}

uint32_t claims_left(const struct claims *claims)
{
	return claims->left;
}
