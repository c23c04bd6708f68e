// SPDX-License-Identifier: Apache-2.0
/*
 * What a program launched, as it knows itself: printed as one line of JSON, for tests to compare with.
 *
 *	{"pid":1,"launches":[{"match":"_Z5plainPi","how":"<<<>>>","object":"","host":4660,"grid":[1,1,1],"block":[32,1,1],"shared":0,
 *	 "count":3,"errors":{"35":3}}]}
 *
 * `match` is a regular expression of the kernel's symbol, since those of lambdas and anonymous namespaces depend on where the source lies; `host` the address of the host
 * function as linked in `object`, a file ("" is the program), or 0 where there is none.
 */
#pragma once

#include <cstddef>
#include <cstdio>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include <link.h>
#include <unistd.h>

struct Launch {
	const char *match, *how;
	const void *host;
	unsigned grid[3], block[3];
	size_t shared;
	int error;
};

/* Passed to plugins, which share nothing else with the program that loads them. */
typedef void Launched(const Launch *launch);

struct Place {
	const void *address;
	std::string object;
	unsigned long linked;
};

static inline int find_place(struct dl_phdr_info *info, size_t, void *userdata)
{
	Place *place = (Place *)userdata;

	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *ph = &info->dlpi_phdr[i];
		unsigned long linked = (unsigned long)place->address - info->dlpi_addr;

		if (ph->p_type != PT_LOAD || linked - ph->p_vaddr >= ph->p_memsz)
			continue;
		place->object = info->dlpi_name;
		place->object = place->object.substr(place->object.rfind('/') + 1);
		place->linked = linked;
		return 1;
	}
	return 0;
}

class Truth {
	struct Entry {
		/* Copied and found at once: where they lie may be unloaded later. */
		std::string match, how;
		Launch launch;
		Place place;
		unsigned long count;
		std::map<int, unsigned long> errors;
	};
	std::vector<Entry> entries;

	static bool same(const Entry &entry, const Launch &b)
	{
		const Launch &a = entry.launch;

		return a.host == b.host && a.shared == b.shared && entry.how == b.how && entry.match == b.match &&
		       std::memcmp(a.grid, b.grid, sizeof(a.grid)) == 0 &&
		       std::memcmp(a.block, b.block, sizeof(a.block)) == 0;
	}

    public:
	void add(const Launch &launch)
	{
		Entry *entry = nullptr;

		for (Entry &known : entries)
			if (same(known, launch))
				entry = &known;
		if (!entry) {
			entries.push_back(Entry{ launch.match, launch.how, launch, Place{ launch.host, "", 0 }, 0, {} });
			entry = &entries.back();
			if (launch.host)
				dl_iterate_phdr(find_place, &entry->place);
		}
		entry->count++;
		if (launch.error != 0)
			entry->errors[launch.error]++;
	}

	void print() const
	{
		const char *between = "";

		std::printf("{\"pid\":%d,\"launches\":[", (int)getpid());
		for (const Entry &entry : entries) {
			const Launch &l = entry.launch;
			const char *comma = "";

			std::printf("%s{\"match\":\"%s\",\"how\":\"%s\",\"object\":\"%s\",\"host\":%lu,\"grid\":[%u,%u,%u],"
				    "\"block\":[%u,%u,%u],\"shared\":%zu,\"count\":%lu,\"errors\":{",
				    between, entry.match.c_str(), entry.how.c_str(), entry.place.object.c_str(), entry.place.linked, l.grid[0],
				    l.grid[1], l.grid[2], l.block[0], l.block[1], l.block[2], l.shared, entry.count);
			for (const auto &[code, n] : entry.errors) {
				std::printf("%s\"%d\":%lu", comma, code, n);
				comma = ",";
			}
			std::printf("}}");
			between = ",";
		}
		std::printf("]}\n");
		std::fflush(stdout);
	}
};

/* Says "ready" and waits for a line, so that somebody can attach. */
static inline bool wait_for_line()
{
	char line[64];

	std::printf("ready\n");
	std::fflush(stdout);
	return std::fgets(line, sizeof(line), stdin) != nullptr;
}
