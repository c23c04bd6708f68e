# SPDX-License-Identifier: Apache-2.0
"""Cases of device cgroups of version 2: how a kernel gives programs back, and takes them, differs from one to the next."""
from lib.devices import LIST
from kernels.cases import case, ended_well

DENIED, NO_DRIVER = "Operation not permitted", "No such device or address"
SCRIPT = f"""
exec 2>&1
cat >devices <<END
{LIST}END
G="/gs/gpusonde cgroup"
D="--cgroup-devices $OUT/devices"
C=/sys/fs/cgroup/a.service
mkdir $C
mknod nvidia c 195 0
mknod other c 124 0
try() {{
	echo @$1
	sh -c "echo \\$\\$ >$C/cgroup.procs; cat nvidia; cat other; mknod made c 195 7 && echo made" 2>&1 | sed 's/.*: //'
}}
/gs/device_program attach $C owner multi 195,124
/gs/device_program list $C | cut -d' ' -f2- >before
try before
$G check $C $D >/dev/null && exit 81
$G allow a.service --devices all $D >/dev/null || exit 82
try allowed
$G check $C $D >/dev/null || exit 83
/gs/device_program list $C | cut -d' ' -f2- >allowed
$G allow a.service --undo >/dev/null || exit 84
/gs/device_program list $C | cut -d' ' -f2- >after
try undone
/gs/device_program attach $C second multi 124
$G allow a.service --devices all $D >/dev/null && exit 85
/gs/device_program list $C | wc -l >several
"""


@case(SCRIPT)
def devices_allowed(results, _):
    """A denied device is allowed, the rest of the policy holds, and undoing it leaves the program as it was."""
    result = ended_well(results["devices-allowed"])
    said = dict(part.split("\n", 1) for part in result.text("stdout").split("@")[1:])
    denied = [DENIED] * 3
    assert said["before"].split("\n")[:3] == denied, said
    assert said["allowed"].split("\n")[:3] == [NO_DRIVER, DENIED, DENIED], said
    assert said["undone"].split("\n")[:3] == denied, said
    before, allowed, after = (result.text(n) for n in ("before", "allowed", "after"))
    assert before == after and before.startswith("owner "), (before, after)
    assert allowed.startswith("gpusonde_allow ") and allowed.strip().endswith(before.split()[1]), (before, allowed)
    assert result.text("several").strip() == "2", "several programs are left alone"
