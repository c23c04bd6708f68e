// SPDX-License-Identifier: Apache-2.0
#include "elf/image.h"

#include <string.h>
#include <sys/mman.h>

#include "base/fd.h"
#include "test.h"

_Static_assert(sizeof(struct image) <= IMAGE_CODE_AT, "headers must end before the code");

static Elf64_Shdr section(uint32_t type, size_t at, size_t size, uint32_t link, uint64_t entry)
{
	return (Elf64_Shdr){
		.sh_type = type, .sh_offset = at, .sh_size = size, .sh_link = link, .sh_entsize = entry
	};
}

static void init_headers(struct image *i)
{
	memcpy(i->header.e_ident, ELFMAG, SELFMAG);
	i->header.e_ident[EI_CLASS] = ELFCLASS64;
	i->header.e_ident[EI_DATA] = ELFDATA2LSB;
	i->header.e_ident[EI_VERSION] = EV_CURRENT;
	i->header.e_type = ET_DYN;
	i->header.e_machine = EM_X86_64;
	i->header.e_phoff = offsetof(struct image, segments);
	i->header.e_phentsize = sizeof(Elf64_Phdr);
	i->header.e_phnum = ARRAY_SIZE(i->segments);
	i->header.e_shoff = offsetof(struct image, sections);
	i->header.e_shentsize = sizeof(Elf64_Shdr);
	i->header.e_shnum = ARRAY_SIZE(i->sections);
	i->segments[0] = (Elf64_Phdr){ .p_type = PT_LOAD,
				       .p_flags = PF_R | PF_X,
				       .p_offset = IMAGE_CODE_AT,
				       .p_vaddr = IMAGE_CODE_ADDRESS,
				       .p_filesz = IMAGE_CODE_BYTES,
				       .p_memsz = IMAGE_CODE_BYTES };
	/* Overlaps the code's last bytes in the file, as data does where the two share a page. */
	i->segments[1] = (Elf64_Phdr){ .p_type = PT_LOAD,
				       .p_flags = PF_R | PF_W,
				       .p_offset = IMAGE_CODE_AT + 0x100,
				       .p_vaddr = IMAGE_DATA_ADDRESS,
				       .p_filesz = 0x400,
				       .p_memsz = 0x800 };
	i->segments[2] = (Elf64_Phdr){ .p_type = PT_NOTE,
				       .p_flags = PF_R,
				       .p_offset = offsetof(struct image, build_id),
				       .p_vaddr = 0x400000 + offsetof(struct image, build_id),
				       .p_filesz = sizeof(i->build_id),
				       .p_memsz = sizeof(i->build_id) };
}

void image_init(union image_file *file)
{
	struct image *i = &file->image;

	memset(file, 0, sizeof(*file));
	init_headers(i);
	i->sections[1] = section(SHT_DYNSYM, offsetof(struct image, dynamic), sizeof(i->dynamic), 2,
				 sizeof(Elf64_Sym));
	i->sections[2] =
		section(SHT_STRTAB, offsetof(struct image, dynamic_names), sizeof(i->dynamic_names), 0, 0);
	i->sections[3] =
		section(SHT_SYMTAB, offsetof(struct image, full), sizeof(i->full), 4, sizeof(Elf64_Sym));
	i->sections[4] = section(SHT_STRTAB, offsetof(struct image, full_names), sizeof(i->full_names), 0, 0);
	i->build_id.note = (Elf64_Nhdr){ .n_namesz = 4, .n_descsz = 20, .n_type = NT_GNU_BUILD_ID };
	memcpy(i->build_id.name, "GNU", 4);
	for (size_t k = 0; k < sizeof(i->build_id.id); k++)
		i->build_id.id[k] = (uint8_t)(k + 1);
	for (size_t k = 0; k < IMAGE_CODE_BYTES; k++)
		file->bytes[IMAGE_CODE_AT + k] = (uint8_t)k;
	image_add(file, 1, "first", IMAGE_CODE_ADDRESS, 0x40);
	image_add(file, 1, "second", IMAGE_CODE_ADDRESS + 0x40, 0x40);
	image_add(file, 0, "first@@V1", IMAGE_CODE_ADDRESS, 0x40);
	image_add(file, 0, "local", IMAGE_CODE_ADDRESS + 0x40, 0);
}

Elf64_Sym *image_add(union image_file *file, int dynamic, const char *name, uint64_t address, uint64_t size)
{
	Elf64_Sym *table = dynamic ? file->image.dynamic : file->image.full;
	char *names = dynamic ? file->image.dynamic_names : file->image.full_names;
	size_t i = 1, at = 1;

	while (table[i].st_name) {
		at = table[i].st_name + strlen(names + table[i].st_name) + 1;
		i++;
	}
	assert_true(i < IMAGE_SYMBOLS && at + strlen(name) < 256);
	memcpy(names + at, name, strlen(name) + 1);
	table[i] = (Elf64_Sym){ .st_name = (uint32_t)at,
				.st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC),
				.st_shndx = 7,
				.st_value = address,
				.st_size = size };
	return &table[i];
}

int image_open(const void *bytes, size_t n)
{
	int fd = memfd_create("image", MFD_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(write_all(fd, bytes, n), (ssize_t)n);
	return fd;
}
