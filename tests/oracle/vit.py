# SPDX-License-Identifier: Apache-2.0
"""vit against torchvision's VisionTransformer with the same weights and images: logits.

    PYTHON tests/oracle/vit.py --ridge build/release/ridge

PYTHON has torch, torchvision and onnx. Exit 1 where something is off by more than 1e-5 of its largest element.
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
from torchvision.models import VisionTransformer

BOUND, BATCH = 1e-5, 2
# Of each size: patch, layers, width, heads.
SIZES = {"ti16": (16, 12, 192, 3), "s16": (16, 12, 384, 6), "b16": (16, 12, 768, 12), "l16": (16, 24, 1024, 16),
         "h14": (14, 32, 1280, 16)}
# What of a layer is another name for the same; weights of products are turned.
NORMS = {"ln_1": "attention.norm", "ln_2": "mlp.norm"}
PRODUCTS = {"self_attention.out_proj": "attention.output", "mlp.0": "mlp.up", "mlp.3": "mlp.down"}


def weights_of(path, network, depth):
    """Those of the file under the network's names; every one of the network's must be there."""
    file = {t.name: torch.tensor(numpy_helper.to_array(t)) for t in onnx.load(path).graph.initializer}
    state = {"class_token": file["class_token"].reshape(1, 1, -1),
             "encoder.pos_embedding": file["positions"].unsqueeze(0),
             "conv_proj.weight": file["patches.weight"], "conv_proj.bias": file["patches.bias"],
             "heads.head.weight": file["head.weight"].T, "heads.head.bias": file["head.bias"],
             "encoder.ln.weight": file["norm.weight"], "encoder.ln.bias": file["norm.bias"]}
    for layer in range(depth):
        there, here = f"encoder.layers.encoder_layer_{layer}.", f"layer{layer}."
        parts = [f"{here}attention.{part}" for part in ("query", "key", "value")]
        state[f"{there}self_attention.in_proj_weight"] = torch.cat([file[f"{p}.weight"].T for p in parts])
        state[f"{there}self_attention.in_proj_bias"] = torch.cat([file[f"{p}.bias"] for p in parts])
        for name, own in PRODUCTS.items():
            state[f"{there}{name}.weight"] = file[f"{here}{own}.weight"].T
            state[f"{there}{name}.bias"] = file[f"{here}{own}.bias"]
        for name, own in NORMS.items():
            state[f"{there}{name}.weight"] = file[f"{here}{own}.weight"]
            state[f"{there}{name}.bias"] = file[f"{here}{own}.bias"]
    network.load_state_dict(state, strict=True)


def compare(ridge, size, image, classes, depth):
    patch, layers, width, heads = SIZES[size]
    depth = depth or layers
    spec = f"vit:size={size},image={image},classes={classes},depth={depth}"
    batch = ["--batch", str(BATCH)]
    network = VisionTransformer(image, patch, depth, heads, width, 4 * width, num_classes=classes).eval()
    with tempfile.TemporaryDirectory() as folder:
        model, given, made = (os.path.join(folder, name) for name in ("model.onnx", "in", "out"))
        subprocess.run([ridge, "export", spec, *batch, "-o", model, "-i", given], check=True, capture_output=True)
        subprocess.run([ridge, "infer", spec, *batch, "-o", made, "--no-tune"], check=True, capture_output=True)
        weights_of(model, network, depth)
        images, ours = (np.load(os.path.join(*path)) for path in ((given, "image.npy"), (made, "logits.npy")))
    theirs = network(torch.tensor(images)).numpy()
    off = float(np.abs(ours - theirs).max() / np.abs(theirs).max())
    print(f"{spec}: largest error {off:.1e}")
    return off <= BOUND


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--ridge", default="build/release/ridge")
    ridge = parser.parse_args().ridge
    torch.set_grad_enabled(False)
    cases = (("ti16", 224, 1000, 0), ("s16", 224, 1000, 0), ("b16", 224, 1000, 0), ("b16", 384, 10, 2),
             ("l16", 224, 1000, 3), ("h14", 224, 1000, 2), ("h14", 42, 5, 1))
    fine = [compare(ridge, *case) for case in cases]
    return 0 if all(fine) else 1


if __name__ == "__main__":
    sys.exit(main())
