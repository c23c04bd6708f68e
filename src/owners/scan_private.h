// SPDX-License-Identifier: Apache-2.0
/* Shared by scan.c, which reads, and scan_table.c, which makes the tables of what is known. */
#pragma once

#include <stdbool.h>

#include "cdi/cdi.h"
#include "owners/given.h"
#include "owners/scan.h"

enum place_kind {
	PLACE_NAMES, /* a folder whose entries' names tell the owners */
	PLACE_FOLDERS, /* a folder with a folder for each container, named after its ID, with a file in it */
	PLACE_LIST, /* a file with all of them */
};

/* Where owners stand. Of two places that know the same container the first in this list is used. */
struct place {
	const char *path;
	enum place_kind kind;
	bool (*of_name)(const char *name, struct owner *ret_owner); /* PLACE_NAMES */
	/* of PLACE_FOLDERS */
	const char *file;
	bool docker; /* its format, else OCI's */
	const char *init; /* the file with the PID of the first process; Docker's is in its own */
	bool gone_when_over; /* a folder is there only while its container runs */
};
enum { PLACES = 9 };
extern const struct place places[PLACES];

/* struct given of a container that was given something, with its devices alone. */
struct given_list {
	char resource[64];
	char pod_uid[48];
	bool estimated;
	uint32_t n;
	struct device_ref list[];
};

/* An entry of a place: its owner, or that it has none. */
struct known {
	struct owner owner; /* its ID is set in either case */
	/* of PLACE_FOLDERS */
	int64_t changed_ns; /* of the file that was read */
	bool named;
	bool told; /* what the container was given is known: @given, NULL: nothing */
	struct given_list *given;
	uint32_t init; /* Docker's: PID of the first process; 0: it does not run */
};

struct state {
	int64_t changed_ns, read_ns; /* of the folder or list, real time; 0: not read */
	int error; /* of the newest attempt to read it, or an entry of it */
	bool again; /* an entry could not be read, or not yet: it is tried with the next scan */
	struct known *list;
	uint32_t n, room;
	uint32_t dropped; /* entries */
	uint64_t given_dropped; /* devices of its containers */
};

struct row {
	struct owner owner;
	uint32_t place;
};

/* A container that was given something, by the place that decides. */
struct given_row {
	const struct known *known;
	uint32_t place;
	bool running; /* as of the newest tables */
};

struct scan {
	struct state states[PLACES];
	struct cdi *cdi;
	struct given_by by; /* has the same @cdi */
	bool devices_changed; /* since the last scan: what names of CDI mean, or what the toolkit follows */
	bool can_tell; /* whether a process runs */
	struct row *rows;
	struct owner *list;
	struct given_row *given_rows;
	uint32_t given_rows_n;
	uint32_t next_look; /* in given_rows, once round */
	uint32_t room; /* of these three */
	bool changed; /* a place was read since the tables were made */
	struct scan_table table; /* the newest */
	struct allocation *given; /* ALLOCATIONS_MAX */
	char *text, *host; /* of files; the latter of Docker's second one */
	size_t text_room, host_room;
};

/* Fills the tables of @table from what is known. -ENOMEM. */
int scan_table_make(struct scan *scan, int root, const char *job_dir, struct scan_table *table);
/*
 * Whether the newest tables are still so, if no place was read since: the same containers run. Looks at some
 * of them with each call, in turns.
 */
bool scan_table_is_current(struct scan *scan, int root);
