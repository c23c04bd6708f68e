// SPDX-License-Identifier: Apache-2.0
#include "base/address.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>

static bool is_pods_ipv4(const struct in_addr *in)
{
	uint32_t address = ntohl(in->s_addr);

	return address >> 24 != 0 && address >> 16 != 0xa9fe /* 169.254.0.0/16 */ && address >> 28 < 0xe;
}

bool address_is_pods(const char *text)
{
	struct in_addr in;
	struct in6_addr in6;

	if (inet_pton(AF_INET, text, &in) == 1)
		return is_pods_ipv4(&in);
	if (inet_pton(AF_INET6, text, &in6) != 1)
		return false;
	if (IN6_IS_ADDR_V4MAPPED(&in6)) {
		memcpy(&in, &in6.s6_addr[12], sizeof(in));
		return is_pods_ipv4(&in);
	}
	return !IN6_IS_ADDR_UNSPECIFIED(&in6) && !IN6_IS_ADDR_LINKLOCAL(&in6) && !IN6_IS_ADDR_MULTICAST(&in6);
}
