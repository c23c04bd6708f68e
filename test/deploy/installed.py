#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What an installation has, and that nothing of it is left."""
import os
import shutil
import subprocess
import tempfile

from lib.e2e import BUILD, SOURCE, contains, equal, run


def boards_and_rules():
    """For Grafana and Prometheus, below /usr."""
    boards = [name for name in os.listdir(f"{SOURCE}/deploy/grafana") if name.endswith(".json")]
    return {f"/usr/share/gpusonde/grafana/{name}" for name in boards} | {"/usr/share/gpusonde/prometheus/rules.yaml"}


def below(path):
    return {os.path.join(at, name).removeprefix(path) for at, folders, names in os.walk(path) for name in [*folders, *names]}


def test_installed_and_uninstalled():
    """As make install and make uninstall do, in a folder of its own; what else is there stays."""
    log = f"{BUILD}/meson-logs/install-log.txt"
    with tempfile.TemporaryDirectory(prefix="gpusonde-installed-") as tmp:
        if os.path.exists(log): # which "make uninstall" reads
            shutil.copy(log, f"{tmp}/log")
        os.makedirs(f"{tmp}/root/usr/local/bin")
        with open(f"{tmp}/root/usr/local/bin/other", "w", encoding="utf-8"):
            pass
        before = below(f"{tmp}/root")
        try:
            subprocess.run(["meson", "install", "--no-rebuild", "--quiet", "-C", BUILD], env=dict(os.environ, DESTDIR=f"{tmp}/root"), check=True, capture_output=True)
            found = below(f"{tmp}/root")
            for path in ("bin/gpusonde", "sbin/atopgpud", "libexec/gpusonde/gpusonde-nvml", "lib/systemd/system/gpusonde.service", "lib/systemd/system/gpusonde-web.socket"):
                contains(found, f"/usr/local/{path}")
            equal({p.replace("/usr/local/", "/usr/") for p in found if "/grafana/" in p or "/prometheus/" in p}, boards_and_rules())
            subprocess.run(["ninja", "-C", BUILD, "uninstall"], check=True, capture_output=True)
            equal(below(f"{tmp}/root"), before, "what is left")
        finally:
            if os.path.exists(f"{tmp}/log"):
                shutil.copy(f"{tmp}/log", log)


if __name__ == "__main__":
    run()
