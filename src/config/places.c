// SPDX-License-Identifier: Apache-2.0
#include "config/places.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/macro.h"
#include "nvml/spawn.h"

#define SOCKET_FILE "gpusonde.sock"
/* sun_path of unix(7), with its NUL. */
enum { SOCKET_PATH_MAX = 108 };

static bool may_write(const char *folder)
{
	return faccessat(AT_FDCWD, folder, W_OK | X_OK, AT_EACCESS) == 0;
}

/*
 * An absolute path from an environment variable; NULL if it is unset or relative (as the XDG rules require).
 */
static const char *folder_variable(const char *name)
{
	const char *folder = getenv(name);

	return folder && folder[0] == '/' ? folder : NULL;
}

/* Any user can create folders in /tmp: only one that we own and that nobody else can enter is trusted. */
static bool is_private(const char *folder)
{
	struct stat st;

	return lstat(folder, &st) == 0 && S_ISDIR(st.st_mode) && st.st_uid == geteuid() &&
	       (st.st_mode & 077) == 0;
}

static bool uses_system(void)
{
	return geteuid() == 0 || may_write("/run/gpusonde");
}

/*
 * The folder of a user's own socket. -EPERM: the folder cannot be trusted, or does not exist; another error:
 * it cannot be created.
 */
static int own_folder(struct place *place, bool make)
{
	const char *runtime = folder_variable("XDG_RUNTIME_DIR");

	if (runtime && strlen(runtime) + sizeof("/" SOCKET_FILE) <= SOCKET_PATH_MAX && may_write(runtime)) {
		snprintf(place->path, sizeof(place->path), "%s", runtime);
		return 0;
	}
	snprintf(place->path, sizeof(place->path), "/tmp/gpusonde-%u", geteuid());
	if (make && mkdir(place->path, 0700) < 0 && errno != EEXIST)
		/* place_socket()'s callers use these two for other cases. */
		return errno == ENOENT ? -ENOTDIR : errno == EPERM ? -EACCES : -errno;
	return is_private(place->path) ? 0 : -EPERM;
}

static int own_socket(struct place *place, bool make)
{
	int r = own_folder(place, make);

	strcat(place->path, "/" SOCKET_FILE); /* the folder's path is short enough for this */
	return r;
}

static bool is_default(const struct options *options, enum option_id id)
{
	return options->v[id].text[0] == 0;
}

int place_socket(const struct options *options, bool make, struct place *ret_place)
{
	const char *socket = options_text(options, OPT_control_socket);

	if (!socket && !is_default(options, OPT_control_socket))
		return -ENOENT;
	if (socket || uses_system())
		snprintf(ret_place->path, sizeof(ret_place->path), "%s", socket ? socket : PLACE_SOCKET);
	else
		return own_socket(ret_place, make);
	return 0;
}

unsigned places_of_socket(const struct options *options, struct place ret_places[static PLACE_SOCKETS])
{
	const char *socket = options_text(options, OPT_control_socket);
	unsigned n = 0;

	if (!socket && !is_default(options, OPT_control_socket))
		return 0;
	if (!socket && geteuid() != 0)
		n += own_socket(&ret_places[0], false) == 0;
	snprintf(ret_places[n].path, sizeof(ret_places[n].path), "%s", socket ? socket : PLACE_SOCKET);
	return n + 1;
}

/* Length of a folder's path without trailing slashes. */
static int length_of(const char *folder)
{
	size_t n = strlen(folder);

	while (n > 0 && folder[n - 1] == '/')
		n--;
	return (int)MIN(n, (size_t)PATH_MAX);
}

const char *place_state(const struct options *options, struct place *place)
{
	const char *dir = options_text(options, OPT_state_dir), *home;

	if (!dir)
		dir = folder_variable("STATE_DIRECTORY");
	if (!dir && geteuid() != 0 && !may_write(PLACE_STATE)) {
		dir = folder_variable("XDG_STATE_HOME");
		home = folder_variable("HOME");
		if (dir || home) {
			const char *above = dir ? dir : home;

			snprintf(place->path, sizeof(place->path), "%.*s%s/gpusonde", length_of(above), above,
				 dir ? "" : "/.local/state");
			return place->path;
		}
	}
	snprintf(place->path, sizeof(place->path), "%s", dir ? dir : PLACE_STATE);
	return place->path;
}

const char *place_of_option(const struct options *options, enum option_id id, struct place *place)
{
	switch (id) {
	case OPT_control_socket:
		/* A folder below /tmp is named even if it does not exist yet. */
		if (place_socket(options, false, place) != -ENOENT)
			return place->path;
		break;
	case OPT_state_dir:
		return place_state(options, place);
	case OPT_nvml_helper:
		spawn_find_helper(options_text(options, id), place->path);
		return place->path;
	default:
		break;
	}
	return options->v[id].text;
}

int place_make_folder(const char *path, unsigned mode)
{
	struct place place;
	int first = 0;

	if (strlen(path) >= sizeof(place.path))
		return -ENAMETOOLONG;
	strcpy(place.path, path);
	for (char *slash = strchr(place.path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = 0;
		/*
		 * Remember the first error, but it matters only if the last mkdir() fails: some existing
		 * folders can be entered but not created.
		 */
		if (mkdir(place.path, mode) < 0 && errno != EEXIST && first == 0)
			first = -errno;
		*slash = '/';
	}
	if (mkdir(place.path, mode) == 0 || errno == EEXIST)
		return 0;
	return errno == ENOENT && first < 0 ? first : -errno;
}
