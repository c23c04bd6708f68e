// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "nvml/abi.h"

/*
 * Lists of processes as drivers write them. Driver 510 introduced lists of 24-byte records; 535.43 to 535.86
 * wrote records of 32 bytes through the same symbol. So the buffer is filled with a pattern before the call,
 * and the record size is derived from what was overwritten.
 */
enum {
	PROCESS_LIST_FILL = 0xa5,
	PROCESS_RECORD_MAX = sizeof(struct nvml_process_detail),
	PROCESS_RECORD_ROOM =
		2 * PROCESS_RECORD_MAX, /* a record's share of the buffer, for drivers that write more */
};

struct process_record {
	uint32_t pid;
	uint64_t used_memory; /* NVML_NONE_U64: unknown to the driver */
};

/*
 * Bytes from one record to the next in a list of @n records that should have @declared bytes each; more than
 * PROCESS_RECORD_MAX if the records are of an unknown format. The buffer has PROCESS_RECORD_ROOM for each
 * record.
 */
unsigned process_list_stride(const unsigned char *records, unsigned n, unsigned declared);

void process_list_get(const unsigned char *records, unsigned i, unsigned stride,
		      struct process_record *ret_record);
