// SPDX-License-Identifier: Apache-2.0
#include "test.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "proc/maps.h"

static int parse(const char *line, struct proc_map *map)
{
	return proc_map_parse(line, strlen(line), map);
}

static void lines_as_the_kernel_writes_them(void **state)
{
	static const char library[] =
		"7f12a0000000-7f12a0200000 r-xp 00001000 fd:10 123456                     /a b/libcuda.so.1 "
		"(deleted)";
	struct proc_map map;

	(void)state;
	assert_int_equal(parse(library, &map), 0);
	assert_int_equal(map.start, 0x7f12a0000000);
	assert_int_equal(map.end, 0x7f12a0200000);
	assert_int_equal(map.offset, 0x1000);
	assert_int_equal(map.dev, makedev(0xfd, 0x10));
	assert_int_equal(map.ino, 123456);
	assert_true(map.executable);
	assert_int_equal(map.path_n, strlen("/a b/libcuda.so.1 (deleted)"));
	assert_memory_equal(map.path, "/a b/libcuda.so.1 (deleted)", map.path_n);
	assert_int_equal(parse("7f12a0000000-7f12a0200000 rw-p 00000000 00:00 0 ", &map), 0);
	assert_false(map.executable);
	assert_int_equal(map.ino, 0);
	assert_int_equal(map.path_n, 0);
	assert_int_equal(parse("ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0 [vsyscall]", &map),
			 0);
}

static void lines_that_are_none(void **state)
{
	static const char *const bad[] = {
		"",
		"-",
		"7f00-",
		"7f00-7f01",
		"7f00-7f01 r",
		"7f00-7f01 r-xp 0 8:1",
		"7f00-7f01 r-xp 0 8:1 x",
		"7f01-7f00 r-xp 0 8:1 5",
		"7f00-7f00 r-xp 0 8:1 5",
		"7f00-7f01 rx 0 8:1 5",
		"7f00-7f01 r-xp 0 100000000:1 5",
		"10000000000000000-7f01 r-xp 0 8:1 5",
		"7f00-7f01 r-xp 0 8:1 99999999999999999999",
	};
	struct proc_map map = { .ino = 42 };

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(parse(bad[i], &map), -EBADMSG);
	assert_int_equal(map.ino, 42);
}

/* Lines longer than the buffer are left out, what is behind them is not. */
static void a_folder_of_our_own(void **state)
{
	char dir[] = "/tmp/maps.XXXXXX", path[64];
	struct proc_maps maps;
	struct proc_map map;
	FILE *file;

	(void)state;
	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/7", dir);
	assert_int_equal(mkdir(path, 0700), 0);
	snprintf(path, sizeof(path), "%s/7/maps", dir);
	file = fopen(path, "w");
	assert_non_null(file);
	fputs("1000-2000 r-xp 0 8:1 5 /", file);
	for (int i = 0; i < 40000; i++)
		fputc('x', file);
	fputs("\nnonsense\n2000-3000 r-xp 0 8:1 6 /b\n", file);
	for (int i = 0; i < 2000; i++)
		fputs("3000-4000 rw-p 0 0:0 0 \n", file);
	fputs("5000-6000 r--p 0 8:1 7 /c\n5000-6000 r-xp 0 8:1 7 /c\n6000-7000 r-xp 0 8:1 8 /no end", file);
	fclose(file);

	assert_int_equal(proc_maps_open(dir, 7, &maps), 0);
	assert_int_equal(proc_maps_next(&maps, &map), 1);
	assert_int_equal(map.ino, 6);
	for (int i = 0; i < 2000; i++)
		assert_int_equal(proc_maps_next(&maps, &map), 1);
	assert_int_equal(proc_maps_next(&maps, &map), 1);
	assert_int_equal(proc_maps_next(&maps, &map), 1);
	assert_int_equal(map.ino, 7);
	assert_true(map.executable);
	assert_int_equal(proc_maps_next(&maps, &map), 0);
	proc_maps_done(&maps);

	assert_int_equal(proc_maps_find(dir, 7, makedev(8, 1), 7, &map), 0);
	assert_int_equal(map.start, 0x5000);
	assert_int_equal(proc_maps_find(dir, 7, makedev(8, 2), 7, &map), -ENOENT);
	assert_int_equal(proc_maps_open(dir, 8, &maps), -ENOENT);
	unlink(path);
	*strrchr(path, '/') = '\0';
	rmdir(path);
	rmdir(dir);
}

static void our_own(void **state)
{
	struct proc_maps maps;
	struct proc_map map;
	bool found = false;

	(void)state;
	assert_int_equal(proc_maps_open("/proc", getpid(), &maps), 0);
	while (proc_maps_next(&maps, &map) > 0)
		found |= map.executable && map.start <= (uintptr_t)our_own && (uintptr_t)our_own < map.end &&
			 map.ino != 0;
	proc_maps_done(&maps);
	assert_true(found);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lines_as_the_kernel_writes_them),
		cmocka_unit_test(lines_that_are_none),
		cmocka_unit_test(a_folder_of_our_own),
		cmocka_unit_test(our_own),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
