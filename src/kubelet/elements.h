// SPDX-License-Identifier: Apache-2.0
/*
 * A protobuf message that is a list, read as it comes: of a reply of many MiB one element at a time is in
 * memory. Every list of kubelet's is `repeated ... = 1`.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum {
	LIST_FIELD = 1,
	ELEMENT_MAX = 2 << 20, /* of one pod; Kubernetes stores no object of more than 1.5 MiB */
};

struct elements {
	/* Each element, whole. Not 0: elements_feed() returns that. */
	int (*element)(const uint8_t *data, size_t n, void *userdata);
	void *userdata;
	uint64_t left_out; /* longer than ELEMENT_MAX, or there was no memory */
	/* private */
	uint64_t varint;
	unsigned shift; /* of the next byte of a varint */
	uint32_t state, field, wire;
	uint64_t left; /* bytes of the field that have not come */
	uint8_t *data;
	size_t n, room;
};

/* The next bytes of the message. -EBADMSG: it is none. */
int elements_feed(struct elements *elements, const uint8_t *data, size_t n);
/* -EBADMSG: the message ended within a field. */
int elements_end(const struct elements *elements);
/* Frees what it holds; @elements may be used for another message. */
void elements_done(struct elements *elements);
