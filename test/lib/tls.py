# SPDX-License-Identifier: Apache-2.0
"""Which library of TLS libcurl uses: with OpenSSL gpusonde tells why a handshake failed, with others that it did."""
import ctypes
import functools
import re
import subprocess

from lib.e2e import BUILD, Skip


@functools.lru_cache(None)
def library():
    """As libcurl says it: "OpenSSL/3.0.15", "GnuTLS/3.7.9"."""
    loads = subprocess.run(["ldd", f"{BUILD}/gpusonde-kube"], capture_output=True, text=True, check=True).stdout
    version = ctypes.CDLL(re.search(r"libcurl\S* => (\S+)", loads)[1]).curl_version
    version.restype = ctypes.c_char_p
    return version().decode().split()[1]


def tells_why():
    return library().startswith("OpenSSL/")


def need_reasons():
    if not tells_why():
        raise Skip(f"libcurl is one of {library()}: why TLS fails is not told")
