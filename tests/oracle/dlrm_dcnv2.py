# SPDX-License-Identifier: Apache-2.0
"""dlrm_dcnv2 against the same network of PyTorch's own layers, with the same weights, numbers and ids.

    PYTHON tests/oracle/dlrm_dcnv2.py --ridge build/release/ridge

PYTHON has torch and onnx. The tables are nn.EmbeddingBag of mode sum; every weight of the file must fit one of the
network's, and none may be left. Exit 1 where a result in f32 is off by more than 1e-5 of the largest one.
"""
import argparse
import os
import subprocess
import sys
import tempfile

import numpy as np
import onnx
import torch
from onnx import numpy_helper
from torch import nn

BOUND = 1e-5
NUMBERS, WIDTH, RANK, CROSSES = 13, 128, 512, 3
ROWS = [40000000, 39060, 17295, 7424, 20265, 3, 7122, 1543, 63, 40000000, 3067956, 405282, 10, 2209, 11938, 155, 4, 976,
        14, 40000000, 40000000, 40000000, 590152, 12973, 108, 36]


def tower(widths):
    return nn.ModuleList(nn.Linear(a, b) for a, b in zip(widths, widths[1:]))


class Network(nn.Module):
    def __init__(self, rows):
        super().__init__()
        wide = (1 + len(ROWS)) * WIDTH
        self.bottom = tower([NUMBERS, 512, 256, WIDTH])
        self.cat = nn.ModuleList(nn.EmbeddingBag(min(n, rows), WIDTH, mode="sum") for n in ROWS)
        self.v = nn.ModuleList(nn.Linear(wide, RANK, bias=False) for _ in range(CROSSES))
        self.w = nn.ModuleList(nn.Linear(RANK, wide) for _ in range(CROSSES))
        self.over = tower([wide, 1024, 1024, 512, 256, 1])

    def forward(self, numbers, ids):
        for layer in self.bottom:
            numbers = layer(numbers).relu()
        x0 = x = torch.cat([numbers] + [bag(i) for bag, i in zip(self.cat, ids)], dim=1)
        for v, w in zip(self.v, self.w):
            x = x0 * w(v(x)) + x
        for layer in self.over[:-1]:
            x = layer(x).relu()
        return self.over[-1](x).sigmoid()


def own_name(name):
    """bottom.0.weight of the network is bottom1.weight here, w.2.bias is cross3_w.bias, cat.4.weight cat_4.weight."""
    part, number, kind = name.split(".")
    if part == "cat":
        return f"cat_{number}.{kind}"
    number = int(number) + 1
    return f"cross{number}_{part}.{kind}" if part in "vw" else f"{part}{number}.{kind}"


def load(path, network):
    file = {t.name: torch.tensor(numpy_helper.to_array(t)) for t in onnx.load(path).graph.initializer}
    state = {}
    for name in network.state_dict():
        weight = file.pop(own_name(name))
        state[name] = weight.T if weight.dim() == 2 and not name.startswith("cat.") else weight
    network.load_state_dict(state, strict=True)
    left = [name for name, weight in file.items() if weight.is_floating_point()]
    if left:
        raise SystemExit(f"weights that the network has not: {', '.join(left)}")


def compare(ridge, rows, distribution, batch):
    spec = f"dlrm_dcnv2:rows={rows},distribution={distribution}"
    size = ["--batch", str(batch)]
    with tempfile.TemporaryDirectory() as folder:
        model, given, made = (os.path.join(folder, name) for name in ("model.onnx", "in", "out"))
        subprocess.run([ridge, "export", spec, *size, "-o", model, "-i", given], check=True, capture_output=True)
        subprocess.run([ridge, "infer", spec, *size, "-o", made, "--no-tune"], check=True, capture_output=True)
        network = Network(rows)
        load(model, network)
        numbers = torch.tensor(np.load(os.path.join(given, "numbers.npy")))
        ids = [torch.tensor(np.load(os.path.join(given, f"cat_{k}.ids.npy"))) for k in range(len(ROWS))]
        ours = np.load(os.path.join(made, "click_probability.npy"))
    theirs = network(numbers, ids).numpy()
    worst = float(np.abs(ours - theirs).max() / np.abs(theirs).max())
    dense = sum(p.numel() for name, p in network.named_parameters() if not name.startswith("cat."))
    print(f"{spec}, batch {batch}: largest error {worst:.1e} of results from {theirs.min():.3f} to {theirs.max():.3f}; "
          f"{dense} weights beside the tables")
    return worst <= BOUND and dense == 16044545


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--ridge", default="build/release/ridge")
    ridge = parser.parse_args().ridge
    torch.set_grad_enabled(False)
    fine = [compare(ridge, *case) for case in ((20000, "uniform", 64), (100000, "zipf", 7), (3, "uniform", 128))]
    return 0 if all(fine) else 1


if __name__ == "__main__":
    sys.exit(main())
