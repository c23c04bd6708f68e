// SPDX-License-Identifier: Apache-2.0
#include "base/address.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>

#include "base/macro.h"

/* Where clouds have their metadata and credentials beside 169.254.0.0/16. */
static const char *const metadata[] = {
	"100.100.100.200", /* Alibaba Cloud */
	"168.63.129.16", /* Azure */
	"192.0.0.192", /* Oracle Cloud */
};
static const char *const metadata_ipv6[] = {
	"fd00:ec2::254", /* Amazon */
	"fd20:ce::254", /* Google */
	"fd00:c1::a9fe:a9fe", /* Oracle Cloud */
};

static bool is_pods_ipv4(const struct in_addr *in)
{
	uint32_t address = ntohl(in->s_addr);
	struct in_addr other;

	for (size_t i = 0; i < ARRAY_SIZE(metadata); i++)
		if (inet_pton(AF_INET, metadata[i], &other) == 1 && other.s_addr == in->s_addr)
			return false;
	return address >> 24 != 0 && address >> 16 != 0xa9fe /* 169.254.0.0/16 */ && address >> 28 < 0xe;
}

/* An address of version 6 that leads to one of version 4, which it ends with or has in it. */
static bool find_ipv4(const struct in6_addr *in6, struct in_addr *ret_in)
{
	static const uint8_t nat64[12] = { 0x00, 0x64, 0xff, 0x9b };
	size_t at = 12;

	if (in6->s6_addr[0] == 0x20 && in6->s6_addr[1] == 0x02)
		at = 2; /* 6to4 */
	else if (!IN6_IS_ADDR_V4MAPPED(in6) && !IN6_IS_ADDR_V4COMPAT(in6) &&
		 memcmp(in6->s6_addr, nat64, sizeof(nat64)) != 0)
		return false;
	memcpy(ret_in, &in6->s6_addr[at], sizeof(*ret_in));
	return true;
}

bool address_is_pods(const char *text)
{
	struct in_addr in;
	struct in6_addr in6, other;

	if (inet_pton(AF_INET, text, &in) == 1)
		return is_pods_ipv4(&in);
	if (inet_pton(AF_INET6, text, &in6) != 1)
		return false;
	if (find_ipv4(&in6, &in))
		return is_pods_ipv4(&in);
	for (size_t i = 0; i < ARRAY_SIZE(metadata_ipv6); i++)
		if (inet_pton(AF_INET6, metadata_ipv6[i], &other) == 1 && IN6_ARE_ADDR_EQUAL(&in6, &other))
			return false;
	return !IN6_IS_ADDR_UNSPECIFIED(&in6) && !IN6_IS_ADDR_LINKLOCAL(&in6) && !IN6_IS_ADDR_MULTICAST(&in6);
}
