// SPDX-License-Identifier: Apache-2.0
#include "test.h"

#include <errno.h>
#include <lz4.h>
#include <lz4hc.h>
#include <string.h>
#include <zstd.h>

#include "cubin/private.h"

/* A stream against the library's own decoder of the whole. */
struct stream {
	const uint8_t *want;
	size_t n, at;
	size_t stop; /* after so many bytes */
};

static int compare(const uint8_t *bytes, size_t n, void *userdata)
{
	struct stream *stream = userdata;

	assert_true(n > 0 && n <= stream->n - stream->at);
	assert_memory_equal(bytes, stream->want + stream->at, n);
	stream->at += n;
	return stream->at >= stream->stop;
}

static void no_trouble(_unused_ uint64_t offset, const char *text, _unused_ void *userdata)
{
	print_message("# %s\n", text);
	fail();
}
static void any_trouble(_unused_ uint64_t offset, _unused_ const char *text, void *userdata)
{
	++*(unsigned *)userdata;
}

static int stream_of(enum cubin_compression compression, const void *bytes, size_t n, struct stream *stream,
		     const struct cubin_ops *ops, void *userdata)
{
	const struct cubin_memory memory = { bytes, n };
	struct cubin_source source;
	_cleanup_(reader_done) struct reader reader = { .source = &source, .ops = ops, .userdata = userdata };
	struct content content = {
		.reader = &reader, .stored = { 0, n }, .compression = compression, .size = stream->n
	};

	cubin_source_memory(&memory, &source);
	return inflate_stream(&content, compare, stream);
}

static void assert_streams(const uint8_t *bytes, size_t n)
{
	static const struct cubin_ops ops = { .trouble = no_trouble };
	size_t room = (size_t)LZ4_compressBound((int)n) + ZSTD_compressBound(n), packed;
	_cleanup_free_ char *to = malloc(room);

	for (int how = 0; how < 4; how++) {
		struct stream stream = { bytes, n, 0, SIZE_MAX };

		packed =
			how == 0 ? (size_t)LZ4_compress_default((const char *)bytes, to, (int)n, (int)room) :
			how == 1 ? (size_t)LZ4_compress_HC((const char *)bytes, to, (int)n, (int)room, 9) :
			how == 2 ? (size_t)LZ4_compress_fast((const char *)bytes, to, (int)n, (int)room, 50) :
				   ZSTD_compress(to, room, bytes, n, 3);
		assert_true(packed > 0 && packed < room);
		assert_int_equal(
			stream_of(how == 3 ? CUBIN_ZSTD : CUBIN_LZ4, to, packed, &stream, &ops, NULL), 0);
		assert_int_equal(stream.at, n);
		stream = (struct stream){ bytes, n, 0, n / 2 + 1 };
		assert_int_equal(
			stream_of(how == 3 ? CUBIN_ZSTD : CUBIN_LZ4, to, packed, &stream, &ops, NULL), 1);
		assert_true(stream.at > n / 2);
	}
}

static uint32_t next_random(uint64_t *seed)
{
	*seed = *seed * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(*seed >> 33);
}

enum { MOST = 3 << 20 };

static void small_and_empty(_unused_ void **state)
{
	uint8_t bytes[64];

	for (size_t n = 1; n < sizeof(bytes); n++) {
		memset(bytes, 'a', n);
		assert_streams(bytes, n);
	}
}

/* Longer than the room, and than what is read at once. */
static void long_literals_and_matches(_unused_ void **state)
{
	_cleanup_free_ uint8_t *bytes = malloc(MOST);
	uint64_t seed = 1;

	for (size_t i = 0; i < MOST; i++)
		bytes[i] = (uint8_t)next_random(&seed);
	assert_streams(bytes, MOST);
	memset(bytes + (1 << 20), 0, 1 << 20);
	assert_streams(bytes, MOST);
	/* A period of three bytes, which copying by larger pieces would spoil. */
	for (size_t i = 1 << 20; i < 2 << 20; i++)
		bytes[i] = "xyz"[i % 3];
	assert_streams(bytes, MOST);
	/* As far back as a match can reach. */
	for (size_t i = 65535; i < MOST; i++)
		bytes[i] = bytes[i - 65535];
	assert_streams(bytes, MOST);
}

