// SPDX-License-Identifier: Apache-2.0
#include "cmd/output.h"

#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/text.h"

/* NO_COLOR: https://no-color.org */
static bool is_colour_terminal(int fd)
{
	const char *term = getenv("TERM"), *no_color = getenv("NO_COLOR");

	return isatty(fd) && !(no_color && *no_color) && term && !STRV_EQ(term, "dumb");
}

struct table_options output_options(const struct invocation *inv, int fd)
{
	const char *color = inv->flag[FLAG_COLOR];
	bool automatic = !color || STRV_EQ(color, "auto");
	struct table_options options = { .colour = automatic ? is_colour_terminal(fd) :
							       STRV_EQ(color, "always") };
	struct winsize size;

	if (isatty(fd) && ioctl(fd, TIOCGWINSZ, &size) == 0)
		options.width = size.ws_col;
	return options;
}
