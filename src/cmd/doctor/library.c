// SPDX-License-Identifier: Apache-2.0
/* doctor's check of the driver's library: which one is loaded, or why it cannot be loaded. */
#include "cmd/doctor/doctor.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "elf/elf.h"

#if defined(__aarch64__)
enum { OWN_MACHINE = EM_AARCH64 };
#define OWN_FOLDER "/usr/lib/aarch64-linux-gnu"
#else
enum { OWN_MACHINE = EM_X86_64 };
#define OWN_FOLDER "/usr/lib/x86_64-linux-gnu"
#endif

enum { LINE_MAX_BYTES = PATH_MAX + 128 };

static const char *machine_name(unsigned machine, char buf[static 24])
{
	static const struct {
		unsigned machine;
		const char *name;
	} names[] = {
		{ EM_X86_64, "x86_64" }, { EM_AARCH64, "aarch64" }, { EM_386, "i386" },
		{ EM_ARM, "arm" },       { EM_PPC64, "ppc64" },     { EM_RISCV, "riscv" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (names[i].machine == machine)
			return names[i].name;
	snprintf(buf, 24, "machine %u", machine);
	return buf;
}

static int is_nvml(const struct elf_symbol *symbol, _unused_ void *userdata)
{
	return strncmp(symbol->name, "nvmlInit", strlen("nvmlInit")) == 0;
}

static bool find_content_fault(int fd, char *ret_text, size_t size)
{
	_cleanup_(elf_closep) struct elf_file *file = NULL;
	const char *fault = NULL;

	if (elf_open(fd, &file) < 0)
		fault = "is damaged: its headers are inconsistent";
	else if (elf_is_cut(file))
		fault = "is damaged: it is truncated, perhaps by an incomplete copy";
	else if (elf_functions(file, is_nvml, NULL) != 1)
		fault = "is no NVML library: it has no nvmlInit";
	if (fault)
		snprintf(ret_text, size, "%s", fault);
	return fault;
}

/* Why a file cannot be loaded, as a text to follow its name; false: no reason found. */
static bool find_fault(const char *path, char *ret_text, size_t size)
{
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	unsigned char header[sizeof(Elf64_Ehdr)];
	char its[24], ours[24];
	uint16_t machine;
	struct stat st;
	ssize_t n;

	if (fd < 0 || fstat(fd, &st) < 0) {
		snprintf(ret_text, size, "%s", errno == ENOENT ? "does not exist" : strerror(errno));
		return true;
	}
	n = S_ISREG(st.st_mode) ? pread(fd, header, sizeof(header), 0) : -1;
	if (n < SELFMAG || memcmp(header, ELFMAG, SELFMAG) != 0) {
		snprintf(ret_text, size, "is no library");
		return true;
	}
	if (n < (ssize_t)sizeof(header)) {
		snprintf(ret_text, size, "is damaged: it ends within its first header");
		return true;
	}
	/* The offset is the same in 32-bit and 64-bit files. */
	memcpy(&machine, header + offsetof(Elf64_Ehdr, e_machine), sizeof(machine));
	if (machine != OWN_MACHINE) {
		snprintf(ret_text, size, "is for %s, and this gpusonde for %s", machine_name(machine, its),
			 machine_name(OWN_MACHINE, ours));
		return true;
	}
	return find_content_fault(fd, ret_text, size);
}

/* Searches the most common directories of the loader for a name without a slash. */
static bool find_file(const char *name, char ret_path[static PATH_MAX])
{
	static const char *const folders[] = { OWN_FOLDER, "/usr/lib64", "/usr/lib", "/usr/lib/wsl/lib",
					       "/run/opengl-driver/lib" };
	const char *path = getenv("LD_LIBRARY_PATH");

	if (strchr(name, '/')) {
		snprintf(ret_path, PATH_MAX, "%s", name);
		return true;
	}
	for (; path && *path; path += strspn(path, ":")) {
		int n = (int)strcspn(path, ":");

		snprintf(ret_path, PATH_MAX, "%.*s/%s", n, path, name);
		if (access(ret_path, F_OK) == 0)
			return true;
		path += n;
	}
	for (size_t i = 0; i < ARRAY_SIZE(folders); i++) {
		snprintf(ret_path, PATH_MAX, "%s/%s", folders[i], name);
		if (access(ret_path, F_OK) == 0)
			return true;
	}
	return false;
}

/* Whether a line of /proc/PID/maps names a deleted file with the library's name, except for its version. */
static bool is_deleted(const char *line, const char *library)
{
	static const char deleted[] = " (deleted)\n";
	const char *name = strrchr(library, '/'), *path = strchr(line, '/'), *version;
	size_t n = strlen(line), stem;

	name = name ? name + 1 : library;
	version = strstr(name, ".so");
	stem = version ? (size_t)(version - name) : strlen(name);
	if (!path || n < strlen(deleted) || !STRV_EQ(line + n - strlen(deleted), deleted))
		return false;
	return strncmp(strrchr(path, '/') + 1, name, stem) == 0;
}

/* False also without permission to read the maps of the agent's child. */
static bool agent_has_deleted(const struct doctor *d, const char *library)
{
	json_int_t child = json_integer_value(json_object_get(d->status, "child"));
	char path[64], line[LINE_MAX_BYTES];
	bool found_it = false;
	FILE *maps;

	snprintf(path, sizeof(path), "/proc/%lld/maps", (long long)child);
	maps = child > 0 ? fopen(path, "re") : NULL;
	while (maps && !found_it && fgets(line, sizeof(line), maps))
		found_it = is_deleted(line, library);
	if (maps)
		fclose(maps);
	return found_it;
}

static void check_missing(const struct doctor *d, bool no_gpu_here, struct finding *f)
{
	const struct option_value *wanted = &d->invocation->options.v[OPT_nvml_library];
	bool chosen = wanted->origin != ORIGIN_DEFAULT;
	char path[PATH_MAX], fault[160];

	if (find_file(wanted->text, path) && find_fault(path, fault, sizeof(fault))) {
		found(f, chosen ? VERDICT_FAILED : VERDICT_WARNING, "%.400s %s", path, fault);
		remedy(f,
		       chosen ? "correct nvml.library; without it the driver's own library is used" :
				"install the driver's library again (package libnvidia-ml1, nvidia-utils or "
				"similar)");
	} else if (no_gpu_here && !chosen) {
		found(f, VERDICT_NOTE, "%s is not installed", wanted->text);
	} else {
		found(f, chosen ? VERDICT_FAILED : VERDICT_WARNING, "%s is not loaded", wanted->text);
		remedy(f, "it comes with the driver (package libnvidia-ml1, nvidia-utils or similar); "
			  "set nvml.library to use another one");
	}
}

void check_library(const struct doctor *d, bool no_gpu_here, struct finding *f)
{
	const json_t *node = json_object_get(d->document, "node");
	const char *library = json_string_value(json_object_get(node, "library"));
	const char *error = json_string_value(json_object_get(node, "error"));

	if (!library && d->status && !d->sampled) {
		found(f, no_gpu_here ? VERDICT_NOTE : VERDICT_WARNING, "the agent has loaded no library%s%s",
		      error ? ": " : "", error ? error : "");
	} else if (!library) {
		check_missing(d, no_gpu_here, f);
	} else if (agent_has_deleted(d, library)) {
		found(f, VERDICT_WARNING,
		      "the agent still uses the library that was %s, which has been replaced or "
		      "removed since",
		      library);
		remedy(f, "gpusonde release, then gpusonde resume, which loads the current library");
	} else {
		found(f, VERDICT_OK, "%s", library);
	}
}
