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
 * 	NVRM: Xid (PCI:0000:3b:00 GPU-I:01): 13, ...        (a MIG instance)
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
	cursor_skip_space(&line);
	if (cursor_u64(&line, &code) < 0 || code > XID_MAX ||
	    (!cursor_eof(&line) && *line.p != ',' && *line.p != ' '))
		return -EBADMSG;
	xid.code = (uint32_t)code;
	take_text(&xid, line);
	*ret_xid = xid;
	return 0;
}
