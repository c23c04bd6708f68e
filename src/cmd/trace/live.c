// SPDX-License-Identifier: Apache-2.0
#include "cmd/trace/live.h"

#include <sys/epoll.h>
#include <unistd.h>

static int on_window(sd_event_source *source, _unused_ int fd, _unused_ uint32_t events, void *userdata)
{
	struct window *window = userdata;

	return window_take(window) == WINDOW_QUIT ? sd_event_exit(sd_event_source_get_event(source), 0) : 0;
}

struct window *live_window_open(sd_event *event, const struct invocation *invocation)
{
	struct window *window = NULL;

	if (!isatty(STDOUT_FILENO) ||
	    window_open(output_options(invocation, STDOUT_FILENO).colour, &window) < 0)
		return NULL;
	if (sd_event_add_io(event, NULL, window_fd(window), EPOLLIN, on_window, window) < 0)
		window_close(TAKE_PTR(window));
	return window;
}
