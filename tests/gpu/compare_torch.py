# SPDX-License-Identifier: Apache-2.0
"""Ridge and PyTorch on one GPU in one run: the same network, batch and precision, in turns.

PyTorch runs eagerly and compiled (max-autotune), each replayed as one CUDA graph. What is judged is
the time that the device takes for one of several executions in a row, between two of its events:
how fast a program asks does not count. Times of single executions stand beside it. Prints one table
and two geometric means; exits 1 when one is below what it must be or a row is missing or wrong,
and 77 when something is missing that this needs.
"""
import argparse
import copy
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "oracle"))

SKIP = 77
ENCODER = "nmt_encoder"  # nmt up to the keys of its attention, sentences of full length
MODELS = [("resnet50", 32), ("googlenet", 32), ("densenet121", 32), ("bert_large", 2),
          ("ncf", 256), ("wide_deep", 2048), (ENCODER, 128), ("crnn", 256)]
PRECISIONS = ["f32", "tf32", "bf16"]
WANTED = {"eager": 1.5, "compiled": 1.0}
BLOCK_MS, BLOCK_MOST = 1.0, 200  # executions between two events
AHEAD_CYCLES = 40000  # of the GPU, in which Python has queued one more replay: 20 us
# Of both programs' outputs beside those of Ridge on the CPU in f32.
BOUNDS = {"f32": 1e-4, "tf32": 2e-2, "bf16": 0.2}

try:
    import numpy as np
    import torch

    from torch_of_onnx import encoder_of, of_file
    from turns import Ridge, mean_ratio, read_tensor, take_turns
except ImportError as why:
    print(f"compare_torch: {why}: pip install torch numpy onnx", file=sys.stderr)
    sys.exit(SKIP)


class Eager:
    """Without a GPU: calls, for tests of this program."""

    def __init__(self, call, inputs):
        self.call, self.inputs = call, inputs

    def run(self):
        with torch.no_grad():
            return self.call(*self.inputs)

    def sample(self):
        """ms of one execution, from the call until its outputs are there."""
        start = time.perf_counter()
        self.run()
        return (time.perf_counter() - start) * 1e3

    def block(self, count):
        """ms of one execution among so many that follow each other."""
        start = time.perf_counter()
        for _ in range(count):
            self.run()
        return (time.perf_counter() - start) * 1e3 / count


class Graph(Eager):
    """A CUDA graph of one execution. A sample lasts from the launch until the GPU is idle."""

    def __init__(self, call, inputs):
        super().__init__(call, inputs)
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(3):  # libraries choose kernels, the compiler compiles
                Eager.run(self)
        torch.cuda.current_stream().wait_stream(stream)
        torch.cuda.synchronize()
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph):
            self.outputs = Eager.run(self)

    def run(self):
        self.graph.replay()
        torch.cuda.synchronize()
        return self.outputs

    def block(self, count):
        """By the GPU's clock. The GPU is kept busy until all replays are queued, and one goes ahead
        as Ridge's does: what is timed is the GPU's work and not Python's calls."""
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        torch.cuda._sleep(AHEAD_CYCLES * (count + 1))
        self.graph.replay()
        begin.record()
        for _ in range(count):
            self.graph.replay()
        end.record()
        end.synchronize()
        return begin.elapsed_time(end) / count


class Blocks:
    """An engine whose samples are blocks of at least a millisecond, or of one execution."""

    def __init__(self, engine):
        self.engine = engine
        engine.block(1)
        self.count = max(1, min(BLOCK_MOST, math.ceil(BLOCK_MS / engine.block(1))))

    def sample(self):
        return self.engine.block(self.count)


def ridge(args, *words):
    subprocess.run([args.ridge, *words], check=True, stdout=subprocess.DEVNULL)