static void mixtures(_unused_ void **state)
{
	_cleanup_free_ uint8_t *bytes = malloc(MOST);

	for (uint64_t round = 1; round < 12; round++) {
		uint64_t seed = round * 77;
		size_t at = 1;

		bytes[0] = 1;
		while (at < MOST) {
			size_t n = 1 + next_random(&seed) % (1u << (next_random(&seed) % (2 + 2 * round))),
			       back;

			n = MIN(n, MOST - at);
			back = 1 + next_random(&seed) % MIN(at, (size_t)70000);
			if (next_random(&seed) % 3)
				for (size_t i = 0; i < n; i++)
					bytes[at + i] = bytes[at + i - back];
			else
				for (size_t i = 0; i < n; i++)
					bytes[at + i] = (uint8_t)next_random(&seed);
			at += n;
		}
		assert_streams(bytes, MOST - round);
	}
}

static int take(_unused_ const uint8_t *bytes, size_t n, void *userdata)
{
	*(size_t *)userdata += n;
	return 0;
}

/* Whatever it makes of them: never more than was said, and an end. */
static void wrong_bytes(_unused_ void **state)
{
	enum { N = 700000 };
	_cleanup_free_ uint8_t *bytes = malloc(N);
	_cleanup_free_ char *packed = malloc(2 * N), *broken = malloc(2 * N);
	unsigned troubles = 0, refused = 0;
	const struct cubin_ops ops = { .trouble = any_trouble };
	uint64_t seed = 5;
	size_t n;

	for (size_t i = 0; i < N; i++)
		bytes[i] = (uint8_t)(next_random(&seed) % 7 ? i / 300 : next_random(&seed));
	n = (size_t)LZ4_compress_default((char *)bytes, packed, N, 2 * N);
	for (int i = 0; i < 200; i++) {
		struct cubin_source source;
		struct cubin_memory memory = { broken, n };
		_cleanup_(reader_done) struct reader reader = { .source = &source,
								.ops = &ops,
								.userdata = &troubles };
		struct content content = {
			.reader = &reader, .stored = { 0, n }, .compression = CUBIN_LZ4, .size = N
		};
		size_t made = 0;
		int r;

		memcpy(broken, packed, n);
		for (int k = 0; k < 3; k++)
			broken[next_random(&seed) % n] ^= (char)(1 + next_random(&seed) % 255);
		if (i % 4 == 0)
			memory.n = content.stored.size = next_random(&seed) % n;
		cubin_source_memory(&memory, &source);
		r = inflate_stream(&content, take, &made);
		assert_true(made <= N && (r == 0 || r == -EBADMSG));
		refused += r != 0;
	}
	assert_int_equal(refused, troubles);
	assert_true(refused > 50);
}

/* A literal, then a match that begins before it. */
static void matches_before_the_first_byte(_unused_ void **state)
{
	unsigned troubles = 0;
	const struct cubin_ops ops = { .trouble = any_trouble };
	struct stream stream = { (const uint8_t *)"aaaaaaaaaa", 10, 0, SIZE_MAX };

	assert_int_equal(stream_of(CUBIN_LZ4,
				   "\x10"
				   "a\x01\x00\x50"
				   "aaaaa",
				   10, &stream, &ops, &troubles),
			 0);
	assert_int_equal(stream.at, 10);
	stream.at = 0;
	assert_int_equal(stream_of(CUBIN_LZ4,
				   "\x10"
				   "a\x02\x00\x50"
				   "aaaaa",
				   10, &stream, &ops, &troubles),
			 -EBADMSG);
	assert_int_equal(stream_of(CUBIN_LZ4,
				   "\x10"
				   "a\x00\x00\x50"
				   "aaaaa",
				   10, &stream, &ops, &troubles),
			 -EBADMSG);
	assert_int_equal(troubles, 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(small_and_empty),
		cmocka_unit_test(long_literals_and_matches),
		cmocka_unit_test(mixtures),
		cmocka_unit_test(wrong_bytes),
		cmocka_unit_test(matches_before_the_first_byte),
	};

	return cmocka_run_group_tests_name("inflate", tests, NULL, NULL);
}
