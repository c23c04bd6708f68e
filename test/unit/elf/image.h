// SPDX-License-Identifier: Apache-2.0
/* ELF files made byte by byte, so that tests can make any of them wrong. */
#pragma once

#include <elf.h>
#include <stddef.h>
#include <stdint.h>

enum {
	IMAGE_CODE_AT = 0x1000,
	IMAGE_CODE_BYTES = 0x200,
	IMAGE_CODE_ADDRESS = 0x401000,
	IMAGE_DATA_ADDRESS = 0x600000,
	IMAGE_SYMBOLS = 8,
	IMAGE_BYTES = 0x2000,
};

/* Lies in the file as it lies here. Sections: none, .dynsym, .dynstr, .symtab, .strtab. */
struct image {
	Elf64_Ehdr header;
	Elf64_Phdr segments[3]; /* code, data, notes */
	Elf64_Shdr sections[5];
	Elf64_Sym dynamic[IMAGE_SYMBOLS], full[IMAGE_SYMBOLS]; /* the first is empty, as it must be */
	char dynamic_names[256], full_names[256];
	struct {
		Elf64_Nhdr note;
		char name[4];
		uint8_t id[20];
	} build_id;
	uint8_t rest[];
};

union image_file {
	struct image image;
	uint8_t bytes[IMAGE_BYTES];
};

/* Two functions in each table, at IMAGE_CODE_ADDRESS and 0x40 further. */
void image_init(union image_file *file);
/* A descriptor of an unnamed file of these bytes, at the caller's to close. */
int image_open(const void *bytes, size_t n);
/* The next free symbol of a table becomes this function. */
Elf64_Sym *image_add(union image_file *file, int dynamic, const char *name, uint64_t address, uint64_t size);
