// SPDX-License-Identifier: Apache-2.0
/* What the files of a support archive have of the machine. */
#include "cmd/doctor/bundle.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <systemd/sd-journal.h>
#include <time.h>
#include <unistd.h>

#include "agent/readiness.h"
#include "base/clock.h"
#include "base/fd.h"
#include "config/places.h"
#include "view/table/table.h"

enum { ENTRIES_MAX = 4096, FILES_SHOWN = 64, LINE_BYTES = 1024 };

/* ---- GPUs ---- */

/* One word of a file of a device; "-": unknown. */
static void device_word(const char *device, const char *name, char ret_word[static 64])
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), PCI_DEVICES "/%.64s/%s", device, name);
	if (read_file(path, ret_word, 64, NULL) < 0)
		snprintf(ret_word, 64, "-");
	ret_word[strcspn(ret_word, "\n")] = 0;
}

static void add_pci_gpu(struct strbuf *out, const char *device)
{
	char vendor[64], id[64], class[64], node[64], path[PATH_MAX], driver[PATH_MAX];
	ssize_t n;

	device_word(device, "vendor", vendor);
	if (!STRV_EQ(vendor, "0x10de"))
		return;
	device_word(device, "device", id);
	device_word(device, "class", class);
	device_word(device, "numa_node", node);
	snprintf(path, sizeof(path), PCI_DEVICES "/%.64s/driver", device);
	n = readlink(path, driver, sizeof(driver) - 1);
	driver[MAX(n, 0)] = 0;
	strbuf_addf(out, "%.64s vendor %s device %s class %s NUMA node %s driver %s\n", device, vendor, id,
		    class, node, n > 0 && strrchr(driver, '/') ? strrchr(driver, '/') + 1 : "none");
}

static void add_nodes(struct strbuf *out)
{
	DIR *dir = opendir("/dev");
	struct dirent *e;

	while (dir && (e = readdir(dir))) {
		struct stat st;

		if (strncmp(e->d_name, "nvidia", 6) == 0 &&
		    fstatat(dirfd(dir), e->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0)
			strbuf_addf(out, "/dev/%.64s mode %o owner %u:%u\n", e->d_name, (unsigned)st.st_mode,
				    st.st_uid, st.st_gid);
	}
	if (dir)
		closedir(dir);
}

void bundle_gpus(_unused_ const struct bundle_source *source, struct bundle_item *item)
{
	struct strbuf *out = &item->text;
	char line[512];
	struct dirent *e;
	DIR *dir = opendir(PCI_DEVICES);
	FILE *modules = fopen("/proc/modules", "re");

	while (dir && (e = readdir(dir)))
		if (e->d_name[0] != '.')
			add_pci_gpu(out, e->d_name);
	if (out->len == 0)
		strbuf_adds(out, "no device of NVIDIA on the PCI bus\n");
	add_nodes(out);
	while (modules && fgets(line, sizeof(line), modules))
		if (strncmp(line, "nvidia", 6) == 0 || strncmp(line, "nouveau", 7) == 0)
			strbuf_addf(out, "module %s", line);
	if (dir)
		closedir(dir);
	if (modules)
		fclose(modules);
}

/* ---- the agent's process ---- */

void bundle_process(const struct bundle_source *source, struct bundle_item *item)
{
	static const char *const files[] = { "cgroup", "status", "limits", "oom_score_adj", "schedstat" };
	static const char *const of_cgroup[] = { "memory.max", "memory.high", "memory.current", "cpu.max",
						 "pids.max" };
	json_int_t pid = json_integer_value(json_object_get(source->doctor->status, "pid"));
	char path[PATH_MAX], cgroup[1024], *end;

	if (pid <= 0)
		strbuf_adds(&item->text, "# no agent is known: this is of gpusonde doctor\n");
	for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
		snprintf(path, sizeof(path), "/proc/%lld/%s", pid > 0 ? (long long)pid : (long long)getpid(),
			 files[i]);
		bundle_add_file(&item->text, path);
	}
	snprintf(path, sizeof(path), "/proc/%lld/cgroup", pid > 0 ? (long long)pid : (long long)getpid());
	if (read_file(path, cgroup, sizeof(cgroup), NULL) < 0 || strncmp(cgroup, "0::", 3) != 0)
		return; /* not version 2's alone */
	end = strchr(cgroup, '\n');
	if (end)
		*end = 0;
	for (size_t i = 0; i < ARRAY_SIZE(of_cgroup); i++) {
		snprintf(path, sizeof(path), "/sys/fs/cgroup%s/%s", cgroup + 3, of_cgroup[i]);
		bundle_add_file(&item->text, path);
	}
}

