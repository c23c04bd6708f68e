# SPDX-License-Identifier: Apache-2.0
"""etcd by its gateway of JSON."""
import base64
import contextlib
import http.client
import json


def compact(port):
    """It forgets what was before now."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    with contextlib.closing(connection):
        def call(path, **body):
            connection.request("POST", f"/v3/{path}", json.dumps(body))
            return json.loads(connection.getresponse().read())
        revision = call("kv/range", key=base64.b64encode(b"x").decode())["header"]["revision"]
        call("kv/compaction", revision=revision, physical=True)
