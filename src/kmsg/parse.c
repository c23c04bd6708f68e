// SPDX-License-Identifier: Apache-2.0
/*
 * One record of the kernel log: "6,1234,98765432,-;text", then property lines that begin with a blank. The
 * first number is facility * 8 + level. The kernel's own facility is 0; records written by programs get
 * another one.
 *
 * NVIDIA's driver writes, depending on version and device:
 *
 * 	NVRM: Xid (0000:3b:00): 31, Ch 00000010, ...
 * 	NVRM: Xid (PCI:0000:3b:00): 79, pid=1234, name=python, GPU has fallen off the bus.
 * 	NVRM: Xid (PCI:0000:3b:00 GPU-I:01 GPU-CI:00): 13, ...        (MIG; the second may be missing)
 *
 * The forms are those of the open kernel modules' kernel_rc.c.
 */
#include "kmsg/kmsg.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/cursor.h"
#include "base/macro.h"
#include "base/text.h"
#include "model/xid.h"

enum { LEVELS = 8, XID_MAX = 9999 };

/* Parses "prio,sequence,usec,..." up to the text. */
static int parse_head(struct cursor *c, uint64_t *ret_priority, struct kmsg_xid *xid)
{
	struct cursor flags;
	uint64_t usec;

	if (cursor_u64(c, ret_priority) < 0 || !cursor_literal(c, ",") || cursor_u64(c, &xid->sequence) < 0 ||
	    !cursor_literal(c, ",") || cursor_u64(c, &usec) < 0 || usec > INT64_MAX / NSEC_PER_USEC ||
	    cursor_until(c, ';', &flags) < 0)
		return -ENOENT;
	xid->boot_ns = (int64_t)usec * NSEC_PER_USEC;
	return 0;
}

static void take_text(struct kmsg_xid *xid, struct cursor rest)
{
	if (cursor_literal(&rest, ","))
		cursor_skip_space(&rest);
	snprintf(xid->text, sizeof(xid->text), "%.*s", (int)MIN(cursor_left(&rest), sizeof(xid->text) - 1),
		 rest.p);
	utf8_sanitize(xid->text);
	for (char *p = xid->text; *p; p++)
		if ((unsigned char)*p < ' ' || *p == 0x7f)
			*p = '?';
}

/* A decimal number after @name, if that comes next. */
static uint32_t parse_instance(struct cursor *where, const char *name)
{
	uint64_t id;

	cursor_skip_space(where);
	return cursor_literal(where, name) && cursor_u64(where, &id) == 0 && id < UINT32_MAX ? (uint32_t)id :
											       UINT32_MAX;
}

int kmsg_parse(const char *record, size_t length, struct kmsg_xid *ret_xid)
{
	struct cursor c = cursor_over(record, length), line, where, bus;
	struct kmsg_xid xid = { 0 };
	uint64_t priority, code;

	if (parse_head(&c, &priority, &xid) < 0 || priority >= LEVELS || !cursor_literal(&c, "NVRM: Xid"))
		return -ENOENT;
	line = c;
	if (cursor_until(&c, '\n', &line) < 0)
		line = c;
	if (!cursor_literal(&line, " (") || cursor_until(&line, ')', &where) < 0 ||
	    !cursor_literal(&line, ":"))
		return -EBADMSG;
	bus = where;
	(void)cursor_until(&where, ' ', &bus);
	if (xid_bus_id(bus.p, cursor_left(&bus), xid.pci_bus_id) < 0)
		return -EBADMSG;
	xid.gi = parse_instance(&where, "GPU-I:");
	xid.ci = parse_instance(&where, "GPU-CI:");
	cursor_skip_space(&line);
	if (cursor_u64(&line, &code) < 0 || code > XID_MAX ||
	    (!cursor_eof(&line) && *line.p != ',' && *line.p != ' '))
		return -EBADMSG;
	xid.code = (uint32_t)code;
	take_text(&xid, line);
	*ret_xid = xid;
	return 0;
}
