// SPDX-License-Identifier: Apache-2.0
/* leaving: leaves a function that may be traced by longjmp, then calls it 50 times from deeper in the stack. */
#include <csetjmp>
#include <cstring>

extern "C" int cudaStreamSynchronize(void (*callback)());

static jmp_buf out;

static void leave()
{
	longjmp(out, 1);
}

static void nothing()
{
}

__attribute__((noinline)) static void deeper()
{
	char written_over[4096];

	std::memset(written_over, 1, sizeof(written_over));
	asm volatile("" : : "r"(written_over) : "memory");
	for (int i = 0; i < 50; i++)
		cudaStreamSynchronize(nothing);
}

int main()
{
	if (!setjmp(out))
		cudaStreamSynchronize(leave);
	deeper();
	return 0;
}
