// SPDX-License-Identifier: Apache-2.0
/* Calls libmade.so so often as test_made.c expects, once a byte has come. */
#include <setjmp.h>
#include <string.h>
#include <unistd.h>

#include "made.hh"

enum { TIMES = 10, BYTES = 4096 };

static jmp_buf away;
static char host[BYTES];

static void leave(void *)
{
	longjmp(away, 1);
}

static void copy(void *to)
{
	madeNote(madeCopy(to, host, 1)); /* both nested in madeCall() */
}

int main(void)
{
	char c = 0;

	if (write(STDOUT_FILENO, &c, 1) != 1 || read(STDIN_FILENO, &c, 1) != 1 || madeInit())
		return 1;
	for (volatile int i = 0; i < TIMES; i++) {
		void *memory = madeAlloc(BYTES), *other = madeAlloc(BYTES);

		if (!memory || !other || madeAlloc((size_t)1 << 60))
			return 2;
		if (madeCopy(memory, host, BYTES) || madeRepeat(3, memory, host, 100))
			return 3;
		if (madeFail(77) != 77 || madeNote(5) != 5)
			return 4;
		if (setjmp(away) == 0)
			madeCall(leave, nullptr);
		madeCall(copy, memory);
		try {
			madeThrow(memory, host, 10);
		} catch (int) {
		}
		if (madeTail(other) || madeFree(memory))
			return 5;
	}
	return 0;
}
