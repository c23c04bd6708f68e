// SPDX-License-Identifier: Apache-2.0
/*
 * The GPUs and MIG instances of this node that a page tells of, with the numbers of metrics.def. A number
 * that the page has several times for one device (once for each pod or job that has it) is one number.
 */
#pragma once

#include "dcgm/family.h"
#include "dcgm/labels.h"
#include "dcgm/protocol.h"

enum {
	DEVICE_NONE = READING_NONE,
	SHARED_NUMBERS = 5, /* those that a page may have for each of the device's users */
};

struct page_device;

struct page_devices {
	struct page_device *list;
	uint32_t n, room;
};

void devices_done(struct page_devices *devices);
/* Index of the device that the labels are of, added if need be; DEVICE_NONE: of none, or beyond the limit. */
uint16_t devices_get(struct page_devices *devices, const struct page_labels *labels);
/* A number of the device @device, in units of metrics.def. */
void devices_put(struct page_devices *devices, uint16_t device, const struct family *family, double value,
		 const struct page_labels *labels);
/* It is an estimate, if it is there. */
void devices_mark_estimated(struct page_devices *devices, uint16_t device, const struct family *family);
void devices_put_xid(struct page_devices *devices, uint16_t device, double code);
/* The page has ended: numbers of several users become the device's. */
void devices_end(struct page_devices *devices);
const struct dcgm_device *devices_at(const struct page_devices *devices, uint32_t i);
