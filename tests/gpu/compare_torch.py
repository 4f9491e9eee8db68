# SPDX-License-Identifier: Apache-2.0
"""Ridge and PyTorch on one GPU in one run: the same network, batch and precision, in turns.

PyTorch runs eagerly and compiled (max-autotune), each replayed as one CUDA graph. Prints one table
and two geometric means; exits 1 when one is below what it must be, or a row is missing or wrong, and
77 when something is missing that this needs.
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

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "oracle"))

SKIP = 77
ENCODER = "nmt_encoder"  # nmt up to the keys of its attention, sentences of full length
MODELS = [("resnet50", 32), ("googlenet", 32), ("densenet121", 32), ("bert_large", 2),
          ("ncf", 256), ("wide_deep", 2048), (ENCODER, 128), ("crnn", 256)]
PRECISIONS = ["f32", "tf32", "bf16"]
WANTED = {"eager": 1.5, "compiled": 1.0}
BOUNDS = {"f32": 1e-4, "tf32": 2e-2, "bf16": 0.2}  # of outputs beside Ridge's on the CPU in f32

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
        start = time.perf_counter()
        self.run()
        return (time.perf_counter() - start) * 1e3


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

    def sample(self):
        start = time.perf_counter()
        self.run()
        return (time.perf_counter() - start) * 1e3


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
    return path, spec


def names_of(path):
    import onnx
    graph = onnx.load(path, load_external_data=False).graph
    return [i.name for i in graph.input], [o.name for o in graph.output]


def largest_error(folder, names, outputs, precision):
    """Norm-wise over all outputs; of decisions (integers) in f32 only."""
    worst = 0.0
    for name, theirs in zip(names, outputs):
        ours = read_tensor(os.path.join(folder, "out"), name).astype(np.float64)
        if theirs.dtype in (torch.int32, torch.int64) and precision != "f32":
            continue
        theirs = theirs.double().cpu().numpy()
        if ours.shape != theirs.shape:
            return math.inf
        error = float(np.abs(ours - theirs).max()) / max(float(np.abs(ours).max()), 1e-30)
        worst = max(worst, error if math.isfinite(error) else math.inf)
    return worst


def place(args, module, inputs, layout):
    """Module and inputs in the device's memory, images in that order."""
    module = module.to(args.torch_device, memory_format=layout)
    moved = [x.to(args.torch_device, memory_format=layout) if x.dim() == 4 else
             x.to(args.torch_device) for x in inputs]
    return module, moved


def fastest(args, module, inputs):
    """Images channels-last or not, whichever is faster here; others have one way."""
    layouts = [torch.channels_last, torch.contiguous_format]
    found = {}
    for layout in layouts if any(x.dim() == 4 for x in inputs) else layouts[1:]:
        engine = engine_of(args)(*place(args, module, inputs, layout))
        found[layout] = statistics.median(engine.sample() for _ in range(10))
    return min(found, key=found.get)


def engine_of(args):
    return Graph if args.torch_device.startswith("cuda") else Eager


def engines_of(args, module, inputs):
    """Eager and compiled, by the layout that is faster eagerly."""
    layout = fastest(args, module, inputs)
    module, moved = place(args, module, inputs, layout)
    engines = {"eager": engine_of(args)(module, moved)}
    if not args.no_compile:
        torch._dynamo.reset()
        mode = "max-autotune-no-cudagraphs"  # the whole is one graph of our own
        engines["compiled"] = engine_of(args)(torch.compile(module, mode=mode), moved)
    return engines, "channels-last" if layout == torch.channels_last else "plain"


def set_precision(precision):
    torch.backends.cuda.matmul.allow_tf32 = precision == "tf32"
    torch.backends.cudnn.allow_tf32 = precision == "tf32"
    torch.backends.cudnn.benchmark = True


def judge(args, model, batch, precision, folder):
    path, spec = prepare(args, model, batch, folder)
    given, results = names_of(path)
    inputs = [torch.from_numpy(read_tensor(os.path.join(folder, "in"), name)) for name in given]
    set_precision(precision)
    module = of_file(path, torch.bfloat16 if precision == "bf16" else torch.float32)
    row = {"model": model, "batch": batch, "precision": precision}
    if args.check_only:
        outputs = Eager(module, inputs).run()
        return dict(row, error=largest_error(folder, results, outputs, precision))
    options = ["--device", args.device, "--precision", precision] + args.option
    ours = Ridge(args.ridge, spec, 0 if model == ENCODER else batch, options)  # tunes alone
    engines, row["layout"] = engines_of(args, module, inputs)
    row["error"] = max(largest_error(folder, results, engine.run(), precision)
                       for engine in engines.values())
    row.update(take_turns({"ridge": ours, **engines}, args.samples, args.seconds, args.limit))
    ours.close()
    return row


def print_table(rows):
    print(f"{'model':<24} {'batch':>5} {'type':<5} {'error':>8} {'ridge ms':>9} {'eager':>9}"
          f" {'compiled':>9} {'/eager':>7} {'/comp.':>7}  layout")
    for row in rows:
        times = [row.get(name, math.nan) for name in ("ridge", "eager", "compiled")]
        print(f"{row['model']:<24} {row['batch']:>5} {row['precision']:<5} {row['error']:>8.1e}"
              f" {times[0]:>9.3f} {times[1]:>9.3f} {times[2]:>9.3f} {times[1] / times[0]:>7.2f}"
              f" {times[2] / times[0]:>7.2f}  {row.get('layout', '')}")


def verdict(args, rows):
    """How many of the rows and of the means are not what they must be; says which."""
    bad = 0
    for row in rows:
        if not row["error"] <= BOUNDS[row["precision"]]:
            print(f"FAIL {row['model']} {row['precision']}: {row.get('reason', 'outputs differ')}")
            bad += 1
    if args.check_only:
        return bad
    for name in ["eager"] if args.no_compile else WANTED:
        mean = mean_ratio(rows, name)
        good = mean >= WANTED[name]
        print(f"{'ok  ' if good else 'FAIL'} geometric mean {mean:.2f} x PyTorch {name}, "
              f"wanted {WANTED[name]:.2f}")
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
    args = parser.parse_args()
    args.torch_device = "cpu" if args.check_only else args.torch_device or args.device
    return args


def one_row(args, model, batch, precision):
    """What fails is a row with its reason, and the others go on."""
    try:
        with tempfile.TemporaryDirectory() as folder:
            return judge(args, model, batch, precision, folder)
    except (Exception, SystemExit) as why:  # of PyTorch's compiler come all kinds
        reason = (str(why).splitlines() or [type(why).__name__])[0]
        return {"model": model, "batch": batch, "precision": precision, "error": math.inf,
                "reason": reason}


def main():
    args = arguments()
    if missing(args):
        print(f"compare_torch: {missing(args)}", file=sys.stderr)
        return SKIP
    if args.torch_device.startswith("cuda"):
        torch.cuda.set_device(args.torch_device if ":" in args.torch_device else 0)
    chosen = [(m.split("@")[0], int(m.split("@")[1]) if "@" in m else 1) for m in args.models]
    rows = [one_row(args, model, batch, precision) for model, batch in chosen or MODELS
            for precision in args.precisions.split(",")]
    print_table(rows)
    if args.json:
        with open(args.json, "w", encoding="utf-8") as file:
            json.dump(rows, file, indent=1)
    return 1 if verdict(args, rows) else 0


if __name__ == "__main__":
    sys.exit(main())
