# SPDX-License-Identifier: Apache-2.0
"""Steps of training in turns with PyTorch: forward pass, gradients, the optimiser's update.

  /usr/bin/python3 tests/oracle/training_turns.py resnet50@8 ncf@256 --threads 1 --python build/torch2/bin/python

Each engine is a process of its own that makes so many steps when it is asked to; engines take turns, and medians
are compared. PyTorch runs the same network: tests/oracle/gradients writes the graph of the loss as ONNX, and here it
becomes Python of torch's own functions, line by line (embedding, batch norm, sparse products, not their parts). CRNN
and BERT are written out, for ONNX has no CTC and no attention. Each interpreter of --python takes part in each way
of --ways that it knows; a network is first compared with its own loss in double.

With one thread the time is the CPU time of the process, which other work on the machine disturbs least; with more it
is the time that passed.
"""
import argparse
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np

import training_networks

ROWS = ["resnet50@8", "resnet50@32", "googlenet@8", "densenet121@8", "bert_base@1", "ncf@256",
        "ncf:embedding=gather@256", "wide_deep@2048", "din@512", "gcn@1", "crnn@16"]
IMAGES = ("resnet", "googlenet", "densenet", "crnn", "vgg")
WAYS = ["eager", "channels_last", "compiled", "compiled_channels_last"]
BLOCK_S = 0.05  # a sample is of as many steps as take this long
LOSS_BOUND = 1e-3


# ---- steps ----

def optimiser_of(torch, spec, weights, names):
    """The recipe's; Wide & Deep's FTRL, which PyTorch lacks and which costs more, is Adagrad, too."""
    new = int(torch.__version__.split(".")[0]) >= 2
    name = spec.split(":")[0]
    kind, options = "SGD", {"lr": 1e-3, "momentum": 0.9}
    if name.startswith("bert"):
        kind, options = "AdamW", {"lr": 1e-4, "eps": 1e-6, "weight_decay": 0.01}
    elif name in ("ncf", "gcn"):
        kind, options = "Adam", {"lr": 1e-3}
    elif name == "wide_deep":
        kind, options = "Adagrad", {"lr": 1e-3, "initial_accumulator_value": 0.1}
    elif name == "din":
        kind, options = "SGD", {"lr": 1e-3}
    elif name != "crnn":
        options.update(nesterov=True, weight_decay=1e-4)
    groups = [{"params": weights}]
    if name == "gcn":
        groups = [{"params": [w], "weight_decay": 5e-4 * (n == "w0")} for w, n in zip(weights, names)]
    options["fused" if new else "foreach"] = True
    return getattr(torch.optim, kind)(groups, **options)


def channels_last(torch, tensors):
    for t in tensors:
        if t.dim() == 4:
            t.data = t.data.contiguous(memory_format=torch.channels_last)


def step_of(torch, spec, batch, folder, way):
    make, weights, x, names = training_networks.network(torch, spec, batch, folder, torch.float32)
    if "channels_last" in way:
        channels_last(torch, weights + x)
    loss = make()
    if "compiled" in way:
        loss = torch.compile(loss)
    optimiser = optimiser_of(torch, spec, weights, names)
    clip = 5 if spec.startswith("din") else 1 if spec.startswith("bert") else 0

    def step():
        optimiser.zero_grad(set_to_none=True)
        value = loss(*x)
        value.backward()
        if clip:
            torch.nn.utils.clip_grad_norm_(weights, clip)
        optimiser.step()
        return value
    return step


def check_loss(torch, spec, batch, folder):
    """In float32 as here, against the graph in double as tests/oracle/gradients.py computes it."""
    if spec.startswith(("crnn", "bert")):
        return
    import gradients as judge
    import onnx
    make, _, x, _ = training_networks.network(torch, spec, batch, folder, torch.float32)
    with torch.no_grad():
        ours = float(make()(*x))
    graph, values = onnx.load(os.path.join(folder, "model.onnx")).graph, {}
    with open(os.path.join(folder, "index.txt"), encoding="utf-8") as index:
        for line in index:
            kind, number, name = line.rstrip("\n").split(" ", 2)
            values[name] = judge.tensor(np.load(os.path.join(folder, f"{kind}.{number}.npy")))
    values.update({t.name: judge.tensor(onnx.numpy_helper.to_array(t)) for t in graph.initializer})
    with torch.no_grad():
        judge.run(graph, values)
    right = float(values[graph.output[0].name])
    if not abs(ours - right) <= LOSS_BOUND * abs(right):
        raise SystemExit(f"{spec}: the loss in PyTorch is {ours}, by the graph in double {right}")


def serve(spec, batch, threads, way, folder):
    import torch
    torch.set_num_threads(threads)
    if way == "check":
        check_loss(torch, spec, batch, folder)
        return
    if "compiled" in way and not hasattr(torch, "compile"):
        print("absent", flush=True)
        return
    step = step_of(torch, spec, batch, folder, way)
    for _ in range(3):
        step()
    print("ready", flush=True)
    for line in sys.stdin:
        count = int(line)
        start = time.perf_counter()
        for _ in range(count):
            step()
        print((time.perf_counter() - start) * 1e3 / count, flush=True)


