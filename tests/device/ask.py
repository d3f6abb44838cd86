#!/usr/bin/env python3
"""Asks a GPU: runs jobs by the driver API and records digests of what they leave.

    ask.py ANSWERS JOBS...

JOBS are files of JSON lines, as `cargo run --release -p handloom-tests --example device_jobs -- FOLDER` writes them, plain or ending in
`.gz` or `.xz`. A name of ANSWERS that ends in `.zlib` makes it a zlib stream. ANSWERS gets a head that names the chip, its driver and the day, and a line for each part of a job: name, key, digest, and
the digest with all NaNs made one value, or `-` if that is the same. `--blame FILE` keeps the bytes of parts whose digest is not the one
that the job says was expected: for a look at differences, not for the answers.

Jobs run in several processes. One that takes too long or loses its context ends its process, and the next job gets a new one. NumPy and
`libcuda.so.1` are all that is needed.
"""

import argparse
import base64
import collections
import ctypes as C
import datetime
import gzip
import json
import lzma
import os
import select
import subprocess
import sys
import time
import zlib

import numpy as np

# Of what a launch may say beside its shape: numbers of the driver API.
ATTRIBUTE_COOPERATIVE, ATTRIBUTE_CLUSTER = 2, 4
FUNCTION_SHARED_BYTES, FUNCTION_CLUSTERS_OF_ANY_SIZE = 8, 14
# Bytes of shared memory that a kernel gets without asking.
USUAL_SHARED_BYTES = 48 * 1024
# Most bytes that are kept for a look at differences.
MOST_BLAMED = 12 << 20

# Bytes of an element and the infinity, by format: what is greater without its sign is a NaN.
FORMATS = {
    "f16": (np.uint16, 0x7C00),
    "bf16": (np.uint16, 0x7F80),
    "f32": (np.uint32, 0x7F800000),
    "f64": (np.uint64, 0x7FF0000000000000),
}


def mix(z):
    """The last steps of SplitMix64, for each number of an array."""
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def digest(data):
    """The number that `tests/src/device/digest.rs` computes."""
    words = np.frombuffer(data + bytes(-len(data) % 8), np.uint64)
    places = np.arange(1, len(words) + 1, dtype=np.uint64)
    first = int(mix(np.array([len(data)], np.uint64))[0])
    return (first + int(mix(words ^ mix(places)).sum(dtype=np.uint64))) % (1 << 64)


def calm(data, nans):
    """The bytes with all NaNs of a format made the canonical one."""
    if nans not in FORMATS:
        return data
    kind, infinity = FORMATS[nans]
    all_ones = np.array(np.iinfo(kind).max >> 1, kind)
    whole = len(data) // kind().itemsize * kind().itemsize
    a = np.frombuffer(data[:whole], kind).copy()
    a[(a & all_ones) > kind(infinity)] = all_ones
    return a.tobytes() + data[whole:]


class Attribute(C.Structure):
    _fields_ = [("id", C.c_int), ("pad", C.c_int), ("value", C.c_uint * 16)]


class Config(C.Structure):
    _fields_ = [
        ("grid", C.c_uint * 3),
        ("block", C.c_uint * 3),
        ("shared", C.c_uint),
        ("stream", C.c_void_p),
        ("attributes", C.POINTER(Attribute)),
        ("n_attributes", C.c_uint),
    ]


