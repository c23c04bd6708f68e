// SPDX-License-Identifier: Apache-2.0
/*
 * exceptions [TURNS [WAIT]]: throws through every function of libthrower and catches what comes. Prints
 * {"thrown":N,"caught":N,"cleaned":N}; 1 if an exception was lost. With WAIT it prints "ready" first and waits for a line.
 */
#include <cstdio>
#include <cstdlib>
#include <stdexcept>

#include "thrower.hh"

static void throws(void *data)
{
	throw *(int *)data;
}

int main(int argc, char **argv)
{
	static void (*const ways[])(void (*)(void *), void *) = {
		thrower_plain,
		thrower_with_cleanup,
		thrower::plain,
		thrower::with_cleanup,
		[](void (*callback)(void *), void *data) { thrower::deep(20, callback, data); },
	};
	const int turns = argc > 1 ? std::atoi(argv[1]) : 100;
	int thrown = 0, caught = 0;
	char line[64];

	if (argc > 2) {
		std::printf("ready\n");
		std::fflush(stdout);
		if (!std::fgets(line, sizeof(line), stdin))
			return 1;
	}
	for (int i = 0; i < turns; i++) {
		for (auto way : ways) {
			try {
				thrown++;
				way(throws, &i);
			} catch (int what) {
				caught += what == i;
			}
		}
	}
	std::printf("{\"thrown\":%d,\"caught\":%d,\"cleaned\":%d}\n", thrown, caught, thrower_cleaned());
	return thrown == caught ? 0 : 1;
}
