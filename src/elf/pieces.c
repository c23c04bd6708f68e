// SPDX-License-Identifier: Apache-2.0
#include "elf/private.h"

#include <errno.h>
#include <string.h>

void elf_pieces_init(struct elf_pieces *pieces, const struct elf_file *file, uint64_t at, uint64_t size)
{
	pieces->file = file;
	pieces->at = at;
	pieces->size = size;
	pieces->reads = 0;
	for (size_t i = 0; i < ARRAY_SIZE(pieces->pieces); i++)
		pieces->pieces[i].number = 0;
}

static int piece_get(struct elf_pieces *of, uint64_t number, const struct elf_piece **ret_piece)
{
	struct elf_piece *p = &of->pieces[number % ELF_PIECES];

	if (p->number != number + 1) {
		uint64_t at = number * ELF_PIECE_BYTES;
		int r;

		if (of->reads == ELF_PIECE_READS_MAX)
			return -ENOENT;
		of->reads++;
		elf_count_steps(of->file, ELF_STEPS_PIECE);
		p->number = 0;
		r = elf_read(of->file, of->at + at, p->bytes, MIN(of->size - at, (uint64_t)ELF_PIECE_BYTES),
			     &p->n);
		if (r < 0)
			return r;
		p->number = number + 1;
	}
	*ret_piece = p;
	return 0;
}

int elf_pieces_read(struct elf_pieces *of, uint64_t at, void *buf, size_t n)
{
	if (at > of->size || n > of->size - at)
		return -ENOENT;
	for (size_t done = 0; done < n;) {
		const struct elf_piece *p;
		size_t from = (at + done) % ELF_PIECE_BYTES, part;
		int r = piece_get(of, (at + done) / ELF_PIECE_BYTES, &p);

		if (r < 0)
			return r;
		if (from >= p->n)
			return -ENOENT;
		part = MIN(p->n - from, n - done);
		memcpy((char *)buf + done, p->bytes + from, part);
		done += part;
	}
	return 0;
}

int elf_pieces_text(struct elf_pieces *of, uint64_t at, char *buf)
{
	size_t done = 0;

	while (at < of->size && done < ELF_NAME_MAX) {
		const struct elf_piece *p;
		size_t from = at % ELF_PIECE_BYTES, n;
		const char *end;
		int r = piece_get(of, at / ELF_PIECE_BYTES, &p);

		if (r < 0)
			return r;
		if (from >= p->n)
			break;
		n = MIN(p->n - from, (size_t)ELF_NAME_MAX - done);
		end = memchr(p->bytes + from, 0, n);
		if (end)
			n = (size_t)(end - (p->bytes + from));
		memcpy(buf + done, p->bytes + from, n);
		elf_count_steps(of->file, n / ELF_STEP_BYTES);
		done += n;
		at += n;
		if (end) {
			buf[done] = '\0';
			return done > 0 ? 0 : -ENOENT;
		}
	}
	return -ENOENT;
}
