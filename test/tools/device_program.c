// SPDX-License-Identifier: Apache-2.0
/*
 * BPF programs on devices of a cgroup, as a container runtime attaches them.
 *
 *	device_program attach CGROUP NAME KIND MAJOR[,MAJOR...]
 *	    attaches one that denies character devices of these majors and allows all else. KIND: multi,
 *	    exclusive (without BPF_F_ALLOW_MULTI), random (it also calls a helper).
 *	device_program again CGROUP NUMBER
 *	    attaches a program that there is.
 *	device_program list CGROUP
 *	    a line for each one attached: its number, name, and its instructions in hexadecimal.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <bpf/bpf.h>

enum { MAJORS_MAX = 16, PROGRAMS_MAX = 64, INSTRUCTIONS_MAX = 4096 };

static int fail(const char *what)
{
	fprintf(stderr, "device_program: %s: %s\n", what, strerror(errno));
	return EXIT_FAILURE;
}

static int attach(const char *cgroup, const char *name, const char *kind, char *majors)
{
	struct bpf_insn insns[MAJORS_MAX * 2 + 16];
	LIBBPF_OPTS(bpf_prog_load_opts, opts);
	unsigned n = 0;
	int fd, program;

	insns[n++] = (struct bpf_insn){ .code = BPF_ALU64 | BPF_MOV | BPF_X, .dst_reg = 6, .src_reg = 1 };
	if (strcmp(kind, "random") == 0)
		insns[n++] = (struct bpf_insn){ .code = BPF_JMP | BPF_CALL, .imm = BPF_FUNC_get_prandom_u32 };
	insns[n++] = (struct bpf_insn){ .code = BPF_LDX | BPF_MEM | BPF_W, .dst_reg = 2, .src_reg = 6 };
	insns[n++] = (struct bpf_insn){ .code = BPF_ALU | BPF_AND | BPF_K, .dst_reg = 2, .imm = 0xffff };
	insns[n++] =
		(struct bpf_insn){ .code = BPF_LDX | BPF_MEM | BPF_W, .dst_reg = 3, .src_reg = 6, .off = 4 };
	insns[n++] = (struct bpf_insn){ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = 0, .imm = 0 };
	for (char *word; (word = strsep(&majors, ",")) && n + 8 < sizeof(insns) / sizeof(insns[0]);) {
		/* another major, or no character device: the next comparison */
		insns[n++] = (struct bpf_insn){
			.code = BPF_JMP | BPF_JNE | BPF_K, .dst_reg = 3, .off = 2, .imm = atoi(word)
		};
		insns[n++] = (struct bpf_insn){
			.code = BPF_JMP | BPF_JNE | BPF_K, .dst_reg = 2, .off = 1, .imm = BPF_DEVCG_DEV_CHAR
		};
		insns[n++] = (struct bpf_insn){ .code = BPF_JMP | BPF_EXIT };
	}
	insns[n++] = (struct bpf_insn){ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = 0, .imm = 1 };
	insns[n++] = (struct bpf_insn){ .code = BPF_JMP | BPF_EXIT };
	fd = open(cgroup, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return fail(cgroup);
	program = bpf_prog_load(BPF_PROG_TYPE_CGROUP_DEVICE, name, "GPL", insns, n, &opts);
	if (program < 0)
		return fail("loading");
	if (bpf_prog_attach(program, fd, BPF_CGROUP_DEVICE,
			    strcmp(kind, "exclusive") == 0 ? 0 : BPF_F_ALLOW_MULTI) < 0)
		return fail("attaching");
	return EXIT_SUCCESS;
}

static int again(const char *cgroup, const char *number)
{
	int fd = open(cgroup, O_RDONLY | O_DIRECTORY | O_CLOEXEC),
	    program = bpf_prog_get_fd_by_id((unsigned)atoi(number));

	if (fd < 0 || program < 0)
		return fail(cgroup);
	if (bpf_prog_attach(program, fd, BPF_CGROUP_DEVICE, BPF_F_ALLOW_MULTI) < 0)
		return fail("attaching");
	return EXIT_SUCCESS;
}

static int list(const char *cgroup)
{
	static struct bpf_insn insns[INSTRUCTIONS_MAX];
	unsigned ids[PROGRAMS_MAX], n = PROGRAMS_MAX, flags;
	int fd = open(cgroup, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0)
		return fail(cgroup);
	if (bpf_prog_query(fd, BPF_CGROUP_DEVICE, 0, &flags, ids, &n) < 0)
		return fail("asking");
	for (unsigned i = 0; i < n; i++) {
		struct bpf_prog_info info = { .xlated_prog_insns = (unsigned long)insns,
					      .xlated_prog_len = sizeof(insns) };
		unsigned size = sizeof(info);
		int program = bpf_prog_get_fd_by_id(ids[i]);

		if (program < 0 || bpf_obj_get_info_by_fd(program, &info, &size) < 0)
			return fail("reading");
		printf("%u %s ", ids[i], info.name[0] ? info.name : "-");
		for (unsigned j = 0; j < info.xlated_prog_len; j++)
			printf("%02x", ((unsigned char *)insns)[j]);
		printf("\n");
		close(program);
	}
	return EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
	if (argc == 6 && strcmp(argv[1], "attach") == 0)
		return attach(argv[2], argv[3], argv[4], argv[5]);
	if (argc == 4 && strcmp(argv[1], "again") == 0)
		return again(argv[2], argv[3]);
	if (argc == 3 && strcmp(argv[1], "list") == 0)
		return list(argv[2]);
	fprintf(stderr, "device_program attach CGROUP NAME multi|exclusive|random MAJORS, again CGROUP "
			"NUMBER, or list CGROUP\n");
	return 2;
}
