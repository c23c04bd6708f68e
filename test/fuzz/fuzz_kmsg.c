// SPDX-License-Identifier: Apache-2.0
#include "fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "kmsg/kmsg.h"
#include "model/xid.h"

/* What is taken for an XID has an address in NVML's form, and text that may go into a label. */
int fuzz_one(const uint8_t *data, size_t size)
{
	struct kmsg_xid xid;
	char again[32];

	memset(&xid, 0xff, sizeof(xid));
	if (kmsg_parse((const char *)data, size, &xid) < 0)
		return 0;
	if (xid_bus_id(xid.pci_bus_id, strnlen(xid.pci_bus_id, sizeof(xid.pci_bus_id)), again) < 0 ||
	    strcmp(again, xid.pci_bus_id) != 0)
		abort();
	if (!memchr(xid.text, 0, sizeof(xid.text)) || !utf8_valid(xid.text, strlen(xid.text)))
		abort();
	if (xid.boot_ns < 0 || xid_describe(xid.code)->last < xid.code)
		abort();
	return 0;
}
