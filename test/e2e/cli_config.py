#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Options: four origins, errors with file, line and remedy, and a printed configuration that loads again."""
import re
import tempfile

from lib.e2e import command, contains, environment, equal, run


def configuration(text):
    file = tempfile.NamedTemporaryFile("w", suffix=".yaml")
    file.write(text)
    file.flush()
    return file


def test_precedence():
    with configuration("sample: {period: 2s}\nprocess: {series: 2}\nhttp: {max_connections: 20}\n") as file:
        out = command("agent", "--config", file.name, "--sample-period", "4s", "--print-config",
                      env=environment(GPUSONDE_SAMPLE_PERIOD="3s", GPUSONDE_PROCESS_SERIES="3"))
    equal((out.returncode, out.stderr), (0, ""))
    contains(out.stdout, 'period: "4s"  # --sample-period\n')
    contains(out.stdout, 'series: "3"  # GPUSONDE_PROCESS_SERIES\n')
    contains(out.stdout, f'max_connections: "20"  # {file.name}:3\n')
    contains(out.stdout, 'level: "info"  # default\n')


def test_what_is_printed_loads_again():
    first = command("agent", "--print-config", "--nvml-library", '/a "b" \\ # c', "--atop-listen", "none").stdout
    with configuration(first) as file:
        second = command("agent", "--print-config", env=environment(GPUSONDE_CONFIG=file.name)).stdout

    def without_origins(text):
        return [line.rpartition("  # ")[0] or line for line in text.split("\n")]
    equal(without_origins(second), without_origins(first))


def test_check_tells_every_error():
    with configuration("sampel: {}\nhttp:\n  lisen: none\n  listen: here\nlog: {level: loud}\nhttp: {}\n") as file:
        out = command("agent", "--config", file.name, "--check-config")
        equal((out.returncode, out.stdout), (2, ""))
        for line, words in ((1, 'did you mean "sample"?'), (3, 'did you mean "listen"?'), (4, "http.listen cannot be"),
                            (5, "log.level cannot be"), (6, "was given in line 2 already")):
            contains(out.stderr, f"{file.name}:{line}: ")
            contains(out.stderr, words)
        # doctor runs nevertheless, and says so; commands that show something do not
        equal(command("gpus", "--config", file.name).returncode, 2)
        doctor = command("doctor", "--config", file.name, "--listen", "none", "--atop-listen", "none", "--atop-socket", "none")
        equal(doctor.returncode, 1)
        contains(doctor.stdout, "--check-config lists all errors")


def test_doctor_runs_nothing_with_a_wrong_command_line():
    for words in (["--foo"], ["--socket"], ["word"], ["--nvml-library=x", "--period=1"]):
        out = command("doctor", *words)
        equal((out.returncode, out.stdout, len(out.stderr.splitlines())), (2, "", 1), f"{words}: {out.stderr}")


def test_check_of_a_good_file_says_so():
    with configuration("sample: {period: 2s}\n") as file:
        out = command("agent", "--config", file.name, "--check-config")
    equal((out.returncode, out.stdout, out.stderr), (0, f"{file.name}: ok\n", ""))


def test_the_sample_is_what_is_the_default():
    sample = command("help", "--generate", "gpusonde.yaml").stdout
    for text in (sample, re.sub(r"^#(?=\w+:$|  )", "", sample, flags=re.M)):
        with configuration(text) as file:
            out = command("agent", "--config", file.name, "--print-config")
        equal((out.returncode, out.stderr), (0, ""))
        equal([line.rpartition("  # ")[0] for line in out.stdout.split("\n")[1:]],
              [line.rpartition("  # ")[0] for line in command("agent", "--print-config").stdout.split("\n")[1:]])


def test_a_file_that_is_not_there():
    out = command("agent", "--config", "/nonexistent/gpusonde.yaml", "--check-config")
    equal(out.returncode, 2)
    contains(out.stderr, "/nonexistent/gpusonde.yaml: ")


def test_a_misspelt_variable_is_told():
    out = command("agent", "--check-config", env=environment(GPUSONDE_SAMPEL_PERIOD="2s"))
    equal(out.returncode, 0)
    contains(out.stderr, "did you mean GPUSONDE_SAMPLE_PERIOD?")


def test_a_group_that_is_not_there():
    """The agent goes on without it; who checks is told."""
    out = command("agent", "--check-config", "--control-group", "no-such-group")
    equal(out.returncode, 2)
    contains(out.stderr, "control.group: there is no group no-such-group on this machine: create it with groupadd")
    equal(command("agent", "--check-config", "--control-group", "root").returncode, 0)


if __name__ == "__main__":
    run()
