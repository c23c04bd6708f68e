// SPDX-License-Identifier: Apache-2.0
/* A library with kernels that plugin_host loads, and unloads, while it runs. */
#include "launch.cuh"

extern "C" void plugin_launch(Launched *launched);

__global__ void plugged(int *p)
{
	*p = 1;
}

template <typename T>
__global__ void plugged_in(T *p)
{
	*p = T(2);
}

void plugin_launch(Launched *launched)
{
	int *p = nullptr;

	LAUNCH("_Z7pluggedPi", plugged, dim3(3), dim3(32), 0, p);
	LAUNCH("_Z10plugged_inIfEvPT_", plugged_in<float>, dim3(4), dim3(64), 0, nullptr);
}
