# SPDX-License-Identifier: Apache-2.0
"""Two judges that nobody here wrote: ONNX Runtime and OpenVINO, on the models that Ridge exports.

For every model and batch: export, run all three on the same inputs, compare outputs, then time them
sample by sample in turn (same threads, pinned, one after the other), so that a change of the machine's
speed meets all alike. Prints one table; exits 1 when an output differs by more than the bound.
"""
import argparse
import json
import math
import os
import subprocess
import sys
import tempfile
import time

import numpy as np
import onnxruntime as ort

from turns import Ridge, mean_ratio, read_tensor, take_turns, tensor_file

try:
    import openvino as ov
except ImportError:
    ov = None

MODELS = [
    ("resnet50", 1), ("resnet50", 32), ("resnet50:version=1.5", 1),
    ("bert_base", 1), ("bert_large", 1), ("bert_large", 2),
    ("wide_deep", 1), ("wide_deep", 2048),
    ("ncf", 1), ("ncf", 256),
    ("ncf:embedding=gather", 1), ("ncf:embedding=gather", 256),
    ("dlrm_dcnv2:rows=400000", 128), ("dlrm_dcnv2:rows=400000", 2048),
    ("googlenet", 1), ("googlenet", 32), ("googlenet:form=bvlc", 1), ("resnet101", 1),
    ("resnet152", 1), ("vgg16", 1), ("vit", 1), ("densenet121", 1), ("densenet121_aimatrix", 1),
    ("densenet121_aimatrix", 32), ("crnn", 1), ("crnn", 256), ("crnn:width=280", 256),
    ("seglink", 1), ("seglink", 8), ("ssd300_vgg16", 1), ("ssd300_vgg16", 16), ("ssd512_vgg16", 1),
    ("ssd321_resnet18", 1), ("ssd300_resnet50", 1), ("ssd321_resnet101", 1),
    ("dssd321_resnet101", 1), ("dssd321_resnet101", 2), ("cpn", 1), ("cpn", 8), ("faster_rcnn", 1),
    ("mask_rcnn", 1), ("din", 1), ("din", 512), ("dien", 1), ("dien", 512), ("gcn", 1), ("nmt", 1),
    ("nmt", 128),
]
# Compared, not timed: variants, and lists of single layers of which one case stands for all.
COMPARED = [
    ("vit:size=ti16", 4), ("faster_rcnn:body=zf", 1), ("cpn:depth=50", 1), ("cpn:mirror=no", 1),
    ("nmt:beam=10", 1), ("dien:history=1936", 1), ("din:table=whole", 1), ("ssd300_vgg16:priors=tensorflow", 1),
    ("synnet", 1), ("gemm", 1), ("conv", 1), ("fc", 1), ("pool", 1), ("norm", 1),
    ("active", 1), ("rnn", 1), ("rnn:cell=GRU", 1), ("rnn:cell=RNN", 1),
]


class Runtime:
    def __init__(self, path, threads):
        options = ort.SessionOptions()
        options.intra_op_num_threads = threads
        options.inter_op_num_threads = 1
        options.log_severity_level = 3
        options.add_session_config_entry("session.force_spinning_stop", "1")
        self.session = ort.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        self.inputs = {}

    def run(self):
        return self.session.run(None, self.inputs)

    def sample(self):
        start = time.perf_counter()
        self.run()
        return (time.perf_counter() - start) * 1e3

    def close(self):
        self.session = None


class OpenVino:
    def __init__(self, path, inputs, threads):
        core = ov.Core()
        settings = {"INFERENCE_NUM_THREADS": threads, "PERFORMANCE_HINT": "LATENCY",
                    "INFERENCE_PRECISION_HINT": "f32"}
        self.model = core.compile_model(core.read_model(path), "CPU", settings)
        self.request = self.model.create_infer_request()
        for port in self.model.inputs:
            self.request.set_tensor(port, ov.Tensor(inputs[port.get_any_name()]))

    def sample(self):
        start = time.perf_counter()
        self.request.infer()
        return (time.perf_counter() - start) * 1e3

    def close(self):
        self.request = self.model = None


