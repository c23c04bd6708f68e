// SPDX-License-Identifier: Apache-2.0
#include "test.h"

#include <string.h>
#include <zlib.h>
#include <zstd.h>

#include "base/macro.h"
#include "serve/encoding.h"

static void what_clients_take(_unused_ void **state)
{
	static const struct {
		const char *header;
		enum http_encoding encoding;
	} cases[] = {
		{ NULL, HTTP_PLAIN },
		{ "", HTTP_PLAIN },
		{ "identity", HTTP_PLAIN },
		{ "*", HTTP_PLAIN },
		{ "gzip", HTTP_GZIP }, /* Prometheus */
		{ "GZip;q=1.0", HTTP_GZIP },
		{ "gzip, deflate, br, zstd", HTTP_ZSTD },
		{ "zstd, gzip", HTTP_ZSTD },
		{ "zstd;q=0.5, gzip", HTTP_GZIP },
		{ "identity, gzip;q=0.5", HTTP_PLAIN },
		{ "identity;q=0.5, gzip;q=0.5", HTTP_GZIP },
		{ "identity;q=0", HTTP_PLAIN },
		{ "br, *;q=0.1", HTTP_PLAIN },
		{ "gzip;q=0", HTTP_PLAIN },
		{ "gzip;q=0.000, zstd;q=0", HTTP_PLAIN },
		{ "gzip;q=x", HTTP_PLAIN },
		{ "gzipped", HTTP_PLAIN },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		if (encoding_negotiate(cases[i].header) != cases[i].encoding)
			fail_msg("Accept-Encoding: %s", cases[i].header);
}

static void bodies_come_back(_unused_ void **state)
{
	struct strbuf page, packed;
	char back[8192];
	z_stream zip = { 0 };

	strbuf_init(&page, 0);
	strbuf_init(&packed, 0);
	for (unsigned i = 0; i < 100; i++)
		strbuf_addf(&page, "a line of a page, %u\n", i);
	assert_int_equal(encoding_apply(HTTP_ZSTD, &page, &packed), 0);
	assert_int_equal(ZSTD_decompress(back, sizeof(back), packed.data, packed.len), page.len);
	assert_memory_equal(back, page.data, page.len);
	assert_true(packed.len < page.len / 3);

	strbuf_reset(&packed);
	assert_int_equal(encoding_apply(HTTP_GZIP, &page, &packed), 0);
	assert_int_equal(inflateInit2(&zip, 15 + 16), Z_OK);
	zip.next_in = (Bytef *)packed.data;
	zip.avail_in = (uInt)packed.len;
	zip.next_out = (Bytef *)back;
	zip.avail_out = sizeof(back);
	assert_int_equal(inflate(&zip, Z_FINISH), Z_STREAM_END);
	assert_int_equal(zip.total_out, page.len);
	assert_memory_equal(back, page.data, page.len);
	inflateEnd(&zip);
	strbuf_done(&page);
	strbuf_done(&packed);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_clients_take),
		cmocka_unit_test(bodies_come_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
