// SPDX-License-Identifier: Apache-2.0
#include "cmd/top/signals.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fd.h"
#include "proc/proc.h"

const struct signal_description signal_table[] = {
	{ SIGTERM, "SIGTERM", "asks it to end" },
	{ SIGINT, "SIGINT", "as Ctrl-C does" },
	{ SIGHUP, "SIGHUP", "its terminal is gone" },
	{ SIGKILL, "SIGKILL", "ends it, whatever it does" },
	{ SIGSTOP, "SIGSTOP", "halts it" },
	{ SIGCONT, "SIGCONT", "lets it go on" },
	{ SIGUSR1, "SIGUSR1", "what it made of this" },
	{ SIGUSR2, "SIGUSR2", "what it made of this" },
};
const unsigned signal_table_n = ARRAY_SIZE(signal_table);

/* By a descriptor of the process, so that none that gets its PID in between can be hit. */
void signals_send(struct top *top, unsigned which)
{
	const struct signal_description *signal = &signal_table[which];
	const struct chosen_process *process = &top->process;
	struct process_id now;
	_cleanup_close_ int fd = (int)syscall(SYS_pidfd_open, (pid_t)process->pid, 0);

	if (fd < 0 || proc_process_id("/proc", process->pid, &now) < 0 ||
	    now.start_ticks != process->start_ticks)
		top_say(top, "process %" PRIu32 " has ended", process->pid);
	else if (syscall(SYS_pidfd_send_signal, fd, signal->number, NULL, 0) == 0)
		top_say(top, "%s was sent to process %" PRIu32, signal->name, process->pid);
	else if (errno == EPERM)
		top_say(top, "process %" PRIu32 " is another user's: only its user and root may send it %s",
			process->pid, signal->name);
	else
		top_say(top, "%s could not be sent to process %" PRIu32 ": %s", signal->name, process->pid,
			strerror(errno));
}
