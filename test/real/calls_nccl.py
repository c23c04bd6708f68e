# SPDX-License-Identifier: Apache-2.0
"""Calls NCCL's own library with made-up arguments: calls_nccl.py LIBRARY. Without a GPU each fails, once it has looked at them."""
import ctypes
import sys

nccl = ctypes.CDLL(sys.argv[1])
P, S = ctypes.c_void_p, ctypes.c_size_t


class UniqueId(ctypes.Structure):
    _fields_ = [("internal", ctypes.c_char * 128)]


unique, new, number = UniqueId(), P(), ctypes.c_int()
ctypes.memmove(ctypes.addressof(unique), bytes(range(128)), 128)
# A communicator that is none. NCCL before 2.26 looks at more of it than whether it is one.
memory = ctypes.create_string_buffer(1 << 20)
comm = P(ctypes.addressof(memory)) if "--comm" in sys.argv else P()

nccl.ncclCommInitRank(ctypes.byref(new), 8, unique, 5)
nccl.ncclCommInitRankConfig(ctypes.byref(new), 6, unique, 4, None)
nccl.ncclGroupStart()
nccl.ncclSend(P(1), S(10), 9, 3, comm, P(0x71))
nccl.ncclRecv(P(1), S(11), 6, 2, comm, P(0x72))
nccl.ncclGroupEnd()
nccl.ncclAllReduce(P(1), P(2), S(1000), 7, 0, comm, P(0x73))
nccl.ncclReduceScatter(P(1), P(2), S(1001), 8, 4, comm, P(0x74))
nccl.ncclReduce(P(1), P(2), S(1002), 4, 2, 7, comm, P(0x75))
nccl.ncclBroadcast(P(1), P(2), S(1003), 0, 6, comm, P(0x76))
nccl.ncclBcast(P(1), S(1004), 1, 5, comm, P(0x77))
nccl.ncclAllGather(P(1), P(2), S(1005), 2, comm, P(0x78))
nccl.pncclAllGather(P(1), P(2), S(1006), 3, comm, P(0x79))
if hasattr(nccl, "ncclAlltoAll"):
    nccl.ncclAlltoAll(P(1), P(2), S(1007), 10, comm, P(0x7a))
    nccl.ncclGather(P(1), P(2), S(1008), 11, 1, comm, P(0x7b))
    nccl.ncclScatter(P(1), P(2), S(1009), 5, 2, comm, P(0x7c))
nccl.ncclCommCount(comm, ctypes.byref(number))
nccl.ncclCommDestroy(P())