class Driver:
    """The first GPU, by the driver API."""

    def __init__(self):
        self.cu = C.CDLL("libcuda.so.1")
        self("cuInit", 0)
        self.device = C.c_int()
        self("cuDeviceGet", C.byref(self.device), 0)
        context = C.c_void_p()
        self("cuDevicePrimaryCtxRetain", C.byref(context), self.device)
        self("cuCtxSetCurrent", context)

    def __call__(self, name, *args):
        rc = getattr(self.cu, name)(*args)
        if rc:
            error = C.c_char_p()
            self.cu.cuGetErrorName(rc, C.byref(error))
            raise RuntimeError(f"{name}: {error.value.decode() if error.value else rc}")

    def about(self):
        """Lines about the device."""
        name, version, numbers = C.create_string_buffer(256), C.c_int(), []
        self("cuDeviceGetName", name, 256, self.device)
        self("cuDriverGetVersion", C.byref(version))
        for attribute in (75, 76):
            n = C.c_int()
            self("cuDeviceGetAttribute", C.byref(n), attribute, self.device)
            numbers.append(n.value)
        try:
            with open("/proc/driver/nvidia/version") as f:
                driver = next((w for w in f.readline().split() if w.count(".") == 2), "?")
        except OSError:
            driver = "?"
        return [
            f"chip: {name.value.decode()}, sm_{numbers[0]}{numbers[1]}",
            f"driver: {driver}",
            f"CUDA: {version.value // 1000}.{version.value % 1000 // 10}",
        ]

    def load(self, text):
        log = C.create_string_buffer(4096)
        options, values = (C.c_int * 2)(5, 6), (C.c_void_p * 2)(C.cast(log, C.c_void_p), 4096)
        module = C.c_void_p()
        rc = self.cu.cuModuleLoadDataEx(C.byref(module), text.encode() + b"\0", 2, options, values)
        return module, rc and f"{rc} {log.value.decode(errors='replace').strip()}"

    def launch(self, module, launch, memory):
        function = C.c_void_p()
        self("cuModuleGetFunction", C.byref(function), module, launch["entry"].encode())
        if launch["shared"] > USUAL_SHARED_BYTES:
            self("cuFuncSetAttribute", function, FUNCTION_SHARED_BYTES, launch["shared"])
        keep, pointers = [], (C.c_void_p * max(len(launch["args"]), 1))()
        for i, a in enumerate(launch["args"]):
            if "bytes" in a:
                value = bytes.fromhex(a["bytes"])
            else:
                value = (memory[a["buffer"]][0] + a["offset"]).to_bytes(8, "little")
            keep.append(C.create_string_buffer(value, len(value) + 16))
            pointers[i] = C.cast(keep[-1], C.c_void_p)
        attributes, n = (Attribute * 2)(), 0
        if launch["cluster"]:
            self("cuFuncSetAttribute", function, FUNCTION_CLUSTERS_OF_ANY_SIZE, 1)
            attributes[n].id = ATTRIBUTE_CLUSTER
            attributes[n].value[0:3] = launch["cluster"]
            n += 1
        if launch["cooperative"]:
            attributes[n].id, attributes[n].value[0] = ATTRIBUTE_COOPERATIVE, 1
            n += 1
        config = Config(shared=launch["shared"], attributes=attributes, n_attributes=n)
        config.grid[:], config.block[:] = launch["grid"], launch["block"]
        self("cuLaunchKernelEx", C.byref(config), function, pointers, None)
        self("cuCtxSynchronize")

    def run(self, job):
        """Bytes of the buffers after the launches, or what the loader says."""
        module, refused = self.load(job["text"])
        if refused:
            return None, refused
        memory = []
        for b in job["buffers"]:
            p = C.c_uint64()
            self("cuMemAlloc_v2", C.byref(p), max(len(b), 1))
            if b:
                self("cuMemcpyHtoD_v2", p, b, C.c_size_t(len(b)))
            memory.append((p.value, len(b)))
        for at, at_byte, to, to_byte in job["addresses"]:
            address = (memory[to][0] + to_byte).to_bytes(8, "little")
            self("cuMemcpyHtoD_v2", C.c_uint64(memory[at][0] + at_byte), address, C.c_size_t(8))
        for launch in job["launches"]:
            self.launch(module, launch, memory)
        left = []
        for p, n in memory:
            b = C.create_string_buffer(max(n, 1))
            if n:
                self("cuMemcpyDtoH_v2", b, C.c_uint64(p), C.c_size_t(n))
            left.append(b.raw[:n])
            self("cuMemFree_v2", C.c_uint64(p))
        # Addresses are not looked at.
        for at, at_byte, _, _ in job["addresses"]:
            left[at] = left[at][:at_byte] + bytes(8) + left[at][at_byte + 8 :]
        self("cuModuleUnload", module)
        return left, None


def expand(buffer, blobs):
    """Bytes of a buffer: hexadecimal, a byte repeated, or a blob of the file."""
    if isinstance(buffer, str):
        return bytes.fromhex(buffer)
    if "blob" in buffer:
        return blobs[buffer["blob"]]
    return bytes([buffer["byte"]]) * buffer["n"]


def worker(paths):
    """Answers numbers of jobs, a line each, until none comes."""
    jobs, blobs = read(paths)
    driver = Driver()
    for number in sys.stdin:
        job = json.loads(jobs[int(number)])
        job["buffers"] = [expand(b, blobs) for b in job["buffers"]]
        answer = {"status": "ran", "parts": []}
        try:
            left, refused = driver.run(job)
            if refused:
                answer = {"status": "refused", "why": refused}
            for part in [] if refused else job["parts"]:
                data = b"".join(left[b][first:end] for b, first, end in part["pieces"])
                raw, quiet = digest(data), digest(calm(data, part["nans"]))
                one = {"name": part["name"], "key": part["key"], "raw": raw, "calm": quiet}
                if part["expected"] not in (None, raw, quiet):
                    one["bytes"] = base64.b64encode(zlib.compress(data)).decode()
                answer["parts"].append(one)
        except RuntimeError as e:
            # The context may be lost.
            print(json.dumps({"status": "failed", "why": str(e)}), flush=True)
            os._exit(1)
        print(json.dumps(answer), flush=True)


