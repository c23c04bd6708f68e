// SPDX-License-Identifier: Apache-2.0
#include "proc/trust.h"

#include <errno.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

enum { TRUSTED_MAX = 64 };

enum trusted_kind { TRUSTED_PATH, TRUSTED_TYPE, TRUSTED_USER };

struct trust {
	char *text; /* what the entries point into */
	struct {
		enum trusted_kind kind;
		const char *word;
		uint32_t user;
	} entries[TRUSTED_MAX];
	size_t entries_n;
};

static int user_of_name(const char *name, uint32_t *ret_user)
{
	const struct passwd *user;
	uint64_t number;

	if (parse_u64(name, &number) == 0 && number < UINT32_MAX) {
		*ret_user = (uint32_t)number;
		return 0;
	}
	user = getpwnam(name);
	if (!user)
		return -ENOENT;
	*ret_user = user->pw_uid;
	return 0;
}

static int add_word(struct trust *trust, const char *word)
{
	uint32_t user = 0;
	enum trusted_kind kind;

	if (word[0] == '/') {
		kind = TRUSTED_PATH;
	} else if (strncmp(word, "fstype:", 7) == 0 && word[7]) {
		kind = TRUSTED_TYPE;
		word += 7;
	} else if (strncmp(word, "user:", 5) == 0 && user_of_name(word + 5, &user) == 0) {
		kind = TRUSTED_USER;
	} else {
		return -EINVAL;
	}
	if (trust->entries_n == TRUSTED_MAX)
		return -EINVAL;
	trust->entries[trust->entries_n].kind = kind;
	trust->entries[trust->entries_n].word = word;
	trust->entries[trust->entries_n++].user = user;
	return 0;
}

int trust_write(const struct trust *trust, char *buf, size_t size)
{
	size_t n = 0;

	buf[0] = '\0';
	for (size_t i = 0; i < trust->entries_n; i++) {
		const char *comma = i ? "," : "";
		int more = 0;

		switch (trust->entries[i].kind) {
		case TRUSTED_PATH:
			more = snprintf(buf + n, size - n, "%s%s", comma, trust->entries[i].word);
			break;
		case TRUSTED_TYPE:
			more = snprintf(buf + n, size - n, "%sfstype:%s", comma, trust->entries[i].word);
			break;
		case TRUSTED_USER:
			more = snprintf(buf + n, size - n, "%suser:%u", comma, trust->entries[i].user);
			break;
		}
		if (more < 0 || (size_t)more >= size - n)
			return -ENOBUFS;
		n += (size_t)more;
	}
	return 0;
}

int trust_new(const char *text, struct trust **ret_trust)
{
	_cleanup_(trust_freep) struct trust *trust = calloc(1, sizeof(*trust));
	char *at, *word;

	if (!trust)
		return -ENOMEM;
	trust->text = at = strdup(text);
	if (!at)
		return -ENOMEM;
	while ((word = strsep(&at, ","))) {
		size_t n = strlen(word += strspn(word, " "));
		int r;

		while (n > 0 && word[n - 1] == ' ')
			word[--n] = '\0';
		if (n == 0)
			continue;
		r = add_word(trust, word);
		if (r < 0)
			return r;
	}
	*ret_trust = TAKE_PTR(trust);
	return 0;
}

void trust_free(struct trust *trust)
{
	if (!trust)
		return;
	free(trust->text);
	free(trust);
}

static bool is_below(const char *folder, const char *path, size_t path_n)
{
	size_t n = strlen(folder);

	while (n > 1 && folder[n - 1] == '/')
		n--;
	return path_n > n && memcmp(path, folder, n) == 0 && (n == 1 || path[n] == '/');
}

/*
 * A path or a type that a user chose in a namespace of his own says nothing, so these are for root's mounts.
 */
bool trust_allows(const struct trust *trust, const struct trust_file *file)
{
	if (file->mount->kind == MOUNT_LOCAL)
		return true;
	for (size_t i = 0; i < trust->entries_n; i++) {
		const char *word = trust->entries[i].word;

		switch (trust->entries[i].kind) {
		case TRUSTED_PATH:
			if (file->mount->path_by_root && is_below(word, file->path, file->path_n))
				return true;
			break;
		case TRUSTED_TYPE:
			if (file->mount->by_root && strcmp(word, file->mount->type) == 0)
				return true;
			break;
		case TRUSTED_USER:
			if (trust->entries[i].user == file->user)
				return true;
			break;
		}
	}
	return false;
}
