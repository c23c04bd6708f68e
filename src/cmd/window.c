// SPDX-License-Identifier: Apache-2.0
#include "cmd/window.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include "base/fd.h"
#include "screen/signals.h"

/* xterm's, which every terminal of today has: alternate screen and cursor (private modes 1049 and 25). */
static const char enter[] = "\033[?1049h\033[?25l\033[H\033[2J";
static const char leave[] = "\033[?25h\033[?1049l";

struct window {
	int epoll, signals;
	bool keys; /* standard input is a terminal, too */
	struct termios before;
	struct winsize size; /* zero: not known */
};

static void measure(struct window *window)
{
	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &window->size) < 0)
		window->size = (struct winsize){ 0 };
}

/* Keys come one by one and are not shown; Ctrl-C stays a signal. */
static void take_keys(struct window *window)
{
	struct termios raw;

	if (tcgetattr(STDIN_FILENO, &window->before) < 0)
		return;
	raw = window->before;
	raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
	window->keys =
		epoll_watch(window->epoll, STDIN_FILENO) == 0 && tcsetattr(STDIN_FILENO, TCSANOW, &raw) == 0;
}

int window_open(struct window **ret_window)
{
	struct window *window = calloc(1, sizeof(*window));
	int r;

	if (!window)
		return -ENOMEM;
	window->signals = -1;
	window->epoll = epoll_create1(EPOLL_CLOEXEC);
	r = window->epoll < 0 ? -errno : signals_take(window->epoll, &window->signals);
	if (r < 0) {
		closep(&window->signals);
		closep(&window->epoll);
		free(window);
		return r;
	}
	take_keys(window);
	measure(window);
	write_all(STDOUT_FILENO, enter, strlen(enter));
	*ret_window = window;
	return 0;
}

void window_close(struct window *window)
{
	if (!window)
		return;
	write_all(STDOUT_FILENO, leave, strlen(leave));
	if (window->keys)
		tcsetattr(STDIN_FILENO, TCSANOW, &window->before);
	closep(&window->signals);
	closep(&window->epoll);
	free(window);
}

unsigned window_width(const struct window *window)
{
	return window->size.ws_col;
}

/* Overwrites the previous page: clearing it first would flicker. */
int window_draw(struct window *window, const struct strbuf *page)
{
	unsigned lines = 0, row = 0, rows = window->size.ws_row;
	const char *at = page->data, *end = page->data + page->len;
	struct strbuf out;
	ssize_t r;

	for (const char *p = at; p < end; p++)
		lines += *p == '\n';
	strbuf_init(&out, 0);
	strbuf_adds(&out, "\033[H");
	while (at < end && (!rows || row + 1 < rows)) {
		const char *newline = memchr(at, '\n', (size_t)(end - at));
		const char *stop = newline ? newline : end;

		strbuf_add(&out, at, (size_t)(stop - at));
		strbuf_adds(&out, "\033[K\r\n");
		at = newline ? newline + 1 : end;
		row++;
	}
	strbuf_adds(&out, "\033[J");
	if (lines > row)
		strbuf_addf(&out, "%u more lines: enlarge the window", lines - row);
	r = out.failed ? -ENOMEM : write_all(STDOUT_FILENO, out.data, out.len);
	strbuf_done(&out);
	return r < 0 ? (int)r : 0;
}

int window_fd(const struct window *window)
{
	return window->epoll;
}

static enum window_event take_signal(struct window *window)
{
	enum screen_signal signal = signals_next(window->signals);

	if (signal == SCREEN_SIGNAL_NONE || signal == SCREEN_SIGNAL_END)
		return signal == SCREEN_SIGNAL_END ? WINDOW_QUIT : WINDOW_NONE;
	/* Whoever had the terminal meanwhile may have left anything there. */
	if (signal == SCREEN_SIGNAL_CONTINUED)
		write_all(STDOUT_FILENO, enter, strlen(enter));
	measure(window);
	return WINDOW_RESIZED;
}

static enum window_event take_key(void)
{
	char key;
	ssize_t n = read(STDIN_FILENO, &key, 1);

	return n == 0 || (n < 0 && errno != EINTR && errno != EAGAIN) ||
			       (n == 1 && (key == 'q' || key == 'Q')) ?
		       WINDOW_QUIT :
		       WINDOW_NONE;
}

enum window_event window_take(struct window *window)
{
	struct epoll_event event;

	if (epoll_wait(window->epoll, &event, 1, 0) != 1)
		return WINDOW_NONE;
	return event.data.fd == window->signals ? take_signal(window) : take_key();
}
