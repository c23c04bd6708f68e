// SPDX-License-Identifier: Apache-2.0
/*
 * Shared by the files that read CUDA binaries: read.c (what is it?), host.c (ELF files of the host),
 * archive.c, fatbin.c, content.c (bytes of an image), inflate.c and lz4.c (decompression), image.c and info.c
 * (kernels of an ELF image).
 *
 * Errors: functions that read a part report troubles themselves and return 0, so that reading continues after
 * it; negative results mean lack of memory, an error of ops, or no data.
 */
#pragma once

#include <elf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/macro.h"
#include "cubin/cubin.h"

struct ZSTD_DCtx_s;

enum {
	CUBIN_FATBIN_MAGIC = (int)0xBA55ED50,
	CUBIN_WRAPPER_MAGIC = 0x466243B1,
	CUBIN_MACHINE = 190, /* EM_CUDA of elf.h */
	CHUNK = 256 << 10, /* size of blocks that are read or decompressed in a stream */
	THREADS_MAX = 16,
	WALK_COST = 512, /* of one step; no entry of a container has less than an eighth of that */
	/* times that sections of one image, or names of one table, may take the same bytes */
	OVERLAP_MAX = 4,
};
/* Decompressed bytes of one image. The largest known has 134 MB. */
#define CUBIN_IMAGE_MAX (1ull << 30)

struct team;

/* Memory that is reused for the next image. */
struct buffer {
	void *bytes;
	size_t cap;
};
/* Makes room for @n bytes; its content is lost. 0 or -ENOMEM. */
int buffer_need(struct buffer *buffer, size_t n);
/* The same with mapped pages, which are allocated on first write; a buffer is always one or the other. */
int buffer_map(struct buffer *buffer, size_t n);

/* A part of the source. */
struct range {
	uint64_t offset, size;
};

enum budget {
	BUDGET_INFLATED,
	BUDGET_PLAIN, /* uncompressed images, and the search for images */
	BUDGETS
};
/* Images whose kernels were not read for a budget. */
struct left_out {
	uint64_t images, offset; /* of the first */
};

struct reader {
	const struct cubin_source *source;
	struct cubin_limits limits;
	const struct cubin_ops *ops;
	void *userdata;
	uint32_t images, containers; /* so far */
	uint64_t troubles;
	int error; /* why the last reader_get() failed; 0: the source, or the range, ends */
	/*
	 * Bytes that may still be processed: small files can expand to many. Counted by the sizes in headers,
	 * before it is known whether and by which thread they are read, so that several readers agree. The
	 * work for one image is bounded by its bytes.
	 */
	uint64_t budgets[BUDGETS];
	struct left_out left_out[BUDGETS];
	bool exhausted; /* has been reported */
	struct buffer stored, whole; /* an image as the file has it, and decompressed */
	struct buffer headers, metadata, stream; /* of an image that is streamed */
	struct buffer slots, facts, pieces; /* of the kernels of one image */
	struct ZSTD_DCtx_s *zstd;
	/*
	 * One of several that walk the same file: all of them see its images in the same order, and have the
	 * same budget, so the output does not depend on their number. Each reports the kernels and troubles
	 * of its parts.
	 */
	struct team *team; /* or NULL */
	uint64_t part; /* the walk has come to */
	uint64_t claim; /* the next of ours */
	bool passing; /* the part is another's */
	size_t whole_bytes; /* our share of limits.image_bytes */
	size_t share; /* of other memory, each buffer */
	bool large; /* more than that, for one image */
};
/* Initialises limits and budgets; with several threads each has its share. */
void reader_init(struct reader *reader, const struct cubin_limits *limits, unsigned threads);
void reader_done(struct reader *reader);
/* As buffer_need(), for large buffers that only one thread at a time may have. */
int reader_need(struct reader *reader, struct buffer *buffer, size_t n);
/* At the end of an image: frees large buffers. */
void reader_settle(struct reader *reader);
/* -ECANCELED: ops.stop requested the end. */
int reader_stopped(const struct reader *reader);
/* Takes @cost bytes for an image at @offset. -EBADMSG: the budget is exhausted; counted. */
int reader_spend(struct reader *reader, enum budget budget, uint64_t cost, uint64_t offset);
/* The same for the search for images. False: exhausted, reported the first time. */
bool reader_walk(struct reader *reader, uint64_t cost, uint64_t offset);
/* At the end of the search: reports what was left out. */
void reader_sum_up(struct reader *reader);
/* A container begins: of a team, one of them reads it. -errno: stop. */
int team_part(struct reader *reader);
/* Waits until all parts before have been read. */
int team_alone(struct reader *reader);