def prepare(args, model, batch, folder):
    """The file, and what Ridge's CPU makes of its inputs, in f32."""
    path, given = os.path.join(folder, "model.onnx"), os.path.join(folder, "in")
    name = "nmt" if model == ENCODER else model
    ridge(args, "export", name, "--output", path, "--inputs-dir", given, "--batch", str(batch))
    if model == ENCODER:
        whole, path = path, os.path.join(folder, "encoder.onnx")
        encoder_of(whole, path)
        ridge(args, "export", path, "--output", os.path.join(folder, "again.onnx"),
              "--inputs-dir", given)
    spec = path if model == ENCODER else model
    size = [] if model == ENCODER else ["--batch", str(batch)]
    ridge(args, "infer", spec, "--output-dir", os.path.join(folder, "out"), "--no-tune", *size)
    return path, spec, size


def names_of(path):
    import onnx
    graph = onnx.load(path, load_external_data=False).graph
    return [i.name for i in graph.input], [o.name for o in graph.output]


def largest_error(folder, names, outputs, precision):
    """Norm-wise over all outputs; of decisions (integers) in f32 only."""
    worst = 0.0
    for name, theirs in zip(names, outputs):
        ours = read_tensor(os.path.join(folder, "out"), name).astype(np.float64)
        if theirs.dtype in (np.int32, np.int64) and precision != "f32":
            continue
        if ours.shape != theirs.shape:
            return math.inf
        error = float(np.abs(ours - theirs).max()) / max(float(np.abs(ours).max()), 1e-30)
        worst = max(worst, error if math.isfinite(error) else math.inf)
    return worst


def arrays_of(outputs):
    return [(x.float() if x.is_floating_point() else x).cpu().numpy() for x in outputs]


def arrays_there(args, spec, precision, size, folder, names):
    """What Ridge makes of the same inputs on its device, with the kernels that were timed: its
    tuner remembers them."""
    there = os.path.join(folder, "there")
    ridge(args, "infer", spec, "--output-dir", there, *options_of(args, precision), *size)
    return [read_tensor(there, name) for name in names]


def options_of(args, precision):
    """The same for all of Ridge's commands, so that one tunes and the others find its kernels."""
    threads = str(len(os.sched_getaffinity(0)))
    return ["--device", args.device, "--precision", precision, "--threads", threads] + args.option


def place(args, module, inputs, layout):
    """Module and inputs in the device's memory, images in that order."""
    module = copy.deepcopy(module).to(args.torch_device, memory_format=layout)
    moved = [x.to(args.torch_device, memory_format=layout) if x.dim() == 4 else
             x.to(args.torch_device) for x in inputs]
    return module, moved


def engine_of(args):
    return Graph if args.torch_device.startswith("cuda") else Eager


def fastest(args, module, inputs, prepared):
    """The engine of a prepared module with images channels-last or not, whichever is faster here;
    networks without images have one way."""
    layouts = {"channels-last": torch.channels_last, "plain": torch.contiguous_format}
    if not any(x.dim() == 4 for x in inputs):
        del layouts["channels-last"]
    best = (math.inf, None, "")
    for name, layout in layouts.items():
        placed, moved = place(args, module, inputs, layout)
        engine = engine_of(args)(prepared(placed), moved)
        blocks = Blocks(engine)
        best = min(best, (statistics.median(blocks.sample() for _ in range(10)), engine, name),
                   key=lambda found: found[0])
    return best[1:]


def compiled(module):
    torch._dynamo.reset()
    mode = "max-autotune-no-cudagraphs"  # the whole is one graph of our own
    return torch.compile(module, mode=mode)


def engines_of(args, module, inputs):
    """Eager and compiled, each by the layout that is faster for it; their names and layouts."""
    ways = {"eager": lambda module: module}
    if not args.no_compile:
        ways["compiled"] = compiled
    found = {name: fastest(args, module, inputs, way) for name, way in ways.items()}
    layouts = list(dict.fromkeys(layout for _, layout in found.values()))
    return {name: engine for name, (engine, _) in found.items()}, " / ".join(layouts)


def set_where_there(module, **values):
    """Options that some versions of PyTorch lack."""
    for name, value in values.items():
        if hasattr(module, name):
            setattr(module, name, value)


