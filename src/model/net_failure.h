// SPDX-License-Identifier: Apache-2.0
/* Why a server gave no answer (model/net_failures.def). */
#pragma once

enum net_failure {
	NET_OK, /* it did */
#define NET_FAILURE(id_, name_, words_, remedy_, place_) NET_FAILED_##id_,
#include "model/net_failures.def"
	NET_FAILURES,
};
