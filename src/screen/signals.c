// SPDX-License-Identifier: Apache-2.0
#include "screen/signals.h"

#include <errno.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/macro.h"

int epoll_watch(int epoll, int fd)
{
	struct epoll_event event = { .events = EPOLLIN, .data.fd = fd };

	return epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) < 0 ? -errno : 0;
}

int signals_take(int epoll, int *ret_signals)
{
	static const int taken[] = { SIGINT, SIGTERM, SIGHUP, SIGWINCH, SIGCONT };
	sigset_t set;
	int fd;

	sigemptyset(&set);
	for (size_t i = 0; i < ARRAY_SIZE(taken); i++)
		sigaddset(&set, taken[i]);
	if (sigprocmask(SIG_BLOCK, &set, NULL) < 0)
		return -errno;
	fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (fd < 0)
		return -errno;
	*ret_signals = fd;
	return epoll_watch(epoll, fd);
}

enum screen_signal signals_next(int signals)
{
	struct signalfd_siginfo info;

	if (read(signals, &info, sizeof(info)) != sizeof(info))
		return SCREEN_SIGNAL_NONE;
	switch (info.ssi_signo) {
	case SIGWINCH:
		return SCREEN_SIGNAL_RESIZED;
	case SIGCONT:
		return SCREEN_SIGNAL_CONTINUED;
	default:
		return SCREEN_SIGNAL_END;
	}
}
