// SPDX-License-Identifier: Apache-2.0
/* A function with the name of one that is return-probed, which calls back: what unwinds from there goes through it. */
extern "C" int cudaStreamSynchronize(void (*callback)())
{
	callback();
	asm volatile("" ::: "memory"); /* a call, not a jump */
	return 0;
}
