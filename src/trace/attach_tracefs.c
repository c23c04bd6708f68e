// SPDX-License-Identifier: Apache-2.0
#include "trace/attach_private.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/mount.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/text.h"
#include "proc/proc.h"
#include "proc/capabilities.h"

/* Where tracefs is not mounted: a mount that no other process sees and that ends with its file descriptor. */
static int mount_own(void)
{
	_cleanup_close_ int fs = fsopen("tracefs", FSOPEN_CLOEXEC);
	int fd;

	if (fs < 0)
		return -errno;
	if (fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
		return -errno;
	fd = fsmount(fs, FSMOUNT_CLOEXEC, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC);
	return fd < 0 ? -errno : fd;
}

int attach_tracefs_open(struct attach_backend *backend, struct attach_error *ret_error)
{
	static const char *const places[] = { "/sys/kernel/tracing", "/sys/kernel/debug/tracing" };
	int fd = -1;

	for (size_t i = 0; i < ARRAY_SIZE(places) && fd < 0; i++) {
		fd = open(places[i], O_PATH | O_DIRECTORY | O_CLOEXEC);
		if (fd >= 0 && faccessat(fd, "events", F_OK, AT_EACCESS) < 0) {
			close(fd);
			fd = -1;
		}
	}
	if (fd < 0)
		fd = mount_own();
	if (fd < 0) {
		attach_error_set(
			ret_error,
			"tracefs is not mounted and cannot be (%s); %s, so tracing needs it: mount -t "
			"tracefs tracefs /sys/kernel/tracing, "
			"as root",
			strerror(-fd), attach_why_events());
		return fd;
	}
	backend->tracefs = fd;
	if (faccessat(fd, "uprobe_events", W_OK, AT_EACCESS) < 0) {
		int r = -errno;

		struct capability_lack lacks[CAPABILITY_LACKS_MAX];

		if (r == -ENOENT)
			attach_error_set(ret_error,
					 "tracefs has no uprobe_events: tracing needs a kernel built with "
					 "CONFIG_UPROBE_EVENTS");
		else if (capability_lacks(CAPABILITY_FOR(EVENT), lacks) > 0)
			attach_error_set(ret_error, "%s, and %s; %s", lacks[0].cause, attach_why_events(),
					 lacks[0].remedy);
		else
			attach_error_refused(ret_error, "uprobe_events in tracefs cannot be written", r);
		return r == -ENOENT ? -EOPNOTSUPP : r;
	}
	return 0;
}

int attach_tracefs_write(struct attach_backend *backend, const char *text, size_t n)
{
	/* Without O_APPEND, opening would remove the events of all programs. */
	_cleanup_close_ int fd = openat(backend->tracefs, "uprobe_events", O_WRONLY | O_APPEND | O_CLOEXEC);
	ssize_t written;

	if (fd < 0)
		return -errno;
	written = write_all(fd, text, n);
	return written < 0 ? (int)written : 0;
}

int attach_tracefs_event_id(struct attach_backend *backend, const char *name, uint64_t *ret_id)
{
	char path[ATTACH_NAME_MAX + 16], text[32];
	size_t n;
	int r;

	snprintf(path, sizeof(path), "events/%s/id", name);
	r = read_file_at(backend->tracefs, path, text, sizeof(text), &n);
	if (r < 0)
		return r;
	text[strcspn(text, "\n")] = '\0';
	return parse_u64(text, ret_id);
}

/*
 * "p:gpusonde/g123_456_7 /path:0x…": whether gpusonde created it and that process has ended. @name: its name.
 */
static bool is_left_over(const char *line, char name[static ATTACH_NAME_MAX])
{
	struct process_id creator, now;

	if ((line[0] != 'p' && line[0] != 'r') || sscanf(line + 1, ":%63[^ \n]", name) != 1 ||
	    sscanf(name, "gpusonde/g%" SCNu32 "_%" SCNu64, &creator.pid, &creator.start_ticks) != 2)
		return false;
	return proc_process_id("/proc", creator.pid, &now) < 0 || !process_id_equal(now, creator);
}

int attach_tracefs_clean(struct attach_backend *backend)
{
	_cleanup_close_ int fd = openat(backend->tracefs, "uprobe_events", O_RDONLY | O_CLOEXEC);
	FILE *file = fd < 0 ? NULL : fdopen(fd, "re");
	char last[ATTACH_NAME_MAX] = "", name[ATTACH_NAME_MAX], *line = NULL;
	size_t size = 0;

	if (!file)
		return -errno;
	(void)TAKE_FD(fd);
	while (getline(&line, &size, file) >= 0) {
		char text[ATTACH_NAME_MAX + 8];

		if (!is_left_over(line, name) || strcmp(name, last) == 0)
			continue;
		/*
		 * If a process outside this PID namespace uses it, this fails with -EBUSY, and the event
		 * stays.
		 */
		attach_tracefs_write(backend, text, (size_t)snprintf(text, sizeof(text), "-:%s\n", name));
		memcpy(last, name, sizeof(last));
	}
	free(line);
	fclose(file);
	return 0;
}
