# SPDX-License-Identifier: Apache-2.0
"""Cases that are functions which say what is wrong, as TAP."""


from lib.nvidia_header import SkipTest


def run(cases):
    """@cases: (name, function that gives None or what is wrong). An exit status."""
    print(f"1..{len(cases)}")
    failed = 0
    for number, (name, check) in enumerate(cases, start=1):
        try:
            trouble = check()
        except SkipTest as why:
            print(f"ok {number} - {name} # SKIP {why}")
            continue
        failed += bool(trouble)
        print(f"{'not ok' if trouble else 'ok'} {number} - {name}")
        if trouble:
            print(f"# {trouble}")
    return 1 if failed else 0
