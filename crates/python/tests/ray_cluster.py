"""A campaign on a local Ray cluster of two nodes with one core each.

    python ray_cluster.py --lose      one node ends in the middle: nothing may be lost, and nothing counted twice
    python ray_cluster.py --speed N   N tasks of 10 ms: how long they take beside half of their total
"""

import argparse
import os
import signal
import sys
import tempfile
import time
from pathlib import Path

import numpy

os.environ.setdefault("HANDLOOM_CACHE", "off")
os.environ.setdefault("RAY_DEDUP_LOGS", "0")

import ray
from ray.cluster_utils import Cluster

from handloom import Task, campaign

# Waits so many nanoseconds, and says on which try of the machine it ran.
WAIT = """.version 8.0
.target sm_80
.address_size 64
.visible .entry wait(.param .u64 out, .param .u64 ns, .param .u32 v) {
    .reg .b64 %d<6>; .reg .b32 %r; .reg .pred %p;
    ld.param.u64 %d0, [out]; ld.param.u64 %d1, [ns]; ld.param.u32 %r, [v]; mov.u64 %d2, %globaltimer;
L:  mov.u64 %d3, %globaltimer; sub.u64 %d4, %d3, %d2; setp.lt.u64 %p, %d4, %d1; @%p bra L;
    st.global.u32 [%d0], %r; ret; }
"""


def tasks(n, ms):
    out = numpy.zeros(1, "u4")
    return [Task(WAIT, "wait", 1, 1, (out, int(ms * 1e6), v), keep=(0,), name=f"task {v}") for v in range(n)]


def cpu_times():
    """CPU time in seconds of this process, and of all processes of the cluster, which come of it: workers, and the rest of Ray."""
    parents, times = {}, {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            stat = (folder / "stat").read_text().rpartition(")")[2].split()
            is_worker = (folder / "cmdline").read_bytes().startswith(b"ray::")
        except OSError:
            continue  # It has ended.
        pid = int(folder.name)
        parents[pid] = int(stat[1])
        # Its own, and that of its children that have ended.
        times[pid] = sum(map(int, stat[11:15])) / os.sysconf("SC_CLK_TCK"), is_worker
    out = {"driver": time.process_time(), "workers": 0.0, "rest": 0.0}
    for pid, (seconds, is_worker) in times.items():
        above = parents[pid]
        while above not in (0, os.getpid()):
            above = parents.get(above, 0)
        if above:
            out["workers" if is_worker else "rest"] += seconds
    return out


def workers(node):
    """The worker processes of a node, and whether each is at a task."""
    raylet, out = node.all_processes["raylet"][0].process.pid, {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            parent = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
            command = (folder / "cmdline").read_bytes()
        except OSError:
            continue  # It has ended.
        if parent == raylet:
            out[int(folder.name)] = command.startswith(b"ray::") and not command.startswith(b"ray::IDLE")
    return out


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--lose", action="store_true")
    parser.add_argument("--speed", type=int)
    args = parser.parse_args()
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False, "object_store_memory": 100 << 20})
    second = cluster.add_node(num_cpus=1, object_store_memory=100 << 20)
    ray.init(address=cluster.address, log_to_driver=False)
    cluster.wait_for_nodes()
    assert ray.cluster_resources()["CPU"] == 2
    # Workers start, and compile.
    warm = [Task(WAIT, "wait", 1, 1, (numpy.zeros(1, "u4"), 1000, v), name=f"warm {v}") for v in range(8)]
    assert campaign(warm, engine="ray").run().ok
    if args.lose:
        n, ms = 400, 20
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "results.jsonl"
            c = campaign(tasks(n, ms), engine="ray", results=file)
            came, ended = [], False
            for result in c:
                came.append(result.key)
                # As a machine ends that loses power, in the middle of a batch: a worker whose node has ended may else finish what it is at.
                if not ended and len(came) >= n // 4 and any((at := workers(second)).values()):
                    ended = True
                    for pid in at:
                        os.kill(pid, signal.SIGKILL)
                    cluster.remove_node(second, allow_graceful=False)
            assert ended, "the second node never had a task"
            assert sorted(came) == sorted(f"task {v}" for v in range(n)), "lost or counted twice"
            assert c.ok, c.text
            assert [int(r.arrays[0][0]) for r in c.in_order()] == list(range(n))
            assert len(file.read_text().splitlines()) == n
            again = sum(r.tries > 1 for r in c.results.values())
            assert again > 0, "the node ended, and nothing of it was tried again"
            print(f"{n} tasks, {again} of them tried again")
    if args.speed:
        n = args.speed
        start, before = time.perf_counter(), cpu_times()
        c = campaign(tasks(n, 10), engine="ray").run()
        took, after = time.perf_counter() - start, cpu_times()
        assert c.ok and c.done == n, c.text
        half = n * 0.01 / 2
        ran = sum(r.run_us for r in c.results.values()) / 1e6 / 2
        print(f"{n} tasks of 10 ms on two nodes: {took:.1f} s, {took / half:.3f} of half of their total; load {os.getloadavg()[0]:.1f}")
        print(f"half of what the launches took by themselves: {ran:.1f} s, so {took / ran:.3f} of it")
        cpu = {who: (after[who] - before[who]) / n * 1e6 for who in after}
        print(f"CPU time a task, in us: {', '.join(f'{who} {us:.0f}' for who, us in cpu.items())}; the task itself is 10000 where nobody takes its core")
    ray.shutdown()
    cluster.shutdown()
    print("ok")
    return 0


if __name__ == "__main__":
    sys.exit(main())
