// SPDX-License-Identifier: Apache-2.0
#include "agent/bind.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "proc/port.h"

static uint16_t port_of(const char *address)
{
	return (uint16_t)strtoul(strrchr(address, ':') + 1, NULL, 10);
}

/* @flag: the option's. */
static void explain_http(const char *address, const char *flag, int error)
{
	char who[128];

	switch (error) {
	case -EADDRINUSE:
		port_owner(port_of(address), who, sizeof(who));
		log_error("cannot listen on %s: %s listens there already; stop it, or choose another address "
			  "with %s",
			  address, who, flag);
		break;
	case -EACCES:
		log_error("cannot listen on %s: ports below 1024 need CAP_NET_BIND_SERVICE; choose another "
			  "with %s",
			  address, flag);
		break;
	case -EADDRNOTAVAIL:
		log_error("cannot listen on %s: this machine has no such address; choose another with %s",
			  address, flag);
		break;
	default:
		log_error("cannot listen on %s: %s; choose another address with %s", address,
			  strerror(-error), flag);
	}
}

int bind_http(const char *address, const char *flag, bool asks, int ret_fds[ADDRESS_MAX], unsigned *ret_n)
{
	int r = listen_tcp_text(address, ret_fds, ret_n);

	if (r < 0) {
		explain_http(address, flag, r);
		return r;
	}
	if (asks_for_any_port(address))
		log_info("listening on %s (port %u)", address, listen_port(ret_fds[0]));
	else
		log_info("listening on %s", address);
	if (!address_is_loopback(address) && !asks)
		log_warning("LISTENING BEYOND LOOPBACK on %s: everyone who can reach this port can "
			    "read every metric, process names included; there is no authentication. "
			    "%s 127.0.0.1:%u keeps it on this machine",
			    address, flag, listen_port(ret_fds[0]));
	return 0;
}

static void explain_atop(const char *address, int error)
{
	char who[128];

	if (error == -EADDRINUSE) {
		port_owner(port_of(address), who, sizeof(who));
		log_warning(
			"atop is not served on %s: %s listens there already; stop it, or pass --atop-listen "
			"none",
			address, who);
	} else {
		log_warning("atop is not served on %s: %s; name another address with --atop-listen", address,
			    strerror(-error));
	}
}

int bind_atop(const char *address, int *ret_fd)
{
	struct addresses found;
	int r = address_parse(address, &found);

	if (r == 0)
		r = listen_tcp(&found.list[0], ret_fd);
	if (r < 0) {
		explain_atop(address, r);
		return r;
	}
	if (asks_for_any_port(address))
		log_info("serving atop on %s (port %u)", address, listen_port(*ret_fd));
	else
		log_info("serving atop on %s", address);
	if (!address_is_loopback(address))
		log_warning("LISTENING BEYOND LOOPBACK on %s for atop: there is no authentication", address);
	return 0;
}

int bind_atop_abstract(const char *name, int *ret_fd)
{
	char who[128];
	int r = listen_abstract(name, ret_fd);

	if (r == -EADDRINUSE) {
		abstract_owner(name, who, sizeof(who));
		log_warning(
			"atop is not served on the socket @%s: %s listens there already; stop it, or pass "
			"--atop-socket none",
			name, who);
	} else if (r < 0) {
		log_warning("atop is not served on the socket @%s: %s; name another with --atop-socket", name,
			    strerror(-r));
	} else {
		log_info("serving atop on the abstract socket @%s", name);
	}
	return r;
}
