// SPDX-License-Identifier: Apache-2.0
/*
 * StatsD's datagrams: as many lines in each as fit. Of a counter a line has what was added since the round
 * before. One that was not there then has begun since, where that is known; else its first round only says
 * where it stands, since a driver's counter is older than this agent.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/hashmap.h"
#include "base/strbuf.h"
#include "view/statsd.h"

enum {
	STATSD_UDP_BYTES = 1432, /* of a datagram that no network of 1500 cuts into pieces */
	STATSD_UNIX_BYTES = 8192,
	STATSD_COUNTERS_MAX = 65536,
};

struct statsd_packets {
	void (*send)(const void *data, size_t n, void *userdata);
	void *userdata;
	size_t bytes; /* of a datagram, at most */
	struct strbuf packet, line;
	uint64_t left_out; /* lines that are longer than a datagram, counters beyond the limit */

	/* Counters of the round before, and of this one: key to index of the value. */
	struct hashmap known, next;
	double *known_values, *next_values;
	int64_t known_real_ns; /* when that round was; 0: there was none */
};

int statsd_packets_init(struct statsd_packets *packets, size_t bytes,
			void (*send)(const void *data, size_t n, void *userdata), void *userdata);
void statsd_packets_done(struct statsd_packets *packets);

/* A round: values, then its end, which sends what is left. @real_ns: when the values were taken. */
void statsd_packets_add(struct statsd_packets *packets, const struct statsd_value *value);
void statsd_packets_end(struct statsd_packets *packets, int64_t real_ns);
