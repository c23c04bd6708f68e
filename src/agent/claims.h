// SPDX-License-Identifier: Apache-2.0
/*
 * Allocations of devices of DRA, of which kubelet knows the names alone (DEVICE_CLAIMED): joined with the
 * UUIDs that the Kubernetes API has for these names.
 */
#pragma once

#include "kube/protocol.h"
#include "model/allocation.h"

struct claims;

int claims_new(struct claims **ret_claims);
void claims_free(struct claims *claims);
/* What kubelet says, and what the API says; each in place of what it said before. Copied. -ENOMEM. */
int claims_set_rows(struct claims *claims, const struct allocation *rows, uint32_t n);
int claims_set_devices(struct claims *claims, const struct kube_device *list, uint32_t n);
/*
 * The rows with the devices that are known; those of others are left out. Valid until the next call of a
 * function of this header. -ENOMEM.
 */
int claims_resolve(struct claims *claims, const struct allocation **ret_rows, uint32_t *ret_n);
/* Whether any row needs the API, and how many were left out by the newest claims_resolve(). */
bool claims_any(const struct claims *claims);
uint32_t claims_left(const struct claims *claims);
