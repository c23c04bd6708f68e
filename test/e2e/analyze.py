# SPDX-License-Identifier: Apache-2.0
"""gpusonde analyze: what is in a timeline is what is judged; what is missing in it is said; files of several nodes are on one clock."""
import contextlib
import json
import os
import re
import subprocess
import tempfile

from lib import perfetto
from lib.cgroups import cgroup, enter
from lib.e2e import BUILD, SIMULATED, SOURCE, command, contains, environment, equal, run
from lib.perfetto_write import Writer
from lib.traced import SCENARIO, tracing

SIM = f"{BUILD}/sim/cuda"
MS = 10**6
BEGIN = 1000 * 10**9


def analyzed(*paths, status=0):
    done = command("analyze", "--json", *paths)
    equal(done.returncode, status, done.stderr)
    return done, json.loads(done.stdout) if status == 0 else None


def copies(path, share, direction="cudaMemcpy"):
    """20 s of copies for which a thread waits for this share of its time."""
    writer = Writer(real_offset=10**18)
    process = writer.process(7, "train")
    thread = writer.thread(process, 7, 8)
    for i in range(2000):
        at = BEGIN + i * 10 * MS
        writer.slice(thread, "cuda", direction, at, at + int(share * 10 * MS), bytes=4096, kind=1)
    writer.write(path)


def found(document, name):
    return [f for f in document["findings"] if f["finding"] == name]


def test_a_finding_has_what_it_needs():
    with tempfile.TemporaryDirectory() as tmp:
        copies(f"{tmp}/x.pftrace", 0.5)
        copies(f"{tmp}/near.pftrace", 0.09)
        copies(f"{tmp}/async.pftrace", 0.5, "cudaMemcpyAsync")
        done, document = analyzed(f"{tmp}/x.pftrace")
        text = command("analyze", f"{tmp}/x.pftrace")
        _, near = analyzed(f"{tmp}/near.pftrace")
        _, unblocked = analyzed(f"{tmp}/async.pftrace")
    equal(done.stderr, "")
    (finding,) = found(document, "copy_bound")
    equal((finding["pid"], finding["active"], round(finding["evidence"]["time_share"], 2)), (7, True, 0.5))
    assert 0 < finding["confidence"] <= 1 and finding["remedy"], finding
    place = finding["timeline"]
    assert BEGIN <= place["begin_ns"] < place["end_ns"] <= BEGIN + 21 * 10**9, place
    equal((place["track"], place["begin"][:4]), ("process", "2001"))
    equal([f for d in (near, unblocked) for f in found(d, "copy_bound")], [])
    contains(text.stdout, "copy_bound: ")
    contains(text.stdout, "  remedy: ")
    rules = {rule["finding"]: rule for rule in document["rules"]}
    equal((rules["copy_bound"]["judged"], rules["copy_bound"]["active"]), (True, 1))


def held(path, rise):
    """Two devices of a process, one of which holds more and more, and is told of before the other one."""
    writer = Writer()
    process = writer.process(7, "train")
    curves = [writer.counter(f"cuda:{i} allocated, bytes", process) for i in (1, 0)]
    for i in range(60):
        writer.value(curves[0], BEGIN + 10 * i * 10**9, 2**28 + i * rise)
        writer.value(curves[1], BEGIN + 10 * i * 10**9 + MS, 2**29)
    writer.write(path)


def test_allocators_of_several_devices_are_added():
    with tempfile.TemporaryDirectory() as tmp:
        held(f"{tmp}/leak.pftrace", 16 << 20)
        held(f"{tmp}/none.pftrace", 0)
        _, leak = analyzed(f"{tmp}/leak.pftrace")
        _, none = analyzed(f"{tmp}/none.pftrace")
    (finding,) = found(leak, "leak")
    equal(finding["pid"], 7)
    equal(found(none, "leak"), [])


def test_absent_evidence_is_said():
    with tempfile.TemporaryDirectory() as tmp:
        Writer().write(f"{tmp}/x.pftrace")
        _, document = analyzed(f"{tmp}/x.pftrace")
        text = command("analyze", f"{tmp}/x.pftrace")
    equal(document["findings"], [])
    (rule,) = [r for r in document["rules"] if r["finding"] == "copy_bound"]
    equal((rule["judged"], rule["missing_evidence"]), (False, ["copies"]))
    contains(text.stdout, "There was nothing to analyse.")
    contains(text.stdout, "not judged for want of copies: copy_bound")


