// SPDX-License-Identifier: Apache-2.0
/*
 * What the runtime's headers take from the compiler's, which come in another package: marks that mean nothing
 * to a C compiler.
 */
#pragma once

#define CUDARTAPI
#define __align__(n) __attribute__((aligned(n)))
#define __builtin_align__(n) __align__(n)
#define __host__
#define __device__
#define __device_builtin__
#define __device_builtin_texture_type__
#define __device_builtin_surface_type__
#define __cudart_builtin__
#define __specialization_static static
#define __no_return__
#define __noinline__
#define CUDARTAPI_CDECL
