// SPDX-License-Identifier: Apache-2.0
/*
 * Listens for one of our plugins on a UNIX socket that every user may connect to, and has a confined process
 * receive what comes (src/plugin_socket). Whose plugin it is knows agent/nccl.c and agent/cupti.c: they check
 * the rows, join them with the processes that connected, and give them to the model.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <systemd/sd-event.h>

#include "model/nccl.h"
#include "plugin_socket/clients.h"
#include "plugin_socket/protocol.h"

struct plugin_socket;

struct plugin_socket_config {
	const char *role; /* of the process that receives */
	const char *option; /* that says where */
	const char *plugin; /* whose it is, for messages */
	const char *path; /* a socket that is left there, which nobody listens on, is replaced */
	uint32_t row_bytes, rows_max;
	uint32_t record_bytes, records_max; /* 0: it has none */
	const void *greeting; /* NULL: none */
	size_t greeting_bytes;
	bool (*row_is_valid)(const void *row, enum plugin_table table);
	/*
	 * Tables whose rows are all valid, and the answer that came with them; @refused: as said of this
	 * process and those before.
	 */
	void (*taken)(const struct arriving tables[static PLUGIN_TABLES], const struct plugin_answer *answer,
		      uint64_t refused, void *userdata);
	/* The process was replaced; what it counted of all clients begins anew. */
	void (*lost)(void *userdata);
	void *userdata;
};

/* Strings of @config must live as long, but for the path. The error is logged. */
int plugin_socket_new(sd_event *event, const struct plugin_socket_config *config,
		      struct plugin_socket **ret_socket);
void plugin_socket_free(struct plugin_socket *socket);
/* Once a second: asks for the rows. */
void plugin_socket_tick(struct plugin_socket *socket);
/* Of the process that receives; 0: none. */
pid_t plugin_socket_pid(const struct plugin_socket *socket);

/* Of rows that begin with struct plugin_row. */
struct plugin_layout {
	size_t row_bytes;
	size_t gone_at; /* a uint8_t */
	size_t comm_at; /* NCCL_COMM bytes */
};

/*
 * Names the processes of @rows; those that have ended by their rows in @before. Leaves out rows of processes
 * that began later, and have the PID of one that has ended, unless they are there for the last time. Returns
 * how many are left.
 */
uint32_t plugin_rows_name(const struct plugin_layout *layout, void *rows, uint32_t n, const void *before,
			  uint32_t before_n);
/* False: the process of the row's PID began after the connection did, and is another one. */
bool plugin_row_is_of_process(const struct plugin_row *row);
/* Of a row's members. */
bool plugin_text_ends(const char *text, size_t size);
bool plugin_number_is_sane(double value);