/* Reads all @n bytes of @range; else -ENODATA, with the cause in reader_why(). */
int reader_get(struct reader *reader, const struct range *range, uint64_t offset, void *buf, size_t n);
const char *reader_why(const struct reader *reader);
/* Reads up to @n bytes; returns their number, 0 at the end, or -errno. */
ssize_t reader_some(struct reader *reader, const struct range *range, uint64_t offset, void *buf, size_t n);
/* @offset is relative to the source. */
_printf_(3, 4) void reader_trouble(struct reader *reader, uint64_t offset, const char *format, ...);

/* Reads what begins there; -ENOEXEC: unknown format. Archives in archives are not read. */
int read_any(struct reader *reader, const struct range *range, bool in_archive);
int host_read(struct reader *reader, const struct range *range, const Elf64_Ehdr *header);
int archive_read(struct reader *reader, const struct range *range);
/* A wrapper in memory, which points to a container by its address. */
int wrapper_read(struct reader *reader, const struct range *range);
struct wrapper {
	uint32_t magic, version;
	uint64_t data; /* the container's address */
	uint64_t more; /* a file's name, or what `data` was linked from */
};
/* Containers one after the other, with padding between. */
int fatbin_section(struct reader *reader, const struct range *range, bool relocatable);
/* The container at the begin of @range. -ENODATA: none, or an invalid header, which is not reported. */
int fatbin_container(struct reader *reader, const struct range *range, bool relocatable, uint64_t *ret_size);
/* A cubin outside of a container. */
int cubin_bare(struct reader *reader, const struct range *range);

/* The bytes of one image, wherever they are. */
struct content {
	struct reader *reader;
	struct range stored;
	enum cubin_compression compression;
	uint64_t size; /* decompressed; UINT64_MAX: as large as the source */
	const uint8_t *whole; /* or NULL: to be fetched in pieces */
};
/* Decompresses it if it is to be stored whole. -EBADMSG: the error was reported. */
int content_open(struct content *content);
/* @ret_sections: valid until the next image. -EBADMSG as above. */
int content_headers(struct content *content, Elf64_Ehdr *ret_header, const Elf64_Shdr **ret_sections,
		    size_t *ret_n);

struct piece {
	uint64_t offset, size;
	const uint8_t *bytes; /* set by content_pieces() */
};
int content_pieces(struct content *content, struct piece *pieces, size_t n);
/* Reports an error and returns -EBADMSG. */
_printf_(3, 4) int content_bad(struct content *content, uint64_t offset, const char *format, ...);

/* Receives decompressed bytes in order; returns not 0 to stop, or -errno. */
typedef int sink_fn(const uint8_t *bytes, size_t n, void *userdata);
int inflate_whole(struct content *content);
/* The sink's last result; -EBADMSG. */
int inflate_stream(struct content *content, sink_fn *sink, void *userdata);
int inflate_lz4(struct content *content, sink_fn *sink, void *userdata);

/* Data from attributes and sections of one kernel. */
struct facts {
	int64_t figures[KERNEL_FIGURES];
	int64_t frame_bytes; /* its own frame; the minimum stack replaces it if the image has one */
	uint32_t required_block[3], cluster[3];
	uint32_t parameters_bytes;
	bool stack_unknown; /* recursion */
};
/* Attributes of one kernel. False: they end in the middle of one. */
bool info_of_kernel(const uint8_t *bytes, size_t n, struct facts *facts);
/* Those that name a function by its symbol's number. @facts_of returns NULL if it is not a kernel. */
bool info_of_image(const uint8_t *bytes, size_t n, struct facts *(*facts_of)(uint32_t symbol, void *userdata),
		   void *userdata);
/* .nv.compat: whether the image is of one architecture only ('a'). */
bool info_accelerated(const uint8_t *bytes, size_t n);

/* Reads an open ELF image: calls ops.image() if it is @bare, then reads its kernels. */
int image_kernels(struct content *content, struct cubin_image *image, bool bare);
