// SPDX-License-Identifier: Apache-2.0
/*
 * Batches that wait on the disk, each a file of a folder, in the order in which they were added. A file is
 * written beside its place, forced to the disk and renamed, so it is whole or not there, whenever the process
 * or the machine ends; one that is not what was written is dropped when its turn comes.
 *
 * There may be as many bytes of the disk as the owner says, and each may wait for as long: the oldest are
 * dropped, but for the one that is held, which is under way.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/macro.h"
#include "push/batch.h"

struct queue;

struct queue_figures {
	uint64_t bytes; /* of the disk that the files take, by their sizes: whole blocks of 4 KiB */
	uint32_t batches;
	uint64_t full, torn, old; /* dropped since queue_take_figures() was last called */
};

/*
 * Makes FOLDER/push and in it the folder NAME of the files, and opens that: a descriptor, the caller's, or
 * -errno. Only this user may enter FOLDER/push; within, any holder of the descriptor may make files, so the
 * user that writes may be another one (helper/confine.h). -EPERM: it is another user's.
 */
int queue_open_folder(const char *folder, const char *name);

/*
 * Reads what lies in the folder of this descriptor, which stays the caller's. @max_age_ns: 0: any. 0, -ENOMEM
 * or -errno.
 */
int queue_new(int folder, uint64_t max_bytes, int64_t max_age_ns, struct queue **ret_queue);
void queue_free(struct queue *queue);
DEFINE_CLEANUP(struct queue *, queue_free, queue_freep)

/*
 * Writes a batch behind the others. *ret_number is its name from then on, not 0. -EFBIG: the queue has no
 * room for it; another -errno: it cannot be written.
 */
int queue_add(struct queue *queue, const struct batch *batch, uint64_t *ret_number);
/* The oldest. *ret_batch is the caller's. -ENOENT: there is none; -ENOMEM. */
int queue_first(struct queue *queue, uint64_t *ret_number, struct batch *ret_batch);
/* It is done with. */
void queue_remove(struct queue *queue, uint64_t number);
/* What is not dropped for want of room; 0: none. */
void queue_hold(struct queue *queue, uint64_t number);
void queue_take_figures(struct queue *queue, struct queue_figures *ret_figures);

/* What a file of @n bytes holds; its data are borrowed. -EBADMSG: it is not one that queue_add() wrote. */
int queue_parse(uint8_t *file, size_t n, struct batch *ret_batch);
