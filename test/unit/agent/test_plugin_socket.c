// SPDX-License-Identifier: Apache-2.0
#include "test.h"

#include <string.h>
#include <unistd.h>

#include "agent/plugin_socket.h"
#include "base/clock.h"
#include "base/macro.h"
#include "model/gpu_time.h"
#include "proc/proc.h"

enum { ENDED = 4194304 }; /* the kernel's largest PID plus one: nobody has it */

static const struct plugin_layout layout = { .row_bytes = sizeof(struct gpu_time),
					     .gone_at = offsetof(struct gpu_time, gone),
					     .comm_at = offsetof(struct gpu_time, comm) };

static struct gpu_time row_of(uint32_t pid, uint64_t since_boot_ns, uint32_t device)
{
	return (struct gpu_time){ .pid = pid, .since_boot_ns = since_boot_ns, .device = device };
}

static void processes_have_their_names(void **state)
{
	uint64_t now = (uint64_t)clock_boot_ns();
	struct gpu_time rows[] = { row_of((uint32_t)getpid(), now, 0), row_of((uint32_t)getpid(), now, 1),
				   row_of(ENDED, now, 0), row_of(ENDED, now - 1, 0) };
	struct gpu_time before[] = { row_of(ENDED, now, 3) };
	struct proc_identity own;

	(void)state;
	assert_int_equal(proc_identify("/proc", (uint32_t)getpid(), &own), 0);
	strcpy(before[0].comm, "was");
	assert_int_equal(plugin_rows_name(&layout, rows, 4, before, 1), 4);
	assert_string_equal(rows[0].comm, own.comm);
	assert_string_equal(rows[1].comm, own.comm);
	assert_string_equal(rows[2].comm, "was");
	assert_string_equal(rows[3].comm, "");
}

/* This process began long after boot: connections from before that were another's. */
static void who_has_the_pid_by_now_is_another(void **state)
{
	uint64_t now = (uint64_t)clock_boot_ns();
	struct gpu_time rows[] = { row_of((uint32_t)getpid(), 1, 0), row_of((uint32_t)getpid(), 1, 1),
				   row_of((uint32_t)getpid(), 2, 2), row_of((uint32_t)getpid(), now, 3) };

	(void)state;
	rows[2].gone = 1; /* its last figures */
	assert_int_equal(plugin_rows_name(&layout, rows, 4, NULL, 0), 2);
	assert_int_equal(rows[0].device, 2);
	assert_string_equal(rows[0].comm, "");
	assert_int_equal(rows[1].device, 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(processes_have_their_names),
		cmocka_unit_test(who_has_the_pid_by_now_is_another),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
