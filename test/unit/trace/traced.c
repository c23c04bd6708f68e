// SPDX-License-Identifier: Apache-2.0
#include "traced.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

traced_fn *traced_body;

int traced_dispatch(uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e, uint64_t f);
int traced_dispatch(uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e, uint64_t f)
{
	return traced_body ? traced_body(a, b, c, d, e, f) : 0;
}

#define FUNCTION(name, body)                   \
	__asm__(".pushsection .text\n"         \
		".globl " #name "\n"           \
		".hidden " #name "\n"          \
		".type " #name ", %function\n" \
		".balign 32\n" #name ":\n" body ".size " #name ", . - " #name "\n.popsection\n");

#if defined(__x86_64__)
#define CALL "push %rbp\nmov %rsp, %rbp\ncall traced_dispatch\npop %rbp\nret\n"
FUNCTION(traced_tail, "push %rax\npop %rax\njmp traced_inner\n")
FUNCTION(traced_deep,
	 "sub $24, %rsp\npush %rbp\nmov %rsp, %rbp\nsub $8, %rsp\ncall traced_dispatch\nadd $8, %rsp\n"
	 "pop %rbp\nadd $24, %rsp\nret\n")
const uint32_t traced_deep_offset = 4, traced_deep_stack = 24;
#elif defined(__aarch64__)
#define CALL \
	"b 1f\n1: stp x29, x30, [sp, -16]!\nmov x29, sp\nbl traced_dispatch\nldp x29, x30, [sp], 16\nret\n"
FUNCTION(traced_tail, "b 1f\n1: b traced_inner\n")
FUNCTION(traced_deep,
	 "sub sp, sp, 32\nb 1f\n1: str x30, [sp]\nbl traced_dispatch\nldr x30, [sp]\nadd sp, sp, 32\nret\n")
const uint32_t traced_deep_offset = 4, traced_deep_stack = 32;
#endif

FUNCTION(traced_outer, CALL)
FUNCTION(traced_inner, CALL)
FUNCTION(traced_third, CALL)
FUNCTION(traced_fourth, CALL)
FUNCTION(traced_launch, CALL)
FUNCTION(traced_launch_dim3, CALL)
FUNCTION(traced_launch_config, CALL)
FUNCTION(traced_malloc3d, CALL)

struct attach_site traced_site(const void *code, uint16_t call)
{
	struct attach_site site = { .call = call, .code_n = sizeof(site.code) };
	uint64_t address = (uint64_t)(uintptr_t)code, start, end, offset;
	FILE *maps = fopen("/proc/self/maps", "re");
	char line[512];

	while (maps && fgets(line, sizeof(line), maps)) {
		if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %*s %" SCNx64, &start, &end, &offset) != 3 ||
		    address < start || address >= end)
			continue;
		site.offset = address - start + offset;
		memcpy(site.code, code, sizeof(site.code));
	}
	if (maps)
		fclose(maps);
	return site;
}

int traced_file(void)
{
	static int fd = -1;

	if (fd < 0)
		fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	return fd;
}

int traced_run(void (*fn)(void *userdata), void *userdata, pid_t *ret_pid)
{
	int status = -1;
	pid_t pid = fork();

	if (pid == 0) {
		fn(userdata);
		_exit(0);
	}
	if (pid > 0)
		waitpid(pid, &status, 0);
	if (ret_pid)
		*ret_pid = pid;
	return status;
}
