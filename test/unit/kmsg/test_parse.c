// SPDX-License-Identifier: Apache-2.0
#include "test.h"

#include <errno.h>
#include <string.h>

#include "base/macro.h"
#include "base/text.h"
#include "kmsg/kmsg.h"

#define HEAD "3,48213,98765432,-;"

static const struct {
	const char *record;
	int r;
	uint32_t code;
	const char *bus, *text;
} cases[] = {
	{ HEAD "NVRM: Xid (PCI:0000:3b:00): 79, pid=1234, name=python, GPU has fallen off the bus.\n", 0, 79,
	  "00000000:3B:00.0", "pid=1234, name=python, GPU has fallen off the bus." },
	{ HEAD
	  "NVRM: Xid (PCI:0000:3b:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.\n"
	  " SUBSYSTEM=pci\n DEVICE=+pci:0000:3b:00.0\n",
	  0, 79, "00000000:3B:00.0", "pid='<unknown>', name=<unknown>, GPU has fallen off the bus." },
	{ HEAD "NVRM: Xid (0000:01:00): 31, Ch 00000010, engmask 00000101, intr 10000000\n", 0, 31,
	  "00000000:01:00.0", "Ch 00000010, engmask 00000101, intr 10000000" },
	{ HEAD "NVRM: Xid (PCI:0000:3b:00.0): 13, Graphics Exception", 0, 13, "00000000:3B:00.0",
	  "Graphics Exception" },
	{ HEAD "NVRM: Xid (PCI:0001:c1:00 GPU-I:01): 43, pid=5", 0, 43, "00000001:C1:00.0", "pid=5" },
	{ HEAD "NVRM: Xid (PCI:0000:3b:00): 154, GPU recovery action changed", 0, 154, "00000000:3B:00.0",
	  "GPU recovery action changed" },
	{ HEAD "NVRM: Xid (PCI:0000:3b:00): 8", 0, 8, "00000000:3B:00.0", "" },
	{ "7,1,2,c,caller=T1;NVRM: Xid (PCI:0000:3b:00): 45, x\ty\x01z", 0, 45, "00000000:3B:00.0", "x?y?z" },
	/* other records */
	{ HEAD "NVRM: GPU at PCI:0000:3b:00: GPU-b850f46d", -ENOENT, 0, NULL, NULL },
	{ HEAD "nvidia-nvswitch3: SXid (PCI:0000:c1:00.0): 28006, Non-fatal", -ENOENT, 0, NULL, NULL },
	{ HEAD "usb 1-1: NVRM: Xid (PCI:0000:3b:00): 79, x", -ENOENT, 0, NULL, NULL },
	{ HEAD, -ENOENT, 0, NULL, NULL },
	{ "", -ENOENT, 0, NULL, NULL },
	{ "no record", -ENOENT, 0, NULL, NULL },
	{ "3;NVRM: Xid (PCI:0000:3b:00): 79, no numbers", -ENOENT, 0, NULL, NULL },
	{ "3,1,99999999999999999999,-;NVRM: Xid (PCI:0000:3b:00): 79", -ENOENT, 0, NULL, NULL },
	{ "3,1,18446744073709551615,-;NVRM: Xid (PCI:0000:3b:00): 79", -ENOENT, 0, NULL, NULL },
	{ " SUBSYSTEM=pci", -ENOENT, 0, NULL, NULL },
	/* a program that wrote into the log: facility user, daemon */
	{ "12,48213,98765432,-;NVRM: Xid (PCI:0000:3b:00): 79, forged", -ENOENT, 0, NULL, NULL },
	{ "30,48213,98765432,-;NVRM: Xid (PCI:0000:3b:00): 79, forged", -ENOENT, 0, NULL, NULL },
	{ "8,48213,98765432,-;NVRM: Xid (PCI:0000:3b:00): 79, forged", -ENOENT, 0, NULL, NULL },
	/* looks like one, and is not */
	{ HEAD "NVRM: Xid", -EBADMSG, 0, NULL, NULL },
	{ HEAD "NVRM: Xid (PCI:0000:3b:00)", -EBADMSG, 0, NULL, NULL },
	{ HEAD "NVRM: Xid (PCI:0000:3b:00", -EBADMSG, 0, NULL, NULL },
	{ HEAD "NVRM: Xid (PCI:0000:3b): 79, x", -EBADMSG, 0, NULL, NULL },
	{ HEAD "NVRM: Xid (PCI:0000:3b:00): , x", -EBADMSG, 0, NULL, NULL },
	{ HEAD "NVRM: Xid (PCI:0000:3b:00): 79x", -EBADMSG, 0, NULL, NULL },
	{ HEAD "NVRM: Xid (PCI:0000:3b:00): 10000, x", -EBADMSG, 0, NULL, NULL },
	{ HEAD "NVRM: Xid (PCI:0000:3b:00): -1, x", -EBADMSG, 0, NULL, NULL },
	{ HEAD "NVRM: Xid (PCI:0000:3b:00\n): 79, the rest is a property", -EBADMSG, 0, NULL, NULL },
};