def set_precision(precision):
    """The old switches, and the new one that Inductor's convolutions look at."""
    tf32 = precision == "tf32"
    torch.backends.cuda.matmul.allow_tf32 = tf32
    torch.backends.cudnn.allow_tf32 = tf32
    set_where_there(torch.backends.cudnn, fp32_precision="tf32" if tf32 else "ieee")


def set_search():
    """What somebody who wants speed switches on: all algorithms are tried, constants are folded."""
    torch.backends.cudnn.benchmark = True
    set_where_there(torch.backends.cudnn, benchmark_limit=0)
    if hasattr(torch, "compile"):
        from torch._inductor import config
        set_where_there(config, freezing=True, autotune_cudagraph_benchmarking=True)


def times_of(args, engines):
    """Medians of device time by the engines' names, and of single executions as NAME_latency."""
    limits = (args.samples, args.seconds, args.limit)
    blocks = {name: Blocks(engine) for name, engine in engines.items()}
    row = take_turns(blocks, *limits)
    row.update({f"{name}_latency": ms for name, ms in take_turns(engines, *limits).items()})
    return row


def judge(args, model, batch, precision, prepared, folder):
    path, spec, size = prepared
    given, results = names_of(path)
    inputs = [torch.from_numpy(read_tensor(os.path.join(folder, "in"), name)) for name in given]
    set_precision(precision)
    module = of_file(path, torch.bfloat16 if precision == "bf16" else torch.float32)
    row = {"model": model, "batch": batch, "precision": precision}
    if args.check_only:
        outputs = arrays_of(Eager(module, inputs).run())
        return dict(row, error=largest_error(folder, results, outputs, precision))
    ours = Ridge(args.ridge, spec, 0 if size == [] else batch,
                 options_of(args, precision))  # tunes alone
    try:
        there = arrays_there(args, spec, precision, size, folder, results)
        row["ridge_error"] = largest_error(folder, results, there, precision)
        engines, row["layout"] = engines_of(args, module, inputs)
        row["error"] = max(largest_error(folder, results, arrays_of(engine.run()), precision)
                           for engine in engines.values())
        row.update(times_of(args, {"ridge": ours, **engines}))
    finally:
        ours.close()
    return row


def print_table(rows):
    times = f"{'ridge':>9} {'eager':>9} {'compiled':>9}"
    print(f"{'':<36} {'errors':^17} {'ms of the device':^29} {'':<15}"
          f" {'ms of a single execution':^29}")
    print(f"{'model':<24} {'batch':>5} {'type':<5} {'ridge':>8} {'torch':>8} {times}"
          f" {'/eager':>7} {'/comp.':>7} {times}  layout")
    names = ("ridge", "eager", "compiled")
    for row in rows:
        times = [row.get(name, math.nan) for name in names]
        single = [row.get(f"{name}_latency", math.nan) for name in names]
        print(f"{row['model']:<24} {row['batch']:>5} {row['precision']:<5}"
              f" {row.get('ridge_error', math.nan):>8.1e} {row['error']:>8.1e}"
              f" {times[0]:>9.3f} {times[1]:>9.3f} {times[2]:>9.3f} {times[1] / times[0]:>7.2f}"
              f" {times[2] / times[0]:>7.2f} {single[0]:>9.3f} {single[1]:>9.3f} {single[2]:>9.3f}"
              f"  {row.get('layout', '')}")


def wrong_in(args, row):
    """What is wrong in a row, or ''."""
    if "reason" in row:
        return row["reason"]
    bound = BOUNDS[row["precision"]]
    if not row["error"] <= bound:
        return "PyTorch's outputs differ"
    if not args.check_only and not row["ridge_error"] <= bound:
        return "Ridge's outputs differ"
    return ""


