// SPDX-License-Identifier: Apache-2.0
/*
 * src/cupti_plugin is libgpusonde-cupti.so, which the CUDA driver loads into the program where its user asks
 * for it (CUDA_INJECTION64_PATH). It tells the agent or command that listens when work of the
 * GPUs began and ended, by CUPTI.
 *
 *   inject.c     InitializeInjection(), and the program's end
 *   slices.c     a thread: listens for what is wanted, turns CUPTI on and off
 *   library.c    CUPTI itself, by dlopen
 *   buffers.c    what CUPTI writes records to
 *   launches.c   which thread called, and when
 *   records.c    CUPTI's records, as they are sent
 *   send.c       messages
 *
 * Invariants
 *  1. CUPTI is neither loaded nor asked for anything while nobody listens, and is off between slices.
 *  2. A profiler that has subscribed to CUPTI keeps it: the plugin subscribes for a slice only, and stands
 *     down where another subscriber is.
 *  3. The program's threads never wait for the plugin: callbacks take no lock and allocate nothing but
 *     buffers, of which there are BUFFERS. Only its start may wait 0.2 s for the listener to say what is
 *     wanted, and its end 0.3 s.
 *  4. What CUPTI or the socket has no room for is counted and told.
 *  5. A child of fork() does nothing. The library is never unloaded.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "cupti_plugin/interface.h"
#include "model/cupti_wire.h"

/* library.c */
void library_init(void); /* reads the environment, which the program may change later */
/* NULL: it is not to be had. Opened once. */
const struct cupti *library_cupti(void);
/* The device's UUID by the driver; false: it does not say. */
bool library_device_uuid(uint32_t device, uint8_t uuid[static 16]);

/* buffers.c */
enum { BUFFERS = 64, BUFFER_BYTES = 256 << 10 };
struct buffer {
	uint8_t *data;
	size_t valid;
};
void buffers_requested(uint8_t **buffer, size_t *size, size_t *records); /* CUPTI's callbacks */
void buffers_completed(void *context, uint32_t stream, uint8_t *buffer, size_t size, size_t valid);
/* CUPTI is to give what it has; what found no room is counted, also if it gives nothing. */
void buffers_flush(const struct cupti *cupti, bool forced);
void buffers_accept(bool accept); /* false: all are refused */
bool buffers_take(struct buffer *ret_buffer); /* one that CUPTI has filled, until it is given back */
void buffers_give(const struct buffer *buffer);
uint32_t buffers_given(void); /* how many CUPTI has */
void buffers_release(void); /* the memory of those that nobody has */
/* Records that found no room; at least so many where CUPTI cannot be refused a buffer. */
uint64_t buffers_dropped(void);
/* Until CUPTI has filled one, or wake() is called, but no longer than so many ms. */
void buffers_wait(long ms);
void buffers_wake(void);

/* launches.c */
struct launch {
	uint32_t tid;
	uint64_t time_ns;
};
void launches_called(void *userdata, int domain, uint32_t function, const struct callback_data *data);
void launches_begin(uint32_t most); /* of a slice; 0: any number */
bool launches_spent(void);
bool launches_find(uint32_t correlation, struct launch *ret_launch);
/* Of the driver's functions that launch: number @i in CUPTI; 0: there are no more. */
uint32_t launches_function(unsigned i);

/* records.c */
struct records {
	uint64_t unknown, bad;
	int64_t offset_ns; /* what is added to CUPTI's times */
};
void records_take(const struct cupti *cupti, struct records *records, const struct buffer *buffer);
void records_forget(void); /* names and devices that were told: another one listens */

/* send.c */
bool send_connect(struct cupti_wanted *ret_wanted, int timeout_ms); /* false: nobody listens */
bool send_connected(void); /* the listener still does */
void send_pause(int ms); /* until then, or until it does not */
void send_put(const union cupti_record *record);
void send_rest(void);
void send_hurry(int ms); /* what is not taken within so many from now is lost */
bool send_hurries(void);
void send_init(void);
void send_in_child(void);

/* slices.c */
void slices_start(void);
void slices_end(void); /* the program ends */
