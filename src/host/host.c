// SPDX-License-Identifier: Apache-2.0
#include "host/host.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "host/parse.h"

/* Some thousands of lines of a list. Memory that no file fills is not touched. */
enum { TEXT_BYTES = 512 << 10 };

struct host_source {
	char proc[PATH_MAX], blocks[PATH_MAX];
	bool network; /* the machine's can be seen */
	char text[TEXT_BYTES];
};

static const char *const file_names[HOST_FILES] = {
	[HOST_STAT] = "stat",
	[HOST_LOADAVG] = "loadavg",
	[HOST_MEMINFO] = "meminfo",
	[HOST_PRESSURE_CPU] = "pressure/cpu",
	[HOST_PRESSURE_MEMORY] = "pressure/memory",
	[HOST_PRESSURE_IO] = "pressure/io",
};

/*
 * Why a file says nothing. Without pressure stall information there is no file, or one that cannot be read.
 */
static uint8_t presence_of_error(int error)
{
	switch (error) {
	case -ENOENT:
	case -ENOTDIR:
	case -EOPNOTSUPP:
		return PRESENCE_UNSUPPORTED;
	case -EACCES:
	case -EPERM:
		return PRESENCE_NO_PERMISSION;
	default:
		return PRESENCE_FAILED;
	}
}

static uint8_t read_text(struct host_source *source, const char *name, struct cursor *ret_text)
{
	char path[PATH_MAX];
	size_t n;
	int r;

	if (snprintf(path, sizeof(path), "%s/%s", source->proc, name) >= (int)sizeof(path))
		return PRESENCE_FAILED;
	r = read_file(path, source->text, sizeof(source->text), &n);
	if (r < 0)
		return presence_of_error(r);
	*ret_text = cursor_over(source->text, n);
	return PRESENCE_PRESENT;
}

static void read_numbers(struct host_source *source, enum host_file file, struct host *host)
{
	struct cursor text;
	uint8_t p = read_text(source, file_names[file], &text);

	for (unsigned i = 0; i < HOST_METRICS; i++)
		if (host_columns[i].file == file)
			host->p[i] = presence_is(p) ? host_parse(text, &host_columns[i], &host->v[i]) : p;
}

/* Partitions have no folder there. What is a slash in a name is '!' in the folder's. */
static bool is_disk(const char *name, void *userdata)
{
	struct host_source *source = userdata;
	char path[PATH_MAX];
	int n = snprintf(path, sizeof(path), "%s/%s", source->blocks, name);

	if (n >= (int)sizeof(path) || STRV_EQ(name, ".") || STRV_EQ(name, ".."))
		return false;
	for (char *c = path + strlen(source->blocks) + 1; *c; c++)
		if (*c == '/')
			*c = '!';
	return access(path, F_OK) == 0;
}

static void read_disks(struct host_source *source, struct host *host)
{
	struct cursor text;
	uint8_t p = access(source->blocks, F_OK) < 0 ? presence_of_error(-errno) :
						       read_text(source, "diskstats", &text);

	host->p[HOST_DISKS_LEFT_OUT] = p;
	if (presence_is(p))
		host->v[HOST_DISKS_LEFT_OUT] =
			host_parse_disks(text, is_disk, source, &host->devices[HOST_DISKS]);
}

static void read_interfaces(struct host_source *source, struct host *host)
{
	struct cursor text;
	uint8_t p = source->network ? read_text(source, "1/net/dev", &text) : PRESENCE_UNSUPPORTED;

	host->p[HOST_INTERFACES_LEFT_OUT] = p;
	if (presence_is(p))
		host->v[HOST_INTERFACES_LEFT_OUT] =
			host_parse_interfaces(text, &host->devices[HOST_INTERFACES]);
}

void host_source_read(struct host_source *source, struct host *ret_reading)
{
	*ret_reading = (struct host){ .read = true };
	for (unsigned file = HOST_NO_FILE + 1; file < HOST_FILES; file++)
		read_numbers(source, file, ret_reading);
	read_disks(source, ret_reading);
	read_interfaces(source, ret_reading);
}

/*
 * @root's folder if it has @probe, else the one of this program's root. True: @root's was taken, and is
 * another one.
 */
static bool choose_folder(const char *root, const char *folder, const char *probe,
			  char ret_path[static PATH_MAX])
{
	const char *end = root + strlen(root);
	char path[PATH_MAX];

	while (end > root && end[-1] == '/')
		end--;
	if (end > root &&
	    snprintf(path, sizeof(path), "%.*s%s%s", (int)(end - root), root, folder, probe) < PATH_MAX &&
	    access(path, F_OK) == 0) {
		snprintf(ret_path, PATH_MAX, "%.*s%s", (int)(end - root), root, folder);
		return true;
	}
	snprintf(ret_path, PATH_MAX, "%s", folder);
	return false;
}

int host_source_new(const struct host_config *config, struct host_source **ret_source)
{
	struct host_source *source = calloc(1, sizeof(*source));

	if (!source)
		return -ENOMEM;
	source->network = choose_folder(config->root, "/proc", "/stat", source->proc) || config->sees_all;
	choose_folder(config->root, "/sys/block", "", source->blocks);
	*ret_source = source;
	return 0;
}

void host_source_free(struct host_source *source)
{
	free(source);
}