def verdict(args, rows):
    """How many of the rows and of the means are not what they must be; says which."""
    bad = 0
    for row in rows:
        wrong = wrong_in(args, row)
        if wrong:
            print(f"FAIL {row['model']} {row['precision']}: {wrong}")
            bad += 1
    if args.check_only or args.no_means:
        return bad
    for name in ["eager"] if args.no_compile else WANTED:
        mean = mean_ratio(rows, name)
        single = mean_ratio(rows, f"{name}_latency", "ridge_latency")
        good = mean >= WANTED[name]
        print(f"{'ok  ' if good else 'FAIL'} geometric mean {mean:.2f} x PyTorch {name}, "
              f"wanted {WANTED[name]:.2f} (single executions: {single:.2f})")
        bad += not good
    return bad


def missing(args):
    """Why nothing can be compared here, or ''."""
    if args.check_only:
        return ""
    if args.torch_device.startswith("cuda") and not torch.cuda.is_available():
        return f"PyTorch {torch.__version__} sees no GPU (torch.cuda.is_available() is false)"
    if not args.no_compile and not hasattr(torch, "compile"):
        return f"PyTorch {torch.__version__} has no torch.compile (2.1 or newer has)"
    if not os.access(args.ridge, os.X_OK):
        return f"{args.ridge}: no such program"
    return ""


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="*", help="NAME@BATCH (default: all)")
    parser.add_argument("--ridge", default="./ridge")
    parser.add_argument("--device", default="cuda", help="of Ridge, and of PyTorch as well")
    parser.add_argument("--torch-device", help="of PyTorch; cpu tests this program")
    parser.add_argument("--precisions", default=",".join(PRECISIONS))
    parser.add_argument("--option", action="append", default=[], help="to ridge run; repeatable")
    parser.add_argument("--samples", type=int, default=31)
    parser.add_argument("--seconds", type=float, default=3)
    parser.add_argument("--limit", type=float, default=60)
    parser.add_argument("--no-compile", action="store_true", help="compare with eager alone")
    parser.add_argument("--check-only", action="store_true",
                        help="outputs of the networks on the CPU beside Ridge's; no GPU")
    parser.add_argument("--json", help="write the rows to this file as well")
    parser.add_argument("--no-means", action="store_true", help="judge rows, not their means")
    parser.add_argument("--judge", nargs="+", metavar="FILE",
                        help="measure nothing: judge the rows that --json wrote to these")
    args = parser.parse_args()
    args.torch_device = "cpu" if args.check_only else args.torch_device or args.device
    return args


def reason_of(why):
    return (str(why).splitlines() or [type(why).__name__])[0]


def rows_of_model(args, model, batch, precisions):
    """What fails is a row with its reason, and the others go on."""
    with tempfile.TemporaryDirectory() as folder:
        prepared = None
        for precision in precisions:
            try:
                prepared = prepared or prepare(args, model, batch, folder)
                yield judge(args, model, batch, precision, prepared, folder)
            except (Exception, SystemExit) as why:  # of PyTorch's compiler come all kinds
                yield {"model": model, "batch": batch, "precision": precision, "error": math.inf,
                       "reason": reason_of(why)}


def write_rows(args, rows):
    """After each row: whoever has too little time for all has those that are done."""
    if args.json:
        with open(args.json, "w", encoding="utf-8") as file:
            json.dump(rows, file, indent=1)


def rows_of(files):
    rows = []
    for path in files:
        with open(path, encoding="utf-8") as file:
            rows += json.load(file)
    return rows


def main():
    args = arguments()
    if args.judge:
        rows = rows_of(args.judge)
        print_table(rows)
        return 1 if verdict(args, rows) else 0
    if missing(args):
        print(f"compare_torch: {missing(args)}", file=sys.stderr)
        return SKIP
    if args.torch_device.startswith("cuda"):
        torch.cuda.set_device(args.torch_device if ":" in args.torch_device else 0)
    set_search()
    chosen = [(m.split("@")[0], int(m.split("@")[1]) if "@" in m else 1) for m in args.models]
    rows = []
    for model, batch in chosen or MODELS:
        for row in rows_of_model(args, model, batch, args.precisions.split(",")):
            rows.append(row)
            write_rows(args, rows)
    print_table(rows)
    return 1 if verdict(args, rows) else 0


if __name__ == "__main__":
    sys.exit(main())