static void records(_unused_ void **state)
{
	for (unsigned i = 0; i < ARRAY_SIZE(cases); i++) {
		/* On the heap without its NUL, so that a sanitizer sees a read beyond the end. */
		size_t length = strlen(cases[i].record);
		char *record = malloc(length + 1);
		struct kmsg_xid xid;
		int r;

		record = realloc(record, length > 0 ? length : 1);
		memcpy(record, cases[i].record, length);
		r = kmsg_parse(record, length, &xid);
		free(record);
		if (r != cases[i].r)
			fail_msg("%s: %d", cases[i].record, r);
		if (r < 0)
			continue;
		assert_int_equal(xid.code, cases[i].code);
		assert_string_equal(xid.pci_bus_id, cases[i].bus);
		assert_string_equal(xid.text, cases[i].text);
	}
}

static void instances(_unused_ void **state)
{
	static const struct {
		const char *record;
		uint32_t gi, ci;
	} of[] = {
		{ HEAD "NVRM: Xid (PCI:0001:c1:00): 43, x", UINT32_MAX, UINT32_MAX },
		{ HEAD "NVRM: Xid (PCI:0001:c1:00 GPU-I:07): 43, x", 7, UINT32_MAX },
		{ HEAD "NVRM: Xid (PCI:0001:c1:00 GPU-I:12 GPU-CI:03): 43, x", 12, 3 },
		{ HEAD "NVRM: Xid (PCI:0001:c1:00 GPU-I:x GPU-CI:03): 43, x", UINT32_MAX, UINT32_MAX },
		{ HEAD "NVRM: Xid (PCI:0001:c1:00 GPU-I:4294967295): 43, x", UINT32_MAX, UINT32_MAX },
	};
	struct kmsg_xid xid;

	for (unsigned i = 0; i < ARRAY_SIZE(of); i++) {
		assert_int_equal(kmsg_parse(of[i].record, strlen(of[i].record), &xid), 0);
		assert_int_equal(xid.gi, of[i].gi);
		assert_int_equal(xid.ci, of[i].ci);
	}
}

static void number_and_time(_unused_ void **state)
{
	static const char record[] = HEAD "NVRM: Xid (PCI:0000:3b:00): 79, x";
	struct kmsg_xid xid;

	assert_int_equal(kmsg_parse(record, sizeof(record) - 1, &xid), 0);
	assert_int_equal(xid.sequence, 48213);
	assert_int_equal(xid.boot_ns, INT64_C(98765432000));
}

static void a_long_text_is_cut(_unused_ void **state)
{
	char record[1000] = HEAD "NVRM: Xid (PCI:0000:3b:00): 79, ";
	struct kmsg_xid xid;

	memset(record + strlen(record), 0xc3, 800);
	assert_int_equal(kmsg_parse(record, strlen(record), &xid), 0);
	assert_int_equal(strlen(xid.text), sizeof(xid.text) - 1);
	assert_true(utf8_valid(xid.text, strlen(xid.text)));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(records),
		cmocka_unit_test(instances),
		cmocka_unit_test(number_and_time),
		cmocka_unit_test(a_long_text_is_cut),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
