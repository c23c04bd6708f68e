// SPDX-License-Identifier: Apache-2.0
/* Rows of devices' health (model/health.h), of the names that device plugins give to devices. */
#pragma once

#include "base/row_list.h"
#include "model/health.h"

/* "Healthy", "Unhealthy"; all others are HEALTH_UNKNOWN. */
enum health health_named(const char *text);
/* Adds the device, if the name is one's, or makes its row the worse of both. */
void health_note(struct row_list *list, const char *device, enum health health);
/* Whether there is a row of it. */
bool health_has(const struct row_list *list, const struct device_ref *device);
