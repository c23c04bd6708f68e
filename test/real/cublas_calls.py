# SPDX-License-Identifier: Apache-2.0
"""Calls NVIDIA's cuBLAS and cublasLt as a program would, without a device: every multiplication fails, with its arguments in place.

    cublas_calls.py LIBCUBLAS LIBCUBLASLT
"""
import ctypes
import sys
from ctypes import c_float, c_int, c_longlong, c_size_t, c_uint64, c_void_p

NULL, ONE = c_void_p(0), c_float(1)


def ints(*values):
    return [c_int(value) for value in values]


def wides(*values):
    return [c_longlong(value) for value in values]


def old(cublas):
    op = ints(0, 1)
    cublas.cublasGemmEx(NULL, *op, *ints(100, 200, 300), NULL, NULL, *ints(14, 100), NULL, *ints(14, 300), NULL, NULL, *ints(14, 100, 68, -1))
    if hasattr(cublas, "cublasGemmStridedBatchedEx_64"):  # from 12 on
        cublas.cublasGemmStridedBatchedEx_64(NULL, *op, *wides(101, 201, 301), NULL, NULL, c_int(2), *wides(1, 7), NULL, c_int(2), *wides(1, 8), NULL, NULL,
                                             c_int(2), *wides(1, 9, 12), *ints(68, -1))
    cublas.cublasGemmBatchedEx(NULL, *op, *ints(102, 202, 302), NULL, NULL, *ints(28, 1), NULL, *ints(29, 1), NULL, NULL, *ints(0, 1, 13, 68, -1))
    cublas.cublasSgemm_v2(NULL, *op, *ints(5, 6, 7), NULL, NULL, c_int(5), NULL, c_int(7), NULL, NULL, c_int(5))
    cublas.cublasZgemmStridedBatched(NULL, *op, *ints(8, 9, 10), NULL, NULL, c_int(5), *wides(1), NULL, c_int(7), *wides(2), NULL, NULL, c_int(5), *wides(3),
                                     c_int(33))


def layout(lt, rows, columns):
    made = c_void_p()
    assert lt.cublasLtMatrixLayoutCreate(ctypes.byref(made), c_int(14), c_uint64(rows), c_uint64(columns), c_longlong(rows)) == 0
    assert lt.cublasLtMatrixLayoutSetAttribute(made, c_int(5), ctypes.byref(c_int(5)), c_size_t(4)) == 0
    return made


def new(lt):
    desc = c_void_p()
    assert lt.cublasLtMatmulDescCreate(ctypes.byref(desc), c_int(68), c_int(0)) == 0
    a, b, d = layout(lt, 64, 32), layout(lt, 64, 16), layout(lt, 32, 16)

    def matmul(layout_a):
        lt.cublasLtMatmul(NULL, desc, ctypes.byref(ONE), NULL, layout_a, NULL, b, ctypes.byref(ONE), NULL, d, NULL, d, NULL, NULL, c_size_t(0), NULL)

    matmul(a)
    copy = (c_uint64 * 8).from_buffer_copy((c_uint64 * 8).from_address(a.value))
    matmul(ctypes.byref(copy))
    # Another one at the address of a former one, whose making nobody saw.
    copy[1] += 1
    matmul(ctypes.byref(copy))
    ctypes.memmove(a.value, copy, 64)
    matmul(a)


cublas_lt = ctypes.CDLL(sys.argv[2], ctypes.RTLD_GLOBAL)  # which the other one needs
old(ctypes.CDLL(sys.argv[1]))
new(cublas_lt)
