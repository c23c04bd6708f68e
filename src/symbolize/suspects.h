// SPDX-License-Identifier: Apache-2.0
/*
 * Who made a helper hang or crash: processes, about which nothing more is asked; their users, about whose
 * other processes nothing is asked for a while, each time twice as long; and files, which are not read again.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/process_id.h"
#include "symbolize/wire.h"

enum { SUSPECT_PROCESSES = 512, SUSPECT_ACCOUNTS = 256, SUSPECT_STRIKES_MAX = 6 };

struct suspects {
	int64_t penalty_ns; /* the first */
	struct process_id processes[SUSPECT_PROCESSES]; /* ring */
	uint64_t processes_n;
	struct suspect_account {
		uint64_t account;
		int64_t until_ns;
		unsigned strikes; /* 0: the entry is free */
	} accounts[SUSPECT_ACCOUNTS];
	struct suspect_file {
		struct file_mark mark;
		int64_t until_ns; /* INT64_MAX: while it is the same file; 0: the entry is free */
	} files[WIRE_AVOIDED];
	uint64_t files_n;
};

void suspects_add_process(struct suspects *suspects, struct process_id id);
bool suspects_has_process(const struct suspects *suspects, struct process_id id);
/* Returns for how long its questions are not asked; 0: this account is not made to wait. */
int64_t suspects_add_account(struct suspects *suspects, uint64_t account, int64_t now_ns);
bool suspects_has_account(const struct suspects *suspects, uint64_t account, int64_t now_ns);
uint32_t suspects_count_accounts(const struct suspects *suspects, int64_t now_ns);
/* One that hung may be readable later. */
void suspects_add_file(struct suspects *suspects, struct file_mark mark, bool hung, int64_t now_ns);
/* Returns their number. */
uint32_t suspects_list_files(const struct suspects *suspects, int64_t now_ns,
			     struct file_mark ret_marks[static WIRE_AVOIDED]);