def set_error(ours, theirs):
    """Rows in any order: each of ours against the nearest of theirs that is still free, relative to
    the largest entry of the column. Two detectors may order near ties differently."""
    ours, theirs = (x.reshape(-1, x.shape[-1]).astype(np.float64) for x in (ours, theirs))
    scale = np.maximum(np.abs(theirs).max(axis=0), 1e-30)
    free, worst = np.ones(len(theirs), dtype=bool), 0.0
    for row in ours:
        distance = np.where(free, (np.abs(theirs - row) / scale).max(axis=1), math.inf)
        nearest = int(distance.argmin())
        free[nearest] = False
        worst = max(worst, float(distance[nearest]))
    return worst


def largest_error(session, folder, got):
    """Norm-wise, over all outputs; those named "detections" are sets of rows."""
    worst = 0.0
    for meta, theirs in zip(session.get_outputs(), got):
        ours = read_tensor(folder, meta.name)
        if ours.shape != theirs.shape:
            return math.inf
        if meta.name.startswith("detections"):
            worst = max(worst, set_error(ours, theirs))
            continue
        scale = max(float(np.abs(theirs).max()), 1e-30)
        error = float(np.abs(ours.astype(np.float64) - theirs.astype(np.float64)).max()) / scale
        worst = max(worst, error if math.isfinite(error) else math.inf)
    return worst


def prepare(args, model, batch, folder):
    """Exports a model (or takes a file as it is) and runs Ridge on it; path, inputs, outputs."""
    inputs, outputs = os.path.join(folder, "in"), os.path.join(folder, "out")
    path = model if model.endswith(".onnx") else os.path.join(folder, "model.onnx")
    size = [] if model.endswith(".onnx") else ["--batch", str(batch)]
    subprocess.run([args.ridge, "export", model, "--output", os.path.join(folder, "model.onnx"),
                    "--inputs-dir", inputs] + size, check=True, stdout=subprocess.DEVNULL)
    subprocess.run([args.ridge, "infer", model, "--output-dir", outputs, "--threads",
                    str(args.threads)] + size, check=True, stdout=subprocess.DEVNULL)
    return path, inputs, outputs


def error_in_parts(args, model, batch, folder):
    """Of the numbers that decisions are made on, and of what follows when both runtimes are given
    ours. A score within roundings of a threshold may fall on either side, and the rest follows."""
    worst, ours = 0.0, {}
    size = [] if model.endswith(".onnx") else ["--batch", str(batch)]
    given = os.path.join(folder, "in")
    for part in ("before-decisions", "after-decisions"):
        path, outputs = os.path.join(folder, part + ".onnx"), os.path.join(folder, part)
        export = [args.ridge, "export", model, "--part", part, "--output", path] + size
        if subprocess.run(export, stdout=subprocess.DEVNULL, check=False).returncode:
            return math.inf  # it decides nothing
        runtime = Runtime(path, args.threads)
        names = [i.name for i in runtime.session.get_inputs()]
        files = {name: ours.get(name, given) for name in names}
        runtime.inputs = {name: read_tensor(files[name], name) for name in names}
        bound = [f"--input={name}={tensor_file(files[name], name)}" for name in names]
        subprocess.run([args.ridge, "infer", model, "--part", part, "--output-dir", outputs,
                        "--threads", str(args.threads)] + bound + size, check=True,
                       stdout=subprocess.DEVNULL)
        worst = max(worst, largest_error(runtime.session, outputs, runtime.run()))
        ours = {o.name: outputs for o in runtime.session.get_outputs()}
    return worst


