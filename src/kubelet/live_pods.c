// SPDX-License-Identifier: Apache-2.0
#include "kubelet/live_pods.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cursor.h"
#include "base/fd.h"
#include "base/macro.h"

enum {
	UID_SIZE = 48,
	UID_LEAST = 32, /* a static pod's is a hash of 32 digits */
	PODS_MAX = 4096,
	ENTRIES_MAX = 16384, /* that are looked at in one folder */
	DEPTH_MAX = 4, /* kubelet.slice, kubepods, quality of service, pod */
};

/*
 * Where the cgroups may be: of version 2 and, for version 1, hierarchies that kubelet makes all pods'
 * groups in.
 */
static const char *const hierarchies[] = { "sys/fs/cgroup",         "sys/fs/cgroup/unified",
					   "sys/fs/cgroup/systemd", "sys/fs/cgroup/memory",
					   "sys/fs/cgroup/cpu",     "sys/fs/cgroup/pids" };

struct logged_pod {
	char namespace[64], pod[254], uid[UID_SIZE];
};

void live_pods_init(struct live_pods *live)
{
	*live = (struct live_pods){
		.logged = { .size = sizeof(struct logged_pod), .max = PODS_MAX },
		.uids = { .size = UID_SIZE, .max = PODS_MAX },
	};
}

void live_pods_done(struct live_pods *live)
{
	row_list_done(&live->logged);
	row_list_done(&live->uids);
}

/* ---- names ---- */

bool pod_uid_of_cgroup(const char *name, char ret_uid[UID_SIZE])
{
	const char *begin = name;
	size_t n;

	if (strncmp(begin, "pod", 3) != 0) {
		/* The last one: a UID has no letter after f. */
		for (const char *at = name; (at = strstr(at, "-pod")); at++)
			begin = at + 1;
		if (begin == name)
			return false;
	}
	begin += strlen("pod");
	n = strspn(begin, "0123456789abcdef-_");
	if (n < UID_LEAST || n >= UID_SIZE || (begin[n] && !STRV_EQ(begin + n, ".slice")))
		return false;
	for (size_t i = 0; i < n; i++)
		ret_uid[i] = begin[i] == '_' ? '-' : begin[i];
	memset(ret_uid + n, 0, UID_SIZE - n);
	return true;
}

/* NAMESPACE_POD_UID; no name of Kubernetes has '_'. */
static void take_log_folder(struct live_pods *live, const char *name)
{
	struct cursor c = cursor_over(name, strlen(name)), namespace, pod;
	struct logged_pod *logged;

	if (cursor_until(&c, '_', &namespace) < 0 || cursor_until(&c, '_', &pod) < 0 || cursor_eof(&c))
		return;
	logged = row_list_add(&live->logged);
	if (!logged)
		return;
	put_text(logged->namespace, sizeof(logged->namespace), namespace.p, cursor_left(&namespace));
	put_text(logged->pod, sizeof(logged->pod), pod.p, cursor_left(&pod));
	put_text(logged->uid, sizeof(logged->uid), c.p, cursor_left(&c));
}

/* ---- folders ---- */

static DIR *open_folder(int at, const char *path)
{
	int fd = fd_open_below(at, path, O_RDONLY | O_DIRECTORY | O_NONBLOCK);
	DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;

	if (!dir)
		closep(&fd);
	return dir;
}

static bool is_kubelets(const char *name)
{
	return strncmp(name, "kubepods", strlen("kubepods")) == 0 ||
	       strncmp(name, "kubelet", strlen("kubelet")) == 0;
}

/* "burstable", "kubepods-besteffort.slice", and within "kubelet" all of kubelet's. */
static bool is_between(const char *name)
{
	return strstr(name, "burstable") || strstr(name, "besteffort") || is_kubelets(name);
}

static void take_uid(struct live_pods *live, const char *uid)
{
	char *row = row_list_add(&live->uids);

	if (row)
		memcpy(row, uid, UID_SIZE);
}

static void walk(struct live_pods *live, int at, const char *path, unsigned depth)
{
	DIR *dir = open_folder(at, path);
	struct dirent *entry;

	for (unsigned seen = 0; dir && seen < ENTRIES_MAX && (entry = readdir(dir)); seen++) {
		char uid[UID_SIZE];

		if (entry->d_type != DT_DIR)
			continue;
		if (pod_uid_of_cgroup(entry->d_name, uid)) {
			live->seen = true;
			take_uid(live, uid);
		} else if (depth < DEPTH_MAX &&
			   (depth ? is_between(entry->d_name) : is_kubelets(entry->d_name))) {
			live->seen |= strstr(entry->d_name, "kubepods") != NULL;
			walk(live, dirfd(dir), entry->d_name, depth + 1);
		}
	}
	if (dir)
		closedir(dir);
}

static int compare_uid(const void *a, const void *b)
{
	return memcmp(a, b, UID_SIZE);
}

void live_pods_read(struct live_pods *live, int root)
{
	_cleanup_close_ int own_root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = open_folder(root, "var/log/pods");
	const int roots[] = { root, own_root };
	struct dirent *entry;

	row_list_clear(&live->logged);
	row_list_clear(&live->uids);
	live->seen = false;
	for (unsigned seen = 0; dir && seen < ENTRIES_MAX && (entry = readdir(dir)); seen++)
		take_log_folder(live, entry->d_name);
	if (dir)
		closedir(dir);
	/* The first hierarchy that has kubelet's groups has them all. */
	for (size_t r = 0; r < ARRAY_SIZE(roots); r++)
		for (size_t i = 0; i < ARRAY_SIZE(hierarchies) && !live->seen; i++)
			walk(live, roots[r], hierarchies[i], 0);
	if (live->uids.n)
		qsort(live->uids.list, live->uids.n, UID_SIZE, compare_uid);
	/* What did not fit may live. */
	live->seen &= live->uids.dropped == 0 && live->logged.dropped == 0;
}

static bool has_cgroup(const struct live_pods *live, const char *uid)
{
	return live->uids.n && bsearch(uid, live->uids.list, live->uids.n, UID_SIZE, compare_uid);
}

enum liveness live_pods_find(const struct live_pods *live, const char *namespace, const char *pod,
			     char ret_uid[UID_SIZE])
{
	const struct logged_pod *list = live->logged.list, *only = NULL;
	unsigned folders = 0, lives = 0;

	ret_uid[0] = '\0';
	for (uint32_t i = 0; i < live->logged.n; i++) {
		if (!STRV_EQ(list[i].pod, pod) || !STRV_EQ(list[i].namespace, namespace))
			continue;
		folders++;
		if (!live->seen || has_cgroup(live, list[i].uid)) {
			lives++;
			only = &list[i];
		}
	}
	if (lives == 1)
		memcpy(ret_uid, only->uid, UID_SIZE);
	if (folders == 0 || !live->seen)
		return POD_UNKNOWN;
	return lives ? POD_LIVES : POD_ENDED;
}
