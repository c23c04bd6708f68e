// SPDX-License-Identifier: Apache-2.0
/*
 * The file that preserves XID counts across restarts of the agent. A readable text:
 *
 * 	gpusonde-xids 1
 * 	boot 2f6c1a52-...            the boot these counts belong to
 * 	kmsg 48213                   newest counted record of the kernel log
 * 	xid 00000000:3B:00.0 79 3 1763716800123456789     GPU, code, count, last seen (ns since 1970)
 * 	end
 *
 * A file without the last line is incomplete.
 */
#include "model/private.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/cursor.h"
#include "base/fd.h"
#include "base/macro.h"
#include "base/strbuf.h"
#include "model/xid.h"

#define MAGIC "gpusonde-xids 1"
enum { FILE_MAX = 128 * 1024 }; /* XIDS_MAX lines of at most 100 bytes, and the others */

static int boot_id(char ret_id[static 40])
{
	size_t length;
	int r = read_file("/proc/sys/kernel/random/boot_id", ret_id, 40, &length);

	if (r < 0)
		return r;
	ret_id[strcspn(ret_id, "\n")] = '\0';
	return 0;
}

static int parse_xid(struct cursor *line, struct xid *ret_xid)
{
	uint64_t code, count, last;
	struct cursor bus;

	memset(ret_xid, 0, sizeof(*ret_xid));
	if (cursor_until(line, ' ', &bus) < 0 ||
	    xid_bus_id(bus.p, cursor_left(&bus), ret_xid->pci_bus_id) < 0 || cursor_u64(line, &code) < 0 ||
	    !cursor_literal(line, " ") || cursor_u64(line, &count) < 0 || !cursor_literal(line, " ") ||
	    cursor_u64(line, &last) < 0)
		return -EBADMSG;
	if (!cursor_eof(line) || code > UINT32_MAX || count == 0 || last > INT64_MAX)
		return -EBADMSG;
	ret_xid->entity = READING_NONE;
	ret_xid->code = (uint32_t)code;
	ret_xid->count = count;
	ret_xid->last_real_ns = (int64_t)last;
	return 0;
}

/* Duplicates would become two series with the same labels. */
static bool has_xid(const struct xid *xids, uint32_t n, const struct xid *xid)
{
	for (uint32_t i = 0; i < n; i++)
		if (xids[i].code == xid->code && STRV_EQ(xids[i].pci_bus_id, xid->pci_bus_id))
			return true;
	return false;
}

/* 0; -ESTALE if it is of another boot; -EBADMSG. */
static int parse(const char *text, size_t length, const char *boot, struct xid *xids, uint32_t *ret_n,
		 uint64_t *ret_kmsg)
{
	struct cursor c = cursor_over(text, length), line;
	uint64_t kmsg;
	uint32_t n = 0;

	if (cursor_until(&c, '\n', &line) < 0 || !cursor_equals(&line, MAGIC))
		return -EBADMSG;
	if (cursor_until(&c, '\n', &line) < 0 || !cursor_literal(&line, "boot "))
		return -EBADMSG;
	if (!cursor_equals(&line, boot))
		return -ESTALE;
	if (cursor_until(&c, '\n', &line) < 0 || !cursor_literal(&line, "kmsg ") ||
	    cursor_u64(&line, &kmsg) < 0 || !cursor_eof(&line))
		return -EBADMSG;
	while (cursor_until(&c, '\n', &line) == 0) {
		if (cursor_equals(&line, "end") && cursor_eof(&c)) {
			*ret_n = n;
			*ret_kmsg = kmsg;
			return 0;
		}
		if (n == XIDS_MAX || !cursor_literal(&line, "xid ") || parse_xid(&line, &xids[n]) < 0 ||
		    has_xid(xids, n, &xids[n]))
			return -EBADMSG;
		n++;
	}
	return -EBADMSG;
}

/* Renames the unreadable file instead of overwriting it, so that it can be examined. */
static void set_aside(const char *path)
{
	char bad[4096];

	if (snprintf(bad, sizeof(bad), "%s.bad", path) < (int)sizeof(bad))
		(void)!rename(path, bad);
}

int model_xids_load(struct model *model, const char *path)
{
	_cleanup_free_ char *text = malloc(FILE_MAX);
	char boot[40];
	size_t length;
	int r;

	if (!text)
		return -ENOMEM;
	r = boot_id(boot);
	if (r < 0)
		return r;
	r = read_file(path, text, FILE_MAX, &length);
	if (r == -ENOENT)
		return 0;
	if (r < 0 && r != -E2BIG)
		return r;
	if (r == 0)
		r = parse(text, length, boot, model->xids, &model->xids_n, &model->kmsg_loaded);
	if (r == -ESTALE)
		return 0;
	if (r < 0) {
		set_aside(path);
		return -EBADMSG;
	}
	model->kmsg_sequence = model->kmsg_loaded;
	/*
	 * The earlier run could not read the log: older records would count errors again that the driver
	 * reported.
	 */
	if (model->kmsg_loaded == 0 && model->xids_n > 0)
		model->kmsg_from_ns = clock_boot_ns();
	model->xids_dirty = false;
	return 0;
}

int model_xids_save(struct model *model, const char *path)
{
	_cleanup_(strbuf_done) struct strbuf text;
	char boot[40];
	int r = boot_id(boot);

	if (r < 0)
		return r;
	strbuf_init(&text, FILE_MAX);
	strbuf_addf(&text, MAGIC "\nboot %s\nkmsg %" PRIu64 "\n", boot, model->kmsg_sequence);
	for (uint32_t i = 0; i < model->xids_n; i++) {
		const struct xid *xid = &model->xids[i];

		strbuf_addf(&text, "xid %s %" PRIu32 " %" PRIu64 " %" PRIi64 "\n", xid->pci_bus_id, xid->code,
			    xid->count, xid->last_real_ns);
	}
	strbuf_adds(&text, "end\n");
	if (text.failed)
		return -ENOMEM;
	r = write_file_atomic(path, text.data, text.len, 0644);
	if (r < 0)
		return r;
	model->xids_dirty = false;
	return 0;
}
