// SPDX-License-Identifier: Apache-2.0
#include "owners/toolkit.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "base/cursor.h"
#include "base/fd.h"
#include "base/macro.h"

enum { FILE_MAX = 16 << 10 }; /* bytes; NVIDIA's own has 2 KiB */

const struct toolkit toolkit_unknown = { .known = false, .variable = true, .mounts = true };
static const struct toolkit defaults = { .known = true, .variable = true, .mounts = false };

/* A line "KEY = true"; the key may be quoted. False: it is none, or has another value. */
static bool takes_value(struct cursor line, const char *key, bool *ret_value)
{
	bool quoted = cursor_literal(&line, "\"");

	if (!cursor_literal(&line, key) || (quoted && !cursor_literal(&line, "\"")))
		return false;
	cursor_skip_space(&line);
	if (!cursor_literal(&line, "="))
		return false;
	cursor_skip_space(&line);
	if (cursor_literal(&line, "true"))
		*ret_value = true;
	else if (cursor_literal(&line, "false"))
		*ret_value = false;
	else
		return false;
	return true;
}

struct toolkit toolkit_parse(const char *text, size_t n)
{
	struct cursor all = cursor_over(text, n), line;
	struct toolkit toolkit = defaults;

	while (!cursor_eof(&all)) {
		line = all;
		if (cursor_until(&all, '\n', &line) < 0)
			all.p = all.end;
		cursor_skip_space(&line);
		/* Both keys are of the file itself, which come before the first table. */
		if (!cursor_eof(&line) && *line.p == '[')
			break;
		(void)(takes_value(line, "accept-nvidia-visible-devices-envvar-when-unprivileged",
				   &toolkit.variable) ||
		       takes_value(line, "accept-nvidia-visible-devices-as-volume-mounts", &toolkit.mounts));
	}
	return toolkit;
}

static bool is_own_root(int root)
{
	struct stat ours, theirs;

	return stat("/", &ours) == 0 && fstat(root, &theirs) == 0 && ours.st_dev == theirs.st_dev &&
	       ours.st_ino == theirs.st_ino;
}

static bool is_roots(int fd)
{
	struct stat st;

	return fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_uid == 0 && !(st.st_mode & 022);
}

static struct toolkit read_toolkit(int root)
{
	_cleanup_close_ int fd = fd_open_below(root, TOOLKIT_FILE, O_RDONLY | O_NONBLOCK | O_NOCTTY);
	char text[FILE_MAX + 1];
	size_t n;

	if (fd == -ENOENT && is_own_root(root))
		return defaults;
	if (fd < 0 || !is_roots(fd) || read_fd(fd, text, sizeof(text), &n) < 0)
		return toolkit_unknown;
	return toolkit_parse(text, n);
}

bool toolkit_read(struct toolkit *toolkit, int root)
{
	struct toolkit before = *toolkit;

	*toolkit = read_toolkit(root);
	return toolkit->known != before.known || toolkit->variable != before.variable ||
	       toolkit->mounts != before.mounts;
}