def test_damaged_files():
    with tempfile.TemporaryDirectory() as tmp:
        copies(f"{tmp}/x.pftrace", 0.5)
        size = os.path.getsize(f"{tmp}/x.pftrace")
        with open(f"{tmp}/x.pftrace", "r+b") as file:
            file.truncate(size - 3)
        done, document = analyzed(f"{tmp}/x.pftrace")
        contains(done.stderr, "INCOMPLETE: it was cut while it was written")
        equal(len(found(document, "copy_bound")), 1)
        with open(f"{tmp}/x.pftrace", "r+b") as file:
            file.seek(size // 2)
            file.write(bytes(16))
        done, _ = analyzed(f"{tmp}/x.pftrace", status=1)
        contains(done.stderr, "refused at byte ")
        equal(done.stdout, "")
        for path, why in ((f"{tmp}/none", "No such file"), ("/bin/true", "no timeline in Perfetto's format"), (tmp, "Is a directory")):
            done, _ = analyzed(path, status=1)
            contains(done.stderr, why)
    equal(command("analyze").returncode, 2)


def node(path, clock, late, ranks):
    """Collectives of two ranks on each of two nodes; @late: ms, by rank."""
    writer = Writer()
    threads = {rank: writer.thread(writer.process(100 + rank, "train"), 100 + rank, 100 + rank) for rank in ranks}
    for i in range(300):
        for rank, thread in threads.items():
            at = BEGIN + clock + i * 50 * MS + int(late.get(rank, 0) * MS)
            writer.slice(thread, "nccl", "ncclAllReduce", at, at + 10000, bytes=1 << 20, type="float32", communicator=0xABCD, sequence=i + 1,
                         rank=rank, ranks=4)
    writer.write(path)


def test_nodes_are_on_one_clock():
    with tempfile.TemporaryDirectory() as tmp:
        node(f"{tmp}/a.pftrace", 0, {}, (0, 1))
        node(f"{tmp}/b.pftrace", -7 * 10**9, {}, (2, 3))
        done, document = analyzed(f"{tmp}/a.pftrace", f"{tmp}/b.pftrace")
        equal(found(document, "straggler"), [])
        node(f"{tmp}/late.pftrace", -7 * 10**9, {3: 10}, (2, 3))
        _, late = analyzed(f"{tmp}/a.pftrace", f"{tmp}/late.pftrace")
        Writer().write(f"{tmp}/c.pftrace")
        alone, _ = analyzed(f"{tmp}/a.pftrace", f"{tmp}/c.pftrace")
    contains(done.stderr, "b.pftrace: its clock is set by +7.000000 s, as the first file's, by 300 collectives in common")
    equal((document["events"], document["events_out_of_order"]), (1200, 0))
    (straggler,) = found(late, "straggler")
    equal((straggler["subject"], straggler["node"], straggler["pid"], straggler["communicator"]), ("rank 3", "late", 103, "0x000000000000abcd"))
    equal((round(straggler["evidence"]["lateness_seconds"], 3), straggler["evidence"]["last_share"]), (0.01, 1))
    assert straggler["evidence"]["relative_score"] < 0.85, straggler
    contains(alone.stderr, "it has no collectives in common with the other files")


def test_a_hang_has_stacks():
    """Of all ranks, merged by frame: where rank 2 is, and where the others wait for it."""
    writer = Writer()
    outer = (("step", "/app/train.py", 20), ("main", "/app/train.py", 7))
    reduces = writer.stack(("all_reduce", "/app/model.py", 31), *outer)
    loads = writer.stack(("load", "/app/data.py", 9), *outer)
    threads = [writer.thread(writer.process(100 + rank, "train"), 100 + rank, 100 + rank) for rank in range(4)]
    for i in range(200):
        for rank, thread in enumerate(threads):
            if rank == 2 and i == 199:
                continue
            at = BEGIN + i * 50 * MS
            writer.slice(thread, "nccl", "ncclAllReduce", at, at + 10000, stack=reduces, bytes=1 << 20, type="float32", communicator=0xABCD, sequence=i + 1,
                         rank=rank, ranks=4)
    writer.slice(threads[2], "cuda", "cudaMemcpy", BEGIN + 200 * 50 * MS, BEGIN + 201 * 50 * MS, stack=loads, bytes=1, kind=1)
    for i in range(60):
        writer.instant(threads[0], "nccl", "cudaStreamQuery", BEGIN + 10**10 + i * 10**9)
    with tempfile.TemporaryDirectory() as tmp:
        writer.write(f"{tmp}/x.pftrace")
        done, document = analyzed(f"{tmp}/x.pftrace")
        text = command("analyze", f"{tmp}/x.pftrace").stdout
    equal(done.stderr, "")
    (hang,) = found(document, "hang")
    equal((hang["pid"], hang["subject"], hang["evidence"]["ranks_with_stacks"]), (102, "missing rank", 4))
    tree = {(f["depth"], f["frame"]): f["ranks"] for f in hang["stacks"]}
    equal(tree, {(0, "main (train.py:7)"): "0-3", (1, "step (train.py:20)"): "0-3", (2, "all_reduce (model.py:31)"): "0-1, 3",
                 (2, "load (data.py:9)"): "2"})
    contains(text, "    main (train.py:7)  [0-3]\n     step (train.py:20)\n")
    contains(text, "      load (data.py:9)  [2]\n")


def test_a_loader_that_is_waited_for():
    """PyTorch tells where its turn begins: it lasts until the thread calls CUDA again."""
    for wait, wanted in ((20, 1), (1, 0)):
        writer = Writer()
        thread = writer.thread(writer.process(7, "train"), 7, 8)
        for i in range(400):
            at = BEGIN + i * 50 * MS
            writer.instant(thread, "torch", "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", at)
            writer.slice(thread, "cuda", "cudaLaunchKernel", at + wait * MS, at + (wait + 1) * MS)
            writer.slice(thread, "cuda", "cudaStreamSynchronize", at + (wait + 1) * MS, at + 50 * MS)
        with tempfile.TemporaryDirectory() as tmp:
            writer.write(f"{tmp}/x.pftrace")
            _, document = analyzed(f"{tmp}/x.pftrace")
        equal(len(found(document, "data_starvation")), wanted, document)


def test_what_was_recorded_is_judged():
    """As many events as calls were counted, and as the timeline has of streams and GPUs."""
    tracing()
    env = environment(LD_LIBRARY_PATH=SIM, GPUSONDE_NVML_LIBRARY=SIMULATED, GPUSONDE_SIM_SCENARIO=SCENARIO, GPUSONDE_SIM_CUDA_KERNEL_US="50")
    with tempfile.TemporaryDirectory() as tmp:
        done = command("trace", "--socket=none", f"--timeline={tmp}/x.pftrace", "--json", f"--output={tmp}/sums", "--", f"{SIM}/workload",
                       "alloc 4096; repeat 500; copy h2d 4096; launch; end; sync; free", env=env)
        equal(done.returncode, 0, done.stderr)
        with open(f"{tmp}/sums") as file:
            calls = {c["api"]: c["count"] for c in json.load(file)["calls"]}
        with open(f"{tmp}/x.pftrace", "rb") as file:
            timeline = perfetto.read(file.read())
        done, document = analyzed(f"{tmp}/x.pftrace")
    equal(done.stderr, "")
    for call in ("cudaMemcpy", "cudaLaunchKernel", "cudaFree"):
        equal(len(timeline.named(call)), calls[call], call)
    ended = [i for i in timeline.instants if i.name == "process ended"]
    with open(f"{SOURCE}/src/cmd/analyze/counters.def", encoding="ascii") as file:
        counters = set(re.findall(r'^COUNTER\("(.*)", ', file.read(), re.M))
    judged = [v for v in timeline.values if v.track.name in counters]
    equal(document["events"], len(timeline.slices) + len(ended) + len(judged))


def test_a_command_as_it_runs():
    """
    What a file would say is said at the command's end; its exit status is the command's. Short copies are none, though as many as are judged: with
    pauses that are long for a busy machine, too.
    """
    tracing()
    env = environment(LD_LIBRARY_PATH=SIM, GPUSONDE_NVML_LIBRARY=SIMULATED, GPUSONDE_SIM_SCENARIO=SCENARIO, GPUSONDE_SIM_CUDA_COPY_GBPS="0.1")
    with tempfile.TemporaryDirectory() as tmp:
        for script, wanted in (("repeat 150; copy h2d 1048576; end", 1), ("repeat 25; copy h2d 1024; sleep 100; end", 0)):
            done = command("analyze", "--socket=none", "--json", f"--output={tmp}/x", "--", f"{SIM}/workload", f"alloc 1048576; {script}; free", env=env)
            equal(done.returncode, 0, done.stderr)
            with open(f"{tmp}/x") as file:
                document = json.load(file)
            equal(len(found(document, "copy_bound")), wanted, document)
            assert document["events"] >= (150 if wanted else 25), document
    done = command("analyze", "--socket=none", "--", "sh", "-c", "exit 3")
    equal(done.returncode, 3, done.stderr)
    contains(done.stderr, "not judged for want of copies: copy_bound")


def test_a_command_has_stacks():
    """The native ones of where it waits; a busy machine may take none in time."""
    tracing()
    env = environment(LD_LIBRARY_PATH=SIM, GPUSONDE_NVML_LIBRARY=SIMULATED, GPUSONDE_SIM_SCENARIO=SCENARIO, GPUSONDE_SIM_CUDA_COPY_GBPS="0.1")
    frames = ""
    with tempfile.TemporaryDirectory() as tmp:
        for copies_n in (150, 300, 600, 1200):
            if "main (workload" in frames:
                break
            done = command("analyze", "--socket=none", "--json", f"--output={tmp}/x", "--", f"{SIM}/workload",
                           f"alloc 1048576; repeat {copies_n}; copy h2d 1048576; end; free", env=env)
            equal(done.returncode, 0, done.stderr)
            with open(f"{tmp}/x") as file:
                frames = " ".join(frame["frame"] for finding in found(json.load(file), "copy_bound") for frame in finding["stacks"])
    contains(frames, "main (workload")


def test_a_job_as_it_runs():
    """Of two programs that do the same the one in the job's cgroup."""
    tracing()
    env = environment(LD_LIBRARY_PATH=SIM, GPUSONDE_NVML_LIBRARY=SIMULATED, GPUSONDE_SIM_SCENARIO=SCENARIO, GPUSONDE_SIM_CUDA_COPY_GBPS="0.1")
    program = [f"{SIM}/workload", "alloc 1048576; repeat 20000; copy h2d 1048576; end; free"]
    with tempfile.TemporaryDirectory() as tmp, cgroup("slurm/uid_1000/job_42/step_0") as folder, contextlib.ExitStack() as stack:
        started = [stack.enter_context(subprocess.Popen(program, env=env)) for _ in range(2)]
        stack.callback(lambda: [p.kill() for p in started])
        enter(folder, started[0].pid)
        document = {"findings": []}
        for seconds in (3, 6, 12, 24, 48): # a busy machine attaches late
            if not found(document, "copy_bound"):
                done = command("analyze", "--socket=none", "--json", "--job", "42", f"--duration={seconds}s", f"--output={tmp}/x", env=env)
                equal(done.returncode, 0, done.stderr)
                with open(f"{tmp}/x") as file:
                    document = json.load(file)
    equal({f["pid"] for f in document["findings"] if f["pid"]}, {started[0].pid}, document)
    equal(len(found(document, "copy_bound")), 1)


def test_what_cannot_be_meant():
    for words, why in ((["-p", "1", "x.pftrace"], "leave them out with files"), (["--"], "no command after --"),
                       (["--job", "claimed:7"], "gpusonde analyze: --job is of processes in the job's cgroup"), (["--job", "7", "-p", "1"], "leave out --pid"),
                       (["-p", "x"], "gpusonde analyze: --pid cannot be"), ([], "what? Name a FILE.pftrace"),
                       (["x.pftrace", "--", "true"], "unexpected argument")):
        done = command("analyze", *words)
        equal(done.returncode, 2, words)
        contains(done.stderr, why)


if __name__ == "__main__":
    run()