def read(paths):
    """Lines of jobs, and the blobs that they name."""
    jobs, blobs = [], {}
    for path in paths:
        opener = {".gz": gzip.open, ".xz": lzma.open}.get(os.path.splitext(path)[1], open)
        with opener(path, "rt") as f:
            for line in f:
                if line.startswith('{"blob":'):
                    blob = json.loads(line)
                    blobs[blob["blob"]] = bytes.fromhex(blob["hex"])
                else:
                    jobs.append(line)
    return jobs, blobs


class Worker:
    """A process that runs a job at a time."""

    def __init__(self, paths):
        self.paths, self.job, self.process = paths, None, None

    def start(self, job):
        if self.process is None or self.process.poll() is not None:
            command = [sys.executable, os.path.abspath(__file__), "--worker", "-", *self.paths]
            pipe = subprocess.PIPE
            self.process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL)
        self.job, self.since = job, time.time()
        self.process.stdin.write(b"%d\n" % job)
        self.process.stdin.flush()

    def end(self):
        self.process.kill()
        self.process.wait()


def main():
    parser = argparse.ArgumentParser(description="Asks a GPU.")
    parser.add_argument("answers")
    parser.add_argument("jobs", nargs="+")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--workers", type=int, default=8, help="processes")
    parser.add_argument("--seconds", type=float, default=20, help="longest time of a job")
    parser.add_argument("--total", type=float, default=500, help="time after which no job is begun")
    parser.add_argument("--blame", help="file for the bytes of unexpected answers")
    args = parser.parse_args()
    if args.worker:
        return worker(args.jobs)
    begun = time.time()
    jobs, _ = read(args.jobs)
    names = [json.loads(j)["name"] for j in jobs]
    waiting = iter(range(len(jobs)))
    workers = [Worker(args.jobs) for _ in range(args.workers)]
    lines, counts, blamed = [], collections.Counter(), []

    def feed(w):
        w.job = None
        job = next(waiting, None) if time.time() < begun + args.total else None
        if job is not None:
            w.start(job)

    for w in workers:
        feed(w)
    while any(w.job is not None for w in workers):
        live = [w for w in workers if w.job is not None]
        ready, _, _ = select.select([w.process.stdout for w in live], [], [], 0.5)
        for w in live:
            # The first job of a process waits for its context too.
            if w.process.stdout in ready:
                line = w.process.stdout.readline()
                answer = json.loads(line) if line else {"status": "died", "why": ""}
            elif time.time() > w.since + args.seconds:
                answer = {"status": "too late", "why": ""}
            else:
                continue
            if answer["status"] not in ("ran", "refused"):
                w.end()
            counts[answer["status"]] += 1
            if answer["status"] != "ran":
                print(answer["status"], names[w.job], answer["why"][:300].replace("\n", " "))
            for part in answer.get("parts", []):
                quiet = "-" if part["calm"] == part["raw"] else f"{part['calm']:016x}"
                lines.append(f"{part['name']}\t{part['key']}\t{part['raw']:016x}\t{quiet}")
                if "bytes" in part:
                    blamed.append((names[w.job], part["name"], part["bytes"]))
            feed(w)
    for w in workers:
        if w.process:
            w.end()
    about = Driver().about()
    day = datetime.datetime.now(datetime.timezone.utc).date()
    head = [f"# {line}" for line in ["script: tests/device/ask.py", *about, f"date: {day}"]]
    text = "".join(line + "\n" for line in head + sorted(lines)).encode()
    with open(args.answers, "wb") as f:
        f.write(zlib.compress(text, 9) if args.answers.endswith(".zlib") else text)
    if args.blame:
        with open(args.blame, "w") as f:
            room = MOST_BLAMED
            for job, name, data in sorted(blamed):
                room -= len(data)
                f.write(f"{job}\t{name}\t{data if room > 0 else '-'}\n")
    print(*about, sep="\n")
    print(f"{len(jobs)} jobs, {sum(counts.values())} begun: {dict(counts)}; {len(lines)} answers, "
          f"{len(blamed)} not as expected; {time.time() - begun:.0f} s")


if __name__ == "__main__":
    main()
