// SPDX-License-Identifier: Apache-2.0
/* A library without symbols of its own functions, between two functions of a program. */
void through(void (*function)(void));

static __attribute__((noinline)) void inner(void (*function)(void))
{
	function();
	__asm__ volatile("" ::: "memory");
}

void through(void (*function)(void))
{
	inner(function);
	__asm__ volatile("" ::: "memory");
}