# ---- turns ----

class Engine:
    """A process that answers a number of steps with the milliseconds that one took."""

    def __init__(self, command, cpu_time):
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.ready = self.process.stdout.readline().strip()
        self.clock = (~self.process.pid << 3) | 2 if cpu_time else time.CLOCK_MONOTONIC
        self.command, self.count, self.times = " ".join(command), 1, []

    def sample(self, count):
        start = time.clock_gettime(self.clock)
        self.process.stdin.write(f"{count}\n")
        self.process.stdin.flush()
        if not self.process.stdout.readline().strip():
            raise SystemExit(f"{self.command} ended")
        return (time.clock_gettime(self.clock) - start) * 1e3 / count

    def warm(self):
        self.count = max(1, math.ceil(BLOCK_S * 1e3 / self.sample(1)))
        self.count = max(1, math.ceil(BLOCK_S * 1e3 / self.sample(self.count)))

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def commands(args, spec, batch, folder):
    ridge = [args.ridge, "run", spec, "--mode", "training", "--on-request", "--batch", str(batch),
             "--threads", str(args.threads)] + (["--cache", args.cache] if args.cache else []) + \
        (["--quick-tune"] if args.quick_tune else [])
    yield "ridge", ridge
    for python in args.python:
        for way in args.ways.split(","):
            if "channels_last" not in way or spec.startswith(IMAGES):
                yield f"{python} {way}", [python, "-W", "ignore", os.path.abspath(__file__), "--serve", way,
                                          "--folder", folder, "--threads", str(args.threads), f"{spec}@{batch}"]


def prepare(args, spec, batch, folder):
    if spec.startswith(("crnn", "bert")):
        return
    subprocess.run([args.program, spec, str(batch), folder, "loss"], check=True)
    if not args.no_check:
        subprocess.run([args.python[0], "-W", "ignore", os.path.abspath(__file__), "--serve", "check", "--folder",
                        folder, f"{spec}@{batch}"], check=True)


def measure(args, spec, batch):
    with tempfile.TemporaryDirectory(dir=args.work) as folder:
        prepare(args, spec, batch, folder)
        engines = {}
        for name, command in commands(args, spec, batch, folder):
            engine = Engine(command, args.threads == 1)
            if engine.ready == "ready":
                engines[name] = engine
            elif engine.ready != "absent":
                print(f"{spec}: no row for {name}, which failed", file=sys.stderr)
        for engine in engines.values():
            engine.warm()
        for _ in range(args.rounds):
            for engine in engines.values():
                engine.times.append(engine.sample(engine.count))
        for engine in engines.values():
            engine.close()
        return {name: statistics.median(engine.times) for name, engine in engines.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("rows", nargs="*", help="SPEC@BATCH; none: those of the list")
    parser.add_argument("--ridge", default="./ridge")
    parser.add_argument("--program", default="build/release/tests/oracle/gradients")
    parser.add_argument("--python", action="append", help="an interpreter that has torch; may be repeated")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--ways", default=",".join(WAYS), help="of PyTorch: %(default)s")
    parser.add_argument("--cache", help="of Ridge's tuner")
    parser.add_argument("--quick-tune", action="store_true", help="Ridge times one variant of each kernel")
    parser.add_argument("--no-check", action="store_true", help="do not compare the loss in double first")
    parser.add_argument("--work", help="folder for exported models")
    parser.add_argument("--json", help="write the rows to this file as well")
    parser.add_argument("--serve", help=argparse.SUPPRESS)
    parser.add_argument("--folder", help=argparse.SUPPRESS)
    args = parser.parse_args()
    args.python = args.python or [sys.executable]
    rows = [(r.split("@")[0], int(r.split("@")[1]) if "@" in r else 1) for r in args.rows or ROWS]
    if args.serve:
        return serve(*rows[0], args.threads, args.serve, args.folder)
    ratios, table = [], []
    for spec, batch in rows:
        times = measure(args, spec, batch)
        ours = times.pop("ridge")
        best = min(times, key=times.get)
        ratios.append(times[best] / ours)
        table.append({"spec": spec, "batch": batch, "ridge": ours, **times})
        print(f"{spec}@{batch:<4} ridge {ours:.3f} ms, best {times[best]:.3f} ms, ratio {ratios[-1]:.2f}: "
              + ", ".join(f"{name} {ms:.3f}" for name, ms in times.items()), flush=True)
    mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
    print(f"{len(ratios)} rows, geometric mean {mean:.2f}, lowest {min(ratios):.2f}")
    if args.json:
        with open(args.json, "w", encoding="utf-8") as file:
            json.dump(table, file, indent=1)


if __name__ == "__main__":
    main()
