// SPDX-License-Identifier: Apache-2.0
#include "symbolize/suspects.h"

#include "base/clock.h"
#include "proc/account.h"

#define FILE_NS (600 * NSEC_PER_SEC)
#define FORGIVEN_NS (3600 * NSEC_PER_SEC) /* after a penalty */

void suspects_add_process(struct suspects *suspects, struct process_id id)
{
	if (!suspects_has_process(suspects, id))
		suspects->processes[suspects->processes_n++ % SUSPECT_PROCESSES] = id;
}

bool suspects_has_process(const struct suspects *suspects, struct process_id id)
{
	for (uint64_t i = 0; i < MIN(suspects->processes_n, (uint64_t)SUSPECT_PROCESSES); i++)
		if (process_id_may_equal(suspects->processes[i], id))
			return true;
	return false;
}

/* The account's entry, or the one that it takes the place of. */
static struct suspect_account *entry_for(struct suspects *suspects, uint64_t account)
{
	struct suspect_account *old = &suspects->accounts[0];

	for (unsigned i = 0; i < SUSPECT_ACCOUNTS; i++) {
		struct suspect_account *entry = &suspects->accounts[i];

		if (entry->strikes && entry->account == account)
			return entry;
		if (entry->until_ns < old->until_ns)
			old = entry;
	}
	*old = (struct suspect_account){ .account = account };
	return old;
}

int64_t suspects_add_account(struct suspects *suspects, uint64_t account, int64_t now_ns)
{
	struct suspect_account *entry;
	int64_t penalty;

	/* Root's own processes; of a process that has ended nobody knows whose it was. */
	if (account == PROC_ACCOUNT_ROOT || account == PROC_ACCOUNT_UNKNOWN)
		return 0;
	entry = entry_for(suspects, account);
	if (entry->strikes && now_ns > entry->until_ns + FORGIVEN_NS)
		entry->strikes = 0;
	penalty = suspects->penalty_ns << entry->strikes;
	entry->strikes = MIN(entry->strikes + 1, (unsigned)SUSPECT_STRIKES_MAX);
	entry->until_ns = now_ns + penalty;
	return penalty;
}

bool suspects_has_account(const struct suspects *suspects, uint64_t account, int64_t now_ns)
{
	for (unsigned i = 0; i < SUSPECT_ACCOUNTS; i++)
		if (suspects->accounts[i].account == account && suspects->accounts[i].until_ns > now_ns)
			return true;
	return false;
}

uint32_t suspects_count_accounts(const struct suspects *suspects, int64_t now_ns)
{
	uint32_t n = 0;

	for (unsigned i = 0; i < SUSPECT_ACCOUNTS; i++)
		n += suspects->accounts[i].until_ns > now_ns;
	return n;
}

void suspects_add_file(struct suspects *suspects, struct file_mark mark, bool hung, int64_t now_ns)
{
	/* Without a time of change it may be another file by then. */
	bool passes = hung || mark.changed_ns == 0;

	if (mark.ino)
		suspects->files[suspects->files_n++ % WIRE_AVOIDED] =
			(struct suspect_file){ mark, passes ? now_ns + FILE_NS : INT64_MAX };
}

uint32_t suspects_list_files(const struct suspects *suspects, int64_t now_ns,
			     struct file_mark ret_marks[static WIRE_AVOIDED])
{
	uint32_t n = 0;

	for (unsigned i = 0; i < WIRE_AVOIDED; i++)
		if (suspects->files[i].until_ns > now_ns)
			ret_marks[n++] = suspects->files[i].mark;
	return n;
}