def judge(args, model, batch, timed):
    with tempfile.TemporaryDirectory(dir=args.work) as folder:
        path, given, outputs = prepare(args, model, batch, folder)
        runtime = Runtime(path, args.threads)
        inputs = {i.name: read_tensor(given, i.name) for i in runtime.session.get_inputs()}
        runtime.inputs = inputs
        error = largest_error(runtime.session, outputs, runtime.run())
        row = {"model": model, "batch": batch, "error": error, "parts": False}
        if not error <= args.bound:
            halves = error_in_parts(args, model, batch, folder)
            if halves <= args.bound:
                row.update(whole=error, error=halves, parts=True)
        if not timed:
            return row
        size = 0 if model.endswith(".onnx") else batch
        threads = ["--threads", str(args.threads)]
        engines = {"ridge": Ridge(args.ridge, model, size, threads), "ort": runtime}
        if not args.no_native:
            engines["native"] = Ridge(args.ridge, model, size,
                                      threads + ["--providers", "native"])
        if ov:
            try:
                engines["openvino"] = OpenVino(path, inputs, args.threads)
            except RuntimeError as why:  # it does not take every model that ONNX Runtime takes
                print(f"{model}: OpenVINO refuses: {str(why).splitlines()[0]}", file=sys.stderr)
        row.update(take_turns(engines, args.samples, args.seconds, args.limit))
        for engine in engines.values():
            engine.close()
        return row


def print_table(rows, check_only):
    print(f"{'model':<36} {'batch':>5} {'error':>9} ", end="")
    print("" if check_only else f" {'ridge ms':>9} {'native':>9} {'ORT':>9} {'OpenVINO':>9}"
          f" {'/ORT':>6} {'/OV':>6} {'nat/ORT':>7}")
    for row in rows:
        star = "*" if row["parts"] else " "
        print(f"{row['model'][-36:]:<36} {row['batch']:>5} {row['error']:>9.1e}{star}", end="")
        if "ridge" in row:
            vino = row.get("openvino", math.nan)
            native = row.get("native", math.nan)
            print(f" {row['ridge']:>9.3f} {native:>9.3f} {row['ort']:>9.3f} {vino:>9.3f}"
                  f" {row['ort'] / row['ridge']:>6.2f} {vino / row['ridge']:>6.2f}"
                  f" {row['ort'] / native:>7.2f}", end="")
        print()
    if any(row["parts"] for row in rows):
        print("* a tie was decided otherwise: what is decided on, and what follows from ours")
    if not check_only:
        print(f"geometric mean: {mean_ratio(rows, 'ort'):.2f} x ONNX Runtime,"
              f" {mean_ratio(rows, 'openvino'):.2f} x OpenVINO; native only"
              f" {mean_ratio(rows, 'ort', 'native'):.2f} x ONNX Runtime")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="*", help="NAME@BATCH or FILE.onnx (default: all)")
    parser.add_argument("--ridge", default="./ridge")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--samples", type=int, default=15)
    parser.add_argument("--seconds", type=float, default=3)
    parser.add_argument("--limit", type=float, default=60,
                        help="after so many seconds three samples of each are enough")
    parser.add_argument("--bound", type=float, default=1e-4)
    parser.add_argument("--no-native", action="store_true",
                        help="do not time our own kernels alone, which are tuned apart")
    parser.add_argument("--check-only", action="store_true", help="compare, do not time")
    parser.add_argument("--work", default=None, help="folder for exported models")
    parser.add_argument("--foreign", help="folder of .onnx files of another maker, judged as well")
    parser.add_argument("--json", help="write the rows to this file as well")
    args = parser.parse_args()
    chosen = [(m.split("@")[0], int(m.split("@")[1]) if "@" in m else 1) for m in args.models]
    chosen = chosen or MODELS + COMPARED
    if args.foreign and os.path.isdir(args.foreign):
        chosen += [(os.path.join(args.foreign, name), 0)
                   for name in sorted(os.listdir(args.foreign)) if name.endswith(".onnx")]
    rows, wrong = [], 0
    for model, batch in chosen:
        timed = not args.check_only and (model, batch) not in COMPARED
        rows.append(judge(args, model, batch, timed))
        times = " ".join(f"{name} {rows[-1][name]:.3f}" for name in
                         ("ridge", "native", "ort", "openvino") if name in rows[-1])
        print(f"{model} batch {batch}: error {rows[-1]['error']:.1e}  {times}", file=sys.stderr)
        wrong += not rows[-1]["error"] <= args.bound
    print_table(rows, args.check_only)
    print(f"{len(rows) - wrong} passed, {wrong} failed")
    if args.json:
        with open(args.json, "w", encoding="utf-8") as file:
            json.dump(rows, file, indent=1)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
