// SPDX-License-Identifier: Apache-2.0
/*
 * JSON read as it comes: of a document, or of many behind each other, only the values at known paths are
 * told, the rest is passed over. Nothing is in memory but the string or number at hand.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/macro.h"

enum {
	JSON_DEPTH_MAX = 64, /* of maps and lists in each other; objects of Kubernetes have less than 30 */
	JSON_TOKEN_MAX = 2 << 20, /* bytes of one string; Kubernetes stores no object of more than 1.5 MiB */
	JSON_KEY_MAX = 320, /* of a key that is told; a label's has at most 317 bytes */
	JSON_NODES_MAX = 128, /* segments of all paths together */
};

enum json_value_kind { JSON_VALUE_TEXT, JSON_VALUE_NUMBER, JSON_VALUE_BOOL, JSON_VALUE_NULL };

struct json_value {
	enum json_value_kind kind;
	const char *text; /* of @n bytes, valid UTF-8, perhaps with NUL among them; a number's digits */
	size_t n;
	bool yes; /* of a bool */
	const char *key; /* what "*" stands for in the path, cut to JSON_KEY_MAX */
};

/*
 * Segments with a space between them: "items [] metadata name". "[]" is each element of a list, "*" each
 * value of a map. "" is the document itself.
 */
struct json_path {
	const char *path;
	int id; /* not 0 */
};

struct json_ops {
	/* Each returns 0, or what json_feed() shall return then. */
	int (*value)(int id, const struct json_value *value, void *userdata);
	int (*begin)(int id, void *userdata); /* a map or list at a path; may be NULL */
	int (*end)(int id, void *userdata); /* may be NULL */
};

/*
 * Copies a text with its NUL; "" if the value is none, has a NUL within, or is too long: what is cut would be
 * something else.
 */
void json_copy_text(char *to, size_t size, const struct json_value *value);

struct json_reader;

int json_reader_new(const struct json_ops *ops, void *userdata, struct json_reader **ret_reader);
void json_reader_free(struct json_reader *reader);
DEFINE_CLEANUP(struct json_reader *, json_reader_free, json_reader_freep)
/* Adds @n paths, each below @prefix ("": none). Their texts stay the caller's. -E2BIG: too many. */
int json_reader_add(struct json_reader *reader, const char *prefix, const struct json_path *paths, size_t n);
/* Begins anew, with another document. */
int json_reader_reset(struct json_reader *reader);
/*
 * -EBADMSG: it is no JSON; -E2BIG: deeper than JSON_DEPTH_MAX; -EFBIG: a longer token than JSON_TOKEN_MAX;
 * or what a function of the caller's returned. The reader is of no use then until it is reset.
 */
int json_feed(struct json_reader *reader, const char *data, size_t n);
/* No more comes. -EBADMSG: it ended within a document. */
int json_end(const struct json_reader *reader);
