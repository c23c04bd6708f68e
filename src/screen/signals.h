// SPDX-License-Identifier: Apache-2.0
/* What a program with the terminal to itself waits for: its signals, beside keys, by one epoll descriptor. */
#pragma once

/* Wakes @epoll when @fd is readable. -errno. */
int epoll_watch(int epoll, int fd);

/*
 * SIGINT, SIGTERM, SIGHUP, SIGWINCH and SIGCONT come from *@ret_signals (a signalfd) from now on, which wakes
 * @epoll; threads that are started later receive none of them either. -errno: then it may be open, too; else
 * it is as it was.
 */
int signals_take(int epoll, int *ret_signals);

enum screen_signal {
	SCREEN_SIGNAL_NONE,
	SCREEN_SIGNAL_RESIZED,
	SCREEN_SIGNAL_CONTINUED, /* others may have written to the terminal meanwhile */
	SCREEN_SIGNAL_END
};

/* The next one. */
enum screen_signal signals_next(int signals);
