// SPDX-License-Identifier: Apache-2.0
/* Where objects of a kind are in the API: known ones by kube/kinds.def, others as the API says. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "kube/client.h"
#include "kube/node_pods.h"

struct kind_row {
	const char *group, *kind, *plural;
	bool top, lost;
};

/* NULL: it is none of kube/kinds.def. */
const struct kind_row *kind_known(const struct owner_ref *ref);

struct kinds;

/* Kinds that the API was asked about are kept, at most KINDS_MAX. */
enum { KINDS_MAX = 64 };
int kinds_new(struct client *client, struct kinds **ret_kinds);
void kinds_free(struct kinds *kinds);
DEFINE_CLEANUP(struct kinds *, kinds_free, kinds_freep)

enum kind_place {
	KIND_FOUND,
	KIND_WANTED, /* the API must be asked: kinds_ask() */
	KIND_MISSING, /* the API has none of that kind, or does not say */
	KIND_PENDING, /* it is being asked */
};

/* KIND_FOUND: *ret_path, of @size bytes, is where the object is that @ref names in @namespace. */
enum kind_place kinds_find(struct kinds *kinds, const struct owner_ref *ref, const char *namespace,
			   int64_t now_ns, char *ret_path, size_t size);
/* Asks about the kind of @ref; done() when it is known. 0 or -errno. */
int kinds_ask(struct kinds *kinds, const struct owner_ref *ref, void (*done)(void *userdata), void *userdata);