/* ---- the journal ---- */

static void add_entry(sd_journal *journal, struct strbuf *out)
{
	const void *data;
	size_t n;
	uint64_t us = 0;
	time_t seconds;
	struct tm tm;
	char text[LINE_BYTES], when[32];

	if (sd_journal_get_data(journal, "MESSAGE", &data, &n) < 0 || n < strlen("MESSAGE="))
		return;
	sd_journal_get_realtime_usec(journal, &us);
	seconds = (time_t)(us / 1000000);
	gmtime_r(&seconds, &tm);
	strftime(when, sizeof(when), "%FT%TZ", &tm);
	snprintf(text, sizeof(text), "%.*s", (int)MIN(n - strlen("MESSAGE="), sizeof(text) - 1),
		 (const char *)data + strlen("MESSAGE="));
	strbuf_addf(out, "%s ", when);
	text_clean(out, text);
	strbuf_addc(out, '\n');
}

/* From the newest that fit on; in the order of their time. */
static void add_entries(sd_journal *journal, int64_t end_ns, struct strbuf *out)
{
	unsigned n = 0;
	int r = sd_journal_seek_tail(journal);

	if (r >= 0)
		r = sd_journal_previous_skip(journal, ENTRIES_MAX);
	for (; r > 0 && n <= ENTRIES_MAX && clock_boot_ns() < end_ns; n++) {
		add_entry(journal, out);
		r = sd_journal_next(journal);
	}
}

void bundle_journal(const struct bundle_source *source, struct bundle_item *item)
{
	static const char *const units[] = { "gpusonde.service", "gpusonde-web.service", "atopgpu.service" };
	sd_journal *journal = NULL;
	int r = sd_journal_open(&journal, SD_JOURNAL_LOCAL_ONLY);

	for (size_t i = 0; r >= 0 && i < ARRAY_SIZE(units); i++) {
		char match[64];

		snprintf(match, sizeof(match), "_SYSTEMD_UNIT=%s", units[i]);
		r = sd_journal_add_match(journal, match, 0);
	}
	if (r >= 0)
		add_entries(journal, source->end_ns, &item->text);
	if (r < 0)
		bundle_lacks(item, "the journal cannot be read: %s", strerror(-r));
	else if (item->text.len == 0)
		bundle_lacks(item,
			     "no line of gpusonde.service that this user can read: it does not run, logs "
			     "elsewhere, "
			     "or sudo "
			     "is needed");
	sd_journal_close(journal);
}

/* ---- timelines ---- */

static int later_first(const struct dirent **a, const struct dirent **b)
{
	return strcmp((*b)->d_name, (*a)->d_name);
}

static int is_timeline(const struct dirent *entry)
{
	return entry->d_name[0] != '.';
}

void bundle_timelines(const struct bundle_source *source, struct bundle_item *item)
{
	const char *state = json_string_value(json_object_get(source->doctor->status, "state_dir"));
	const char *named = options_text(&source->doctor->invocation->options, OPT_timeline_directory);
	struct dirent **files = NULL;
	struct place place;
	char path[PATH_MAX];
	int n;

	if (!state)
		state = place_state(&source->doctor->invocation->options, &place);
	snprintf(path, sizeof(path), "%s%s", named ? named : state, named ? "" : "/timelines");
	n = scandir(path, &files, is_timeline, later_first);
	if (n < 0)
		bundle_lacks(item, "%.100s: %s", path, strerror(errno));
	for (int i = 0; i < n; i++) {
		struct stat st;
		char whole[PATH_MAX + 256];

		snprintf(whole, sizeof(whole), "%s/%s", path, files[i]->d_name);
		if (i < FILES_SHOWN && lstat(whole, &st) == 0) {
			strbuf_addf(&item->text, "%12lld ", (long long)st.st_size);
			text_clean(&item->text, files[i]->d_name);
			strbuf_addc(&item->text, '\n');
		}
		free(files[i]);
	}
	free(files);
}
