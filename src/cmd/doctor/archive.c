// SPDX-License-Identifier: Apache-2.0
#include "cmd/doctor/archive.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/macro.h"

enum { BLOCK = 512, END_BLOCKS = 2 };

/* POSIX.1-1988, numbers in octal digits. */
struct ustar {
	char name[100], mode[8], uid[8], gid[8], size[12], mtime[12], checksum[8], type, link[100], magic[6],
		version[2], user[32], group[32], major[8], minor[8], prefix[155], padding[12];
};
_Static_assert(sizeof(struct ustar) == BLOCK, "a header is a block");

static unsigned checksum_of(const struct ustar *header)
{
	const unsigned char *bytes = (const unsigned char *)header;
	unsigned sum = 0;

	for (size_t i = 0; i < sizeof(*header); i++)
		sum += bytes[i];
	return sum;
}

static void pad(struct strbuf *tar, size_t n)
{
	static const char zeros[BLOCK];

	strbuf_add(tar, zeros, n);
}

int archive_add(struct strbuf *tar, const char *name, const void *data, size_t n, int64_t time_s)
{
	struct ustar header = { .type = '0', .magic = "ustar", .version = { '0', '0' } };

	if (strlen(name) > ARCHIVE_NAME_MAX)
		return -ENAMETOOLONG;
	memcpy(header.name, name, strlen(name));
	snprintf(header.mode, sizeof(header.mode), "%07o", 0600);
	snprintf(header.uid, sizeof(header.uid), "%07o", 0);
	snprintf(header.gid, sizeof(header.gid), "%07o", 0);
	snprintf(header.size, sizeof(header.size), "%011llo", (unsigned long long)n & 077777777777);
	snprintf(header.mtime, sizeof(header.mtime), "%011llo",
		 (unsigned long long)MAX(time_s, (int64_t)0) & 077777777777);
	memset(header.checksum, ' ', sizeof(header.checksum));
	snprintf(header.checksum, sizeof(header.checksum), "%06o", checksum_of(&header) & 0777777);
	header.checksum[7] = ' ';
	strbuf_add(tar, &header, sizeof(header));
	strbuf_add(tar, data, n);
	pad(tar, (BLOCK - n % BLOCK) % BLOCK);
	return tar->failed ? -ENOMEM : 0;
}

int archive_end(struct strbuf *tar)
{
	for (int i = 0; i < END_BLOCKS; i++)
		pad(tar, BLOCK);
	return tar->failed ? -ENOMEM : 0;
}
