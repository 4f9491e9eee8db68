# SPDX-License-Identifier: Apache-2.0
"""Writes networks with random weights as .onnx files through PyTorch's exporter (Debian's python3-torch,
python3-torchvision, python3-onnx): graphs that Ridge did not write, for import, comparison and timing.

Usage: export_torch.py FOLDER [NAME...]
"""
import math
import os
import sys

import torch
import torchvision
from torch import nn


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads, self.size = heads, width // heads
        self.query = nn.Linear(width, width)
        self.key = nn.Linear(width, width)
        self.value = nn.Linear(width, width)

    def split(self, x):
        return x.view(x.size(0), x.size(1), self.heads, self.size).permute(0, 2, 1, 3)

    def forward(self, x, mask):
        q, k, v = self.split(self.query(x)), self.split(self.key(x)), self.split(self.value(x))
        scores = torch.matmul(q, k.transpose(-1, -2)) / math.sqrt(self.size) + mask
        mixed = torch.matmul(torch.softmax(scores, dim=-1), v).permute(0, 2, 1, 3).contiguous()
        return mixed.view(x.size(0), x.size(1), self.heads * self.size)


class Layer(nn.Module):
    def __init__(self, width, heads, inner):
        super().__init__()
        self.attention = Attention(width, heads)
        self.output = nn.Linear(width, width)
        self.norm1 = nn.LayerNorm(width, eps=1e-12)
        self.up = nn.Linear(width, inner)
        self.down = nn.Linear(inner, width)
        self.norm2 = nn.LayerNorm(width, eps=1e-12)

    def forward(self, x, mask):
        x = self.norm1(self.output(self.attention(x, mask)) + x)
        return self.norm2(self.down(nn.functional.gelu(self.up(x))) + x)


class Bert(nn.Module):
    """BERT with the span head; GELU in its exact form, as PyTorch's models have it."""

    def __init__(self, layers, width, heads, inner):
        super().__init__()
        self.words = nn.Embedding(30522, width)
        self.positions = nn.Embedding(512, width)
        self.types = nn.Embedding(2, width)
        self.norm = nn.LayerNorm(width, eps=1e-12)
        self.layers = nn.ModuleList(Layer(width, heads, inner) for _ in range(layers))
        self.head = nn.Linear(width, 2)

    def forward(self, ids, mask, types):
        places = torch.arange(ids.size(1)).unsqueeze(0)
        x = self.norm(self.words(ids) + self.types(types) + self.positions(places))
        added = (1.0 - mask.unsqueeze(1).unsqueeze(2).float()) * -10000.0
        for layer in self.layers:
            x = layer(x, added)
        return self.head(x)


class NeuMF(nn.Module):
    def __init__(self):
        super().__init__()
        self.user_gmf, self.item_gmf = nn.Embedding(6040, 16), nn.Embedding(3706, 16)
        self.user_mlp, self.item_mlp = nn.Embedding(6040, 16), nn.Embedding(3706, 16)
        self.mlp = nn.Sequential(nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 16), nn.ReLU(),
                                 nn.Linear(16, 8), nn.ReLU())
        self.head = nn.Linear(24, 1)

    def forward(self, user, item):
        gmf = self.user_gmf(user) * self.item_gmf(item)
        mlp = self.mlp(torch.cat([self.user_mlp(user), self.item_mlp(item)], dim=1))
        return torch.sigmoid(self.head(torch.cat([gmf, mlp], dim=1)))


def images(batch):
    return (torch.randn(batch, 3, 224, 224),)


def tokens(batch):
    ids = torch.randint(0, 30522, (batch, 384))
    mask = (torch.arange(384).unsqueeze(0) < 300).long().repeat(batch, 1)
    return ids, mask, torch.zeros_like(ids)


NETS = {
    "torch_resnet50_b1": (lambda: torchvision.models.resnet50(), lambda: images(1)),
    "torch_resnet50_b32": (lambda: torchvision.models.resnet50(), lambda: images(32)),
    "torch_mobilenet_v2_b1": (lambda: torchvision.models.mobilenet_v2(), lambda: images(1)),
    "torch_bert_base_b1": (lambda: Bert(12, 768, 12, 3072), lambda: tokens(1)),
    "torch_bert_large_b1": (lambda: Bert(24, 1024, 16, 4096), lambda: tokens(1)),
    "torch_ncf_b256": (NeuMF, lambda: (torch.randint(0, 6040, (256,)),
                                       torch.randint(0, 3706, (256,)))),
}


def main():
    folder = sys.argv[1]
    os.makedirs(folder, exist_ok=True)
    for name in sys.argv[2:] or NETS:
        path = os.path.join(folder, name + ".onnx")
        if os.path.exists(path):
            continue
        torch.manual_seed(1)
        make, sample = NETS[name]
        torch.onnx.export(make().eval(), sample(), path + ".part", opset_version=13,
                          do_constant_folding=True)
        os.rename(path + ".part", path)
        print(path)


if __name__ == "__main__":
    main()
