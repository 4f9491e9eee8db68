# SPDX-License-Identifier: Apache-2.0
"""Training on several ranks in turns with PyTorch's DistributedDataParallel over Gloo, on one machine.

  /usr/bin/python3 tests/oracle/ranks_turns.py resnet50:image=64@8 bert_base:tokens=32@2 ncf@256 --ranks 2

Each rank is a process with one CPU and one thread of its own, and a batch of its own. A turn is the same number of
steps of one rank and of all, first by `ridge scale`, then by PyTorch, whose networks are those of training_turns.py
(from the same graph, weights and samples, which are the same on every rank there, as the work is the same); a time is
the median of the steps but the first tenth. Printed are medians over turns, their ratio, and what N ranks make of N
times the rate of one.
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

import training_turns

ROWS = ["resnet50:image=64@8", "bert_base:tokens=32@2", "ncf@256"]


# ---- PyTorch: one rank ----

def module_of(torch, make, weights, x):
    """A loss of training_networks as DistributedDataParallel takes it; what is no parameter becomes one."""
    for k, w in enumerate(weights):
        if not isinstance(w, torch.nn.Parameter):
            weights[k] = torch.nn.Parameter(w.detach())

    class Module(torch.nn.Module):
        def __init__(self):
            super().__init__()
            for k, w in enumerate(weights):
                self.register_parameter(f"w{k}", w)
            self.loss = make()

        def forward(self):
            return self.loss(*x)
    return Module()


def rank_main(spec, batch, folder, steps, rank, ranks, store):
    import torch
    import training_networks
    os.sched_setaffinity(0, {sorted(os.sched_getaffinity(0))[rank]})
    torch.set_num_threads(1)
    torch.manual_seed(0)
    make, weights, x, names = training_networks.network(torch, spec, batch, folder, torch.float32)
    module = module_of(torch, make, weights, x)
    optimiser = training_turns.optimiser_of(torch, spec, weights, names)
    if ranks > 1:
        torch.distributed.init_process_group("gloo", f"file://{store}", rank=rank, world_size=ranks)
        module = torch.nn.parallel.DistributedDataParallel(module, broadcast_buffers=False,
                                                           gradient_as_bucket_view=True)
    clip = 1 if spec.startswith("bert") else 0
    times = []
    for _ in range(steps):
        start = time.perf_counter()
        optimiser.zero_grad(set_to_none=True)
        module().backward()
        if clip:
            torch.nn.utils.clip_grad_norm_(weights, clip)
        optimiser.step()
        times.append(time.perf_counter() - start)
    if ranks > 1:  # gradients are the mean of all, so weights stay the same bits
        sums = torch.stack([w.detach().double().sum() for w in weights])
        first = sums.clone()
        torch.distributed.broadcast(first, 0)
        if not torch.equal(sums, first):
            raise SystemExit(f"rank {rank}: weights differ from those of rank 0")
        torch.distributed.barrier()
    if rank == 0:
        print(statistics.median(times[math.ceil(steps / 10):]))


def torch_step(args, spec, batch, folder, ranks):
    with tempfile.TemporaryDirectory() as here:
        processes = [subprocess.Popen(
            [args.python, "-W", "ignore", os.path.abspath(__file__), f"{spec}@{batch}", "--rank", str(rank), "--ranks",
             str(ranks), "--folder", folder, "--steps", str(args.steps), "--store", os.path.join(here, "store")],
            stdout=subprocess.PIPE, text=True) for rank in range(ranks)]
        said = [p.communicate()[0] for p in processes]
    if any(p.returncode for p in processes):
        raise SystemExit(f"{spec}: PyTorch on {ranks} ranks failed")
    return float(said[0])


# ---- Ridge ----

def ridge_steps(args, spec, batch):
    """Seconds of a step on one rank and on all of them."""
    out = subprocess.run([args.ridge, "scale", spec, "--ranks", f"1,{args.ranks}", "--batch", str(batch), "--threads",
                          "1", "--steps", str(args.steps), "--json"]
                         + (["--cache", args.cache] if args.cache else [])
                         + (["--quick-tune"] if args.quick_tune else []),
                         check=True, stdout=subprocess.PIPE, text=True).stdout
    points = {p["ranks"]: p["step_s"] for p in json.loads(out)["points"]}
    return points[1], points[args.ranks]


def measure(args, spec, batch):
    ours, theirs = [], []
    with tempfile.TemporaryDirectory(dir=args.work) as folder:
        if not spec.startswith("bert"):
            subprocess.run([args.program, spec, str(batch), folder, "loss"], check=True)
        for turn in range(args.turns + 1):  # the first one tunes and warms up
            both = ridge_steps(args, spec, batch)
            gloo = torch_step(args, spec, batch, folder, 1), torch_step(args, spec, batch, folder, args.ranks)
            if turn:
                ours.append(both)
                theirs.append(gloo)
    return [[statistics.median(t[k] for t in times) for k in (0, 1)] for times in (ours, theirs)]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("rows", nargs="*", help="SPEC@BATCH, the batch of a rank; none: those of the list")
    parser.add_argument("--ridge", default="./ridge")
    parser.add_argument("--program", default="build/release/tests/oracle/gradients")
    parser.add_argument("--python", default=sys.executable, help="an interpreter that has torch")
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--steps", type=int, default=20, help="of each turn")
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--cache", help="of Ridge's tuner")
    parser.add_argument("--quick-tune", action="store_true", help="Ridge times one variant of each kernel")
    parser.add_argument("--work", help="folder for exported models")
    for hidden in ("--folder", "--store"):
        parser.add_argument(hidden, help=argparse.SUPPRESS)
    parser.add_argument("--rank", type=int, help=argparse.SUPPRESS)
    args = parser.parse_args()
    rows = [(r.rsplit("@", 1)[0], int(r.rsplit("@", 1)[1])) for r in args.rows or ROWS]
    if args.rank is not None:
        return rank_main(*rows[0], args.folder, args.steps, args.rank, args.ranks, args.store)
    ratios = []
    for spec, batch in rows:
        ours, theirs = measure(args, spec, batch)
        ratios.append(theirs[1] / ours[1])
        print(f"{spec}@{batch}: step of {args.ranks} ranks {ours[1] * 1e3:.1f} ms, with Gloo {theirs[1] * 1e3:.1f} ms, "
              f"ratio {ratios[-1]:.2f}; of one {ours[0] * 1e3:.1f} and {theirs[0] * 1e3:.1f} ms, efficiency "
              f"{ours[0] / ours[1]:.1%} and {theirs[0] / theirs[1]:.1%}", flush=True)
    mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
    print(f"{len(ratios)} rows, geometric mean {mean:.2f}, lowest {min(ratios):.2f}")


if __name__ == "__main__":
    main()
