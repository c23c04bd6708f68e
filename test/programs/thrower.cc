// SPDX-License-Identifier: Apache-2.0
#include "thrower.hh"

#include <atomic>

static std::atomic<int> cleaned;

struct Cleanup {
	~Cleanup()
	{
		cleaned++;
	}
};

/* What stands behind the call keeps it from being a jump. */
#define NOT_A_TAIL_CALL() asm volatile("" ::: "memory")

extern "C" void thrower_plain(void (*callback)(void *), void *data)
{
	callback(data);
	NOT_A_TAIL_CALL();
}

extern "C" void thrower_with_cleanup(void (*callback)(void *), void *data)
{
	Cleanup cleanup;

	callback(data);
}

extern "C" int thrower_cleaned(void)
{
	return cleaned;
}

void thrower::plain(void (*callback)(void *), void *data)
{
	callback(data);
	NOT_A_TAIL_CALL();
}

void thrower::with_cleanup(void (*callback)(void *), void *data)
{
	Cleanup cleanup;

	callback(data);
}

void thrower::deep(int depth, void (*callback)(void *), void *data)
{
	if (depth > 0)
		thrower::deep(depth - 1, callback, data);
	else
		callback(data);
	NOT_A_TAIL_CALL();
}
