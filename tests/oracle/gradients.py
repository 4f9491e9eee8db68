# SPDX-License-Identifier: Apache-2.0
"""Gradients against a judge that nobody here wrote: PyTorch's autograd in float64.

For every workload that learns, in its tiny form and some at full size, tests/oracle/gradients writes the
graph of its loss as ONNX, its inputs, and the gradients by all weights as Ridge's float64 reference computes
them. Here the same graph is run operator by operator in PyTorch, and its gradients are compared: the L2 distance
of each, relative to its own norm or 1e-3 of the largest one's, whichever is more (a bias before a normalisation
has a gradient of exactly zero). It must not exceed 1e-9.

In f32 nobody is exact, so the tiny forms' compiled steps are held against PyTorch's own f32: the L2 distance of each
gradient from the float64 one must be at most twice that of PyTorch's, or 1e-5 of the largest gradient's norm. Where
a step takes more, PyTorch runs again, up to eight times, on weights and inputs that are off by up to 3 x 2^-24 of
themselves, about two units in f32's last place: which way a ReLU or a maximum turns that is as close as roundings is
chance, and one that turns puts a gradient of the tiny googlenet 2e-3 off, in PyTorch as in Ridge. The columns say how
much of the allowance the worst gradient takes, and how many such runs it took.

One draw of weights and samples says little of whose roundings are larger. So each tiny form is compared on further
draws (--draws), every one with weights and samples of its own: the ratio of a draw is the geometric mean, over the
weights, of Ridge's L2 distance from float64 divided by PyTorch's, both at least 1e-8 of the largest gradient's norm.
Where a decision turns in one of both alone, the ratio is 0.01 or 100 by chance; so Ridge is called worse than PyTorch
if the median over all draws of all networks, 30 at least, exceeds 1.25. Exits 1 where anything misses its bound.
"""
import argparse
import math
import os
import subprocess
import sys
import tempfile

import numpy as np
import onnx
import torch
from onnx import numpy_helper
from torch.nn import functional as F

import regions

BOUND = 1e-9
TIMES_THEIRS, OF_LARGEST = 2, 1e-5
DISTURBANCES, DISTURBED_BY = 8, 3 * 2.0**-24
DRAWS, LEAST_ERROR, WORSE, ENOUGH = 3, 1e-8, 1.25, 30
# At full size, besides the tiny forms.
FULL = [("ncf", 64), ("ncf:embedding=gather", 64), ("wide_deep", 32), ("din", 8), ("dien", 4), ("gcn", 0), ("crnn", 1),
        ("resnet50", 2), ("bert_base:tokens=128,dropout=none", 1)]
# What decides by sums that differ in their last places, or drops at random, does so in its own way.
LEFT_OUT = {"faster_rcnn": "proposals are sampled", "mask_rcnn": "proposals are sampled"}
WITHOUT_DROPOUT = ("bert_base", "bert_large")


def attributes(node):
    return {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}


def ints(x):
    return [int(v) for v in x.reshape(-1)]


def pads_of(a, rank, x, kernel, strides, dilations):
    auto = a.get("auto_pad", b"NOTSET").decode()
    if auto in ("SAME_UPPER", "SAME_LOWER"):
        begin, end = [], []
        for k in range(rank):
            size, reach = x.shape[2 + k], (kernel[k] - 1) * dilations[k] + 1
            total = max(0, (-(-size // strides[k]) - 1) * strides[k] + reach - size)
            small, large = total // 2, total - total // 2
            begin.append(small if auto == "SAME_UPPER" else large)
            end.append(large if auto == "SAME_UPPER" else small)
        return begin, end
    pads = a.get("pads", [0] * 2 * rank)
    return pads[:rank], pads[rank:]


def padded(x, begin, end, value=0.0):
    both = [p for b, e in reversed(list(zip(begin, end))) for p in (b, e)]
    return F.pad(x, both, value=value) if any(both) else x


def conv(a, x, w, b=None):
    rank = w.dim() - 2
    strides, dilations = a.get("strides", [1] * rank), a.get("dilations", [1] * rank)
    begin, end = pads_of(a, rank, x, w.shape[2:], strides, dilations)
    f = {1: F.conv1d, 2: F.conv2d, 3: F.conv3d}[rank]
    return f(padded(x, begin, end), w, b, stride=strides, dilation=dilations, groups=a.get("group", 1))


def conv_transpose(a, x, w, b=None):
    rank = w.dim() - 2
    strides, dilations = a.get("strides", [1] * rank), a.get("dilations", [1] * rank)
    pads, more = a.get("pads", [0] * 2 * rank), a.get("output_padding", [0] * rank)
    f = {1: F.conv_transpose1d, 2: F.conv_transpose2d}[rank]
    y = f(x, w, b, stride=strides, dilation=dilations, groups=a.get("group", 1))
    for k in range(rank):
        size = y.shape[2 + k] - pads[k] - pads[rank + k] + more[k]
        y = padded(y, [0] * rank, [more[k] if i == k else 0 for i in range(rank)]) if more[k] else y
        y = y.narrow(2 + k, pads[k], size)
    return y


def max_pool(a, x):
    kernel = a["kernel_shape"]
    rank = len(kernel)
    strides, dilations = a.get("strides", [1] * rank), a.get("dilations", [1] * rank)
    begin, end = pads_of(a, rank, x, kernel, strides, dilations)
    f = {1: F.max_pool1d, 2: F.max_pool2d}[rank]
    return f(padded(x, begin, end, float("-inf")), kernel, strides, 0, dilations,
             ceil_mode=bool(a.get("ceil_mode", 0)))


def average_pool(a, x):
    kernel = a["kernel_shape"]
    rank = len(kernel)
    strides = a.get("strides", [1] * rank)
    begin, end = pads_of(a, rank, x, kernel, strides, [1] * rank)
    counted = torch.ones_like(x[:1, :1])
    counted = padded(counted, begin, end, 1.0 if a.get("count_include_pad", 0) else 0.0)
    f = {1: F.avg_pool1d, 2: F.avg_pool2d}[rank]
    ceil = bool(a.get("ceil_mode", 0))
    return f(padded(x, begin, end), kernel, strides, ceil_mode=ceil) / f(counted, kernel, strides, ceil_mode=ceil)


def batch_norm(a, x, scale, bias, mean, var):
    return F.batch_norm(x, mean.clone(), var.clone(), scale, bias, bool(a.get("training_mode", 0)), 0.0,
                        a.get("epsilon", 1e-5))


def layer_norm(a, x, scale, bias=None):
    axis = a.get("axis", -1) % x.dim()
    return F.layer_norm(x, x.shape[axis:], scale, bias, a.get("epsilon", 1e-5))


def axes_of(a, rest, x):
    if rest and rest[0] is not None:
        return ints(rest[0])
    return list(a.get("axes", range(x.dim())))


def reduce(f):
    return lambda a, x, *rest: f(x, axes_of(a, rest, x), bool(a.get("keepdims", 1)))


def slices(a, x, starts, ends, axes=None, steps=None):
    axes = ints(axes) if axes is not None else range(len(ints(starts)))
    steps = ints(steps) if steps is not None else [1] * len(ints(starts))
    for start, end, axis, step in zip(ints(starts), ints(ends), axes, steps):
        size = x.shape[axis]
        index = list(range(size))[slice(start, end if end > -size - 1 else None, step)]
        x = x.index_select(axis, torch.tensor(index, dtype=torch.int64))
    return x


def softmax_loss(a, scores, labels, weights=None):
    return F.cross_entropy(scores, labels.long(), weights, ignore_index=a.get("ignore_index", -100),
                           reduction=a.get("reduction", b"mean").decode())


def nll_loss(a, x, labels, weights=None):
    return F.nll_loss(x, labels.long(), weights, ignore_index=a.get("ignore_index", -100),
                      reduction=a.get("reduction", b"mean").decode())


def ctc_loss(a, x, labels, lengths, steps=None):
    steps = torch.full(lengths.shape, x.shape[0]) if steps is None else steps.long()
    return F.ctc_loss(torch.log_softmax(x, 2), labels.long(), steps, lengths.long(),
                      a.get("blank", -1) % x.shape[2], reduction="none")


def gather(a, x, ids):
    axis = a.get("axis", 0) % max(x.dim(), 1)
    ids = ids.long()
    ids = torch.where(ids < 0, ids + x.shape[axis], ids)
    return x.index_select(axis, ids.reshape(-1)).reshape(x.shape[:axis] + ids.shape + x.shape[axis + 1:])


def one_hot(a, ids, depth, values):
    axis = a.get("axis", -1)
    depth = int(depth.reshape(-1)[0])
    hot = F.one_hot(ids.long() % depth, depth).to(values.dtype) * (values[1] - values[0]) + values[0]
    return hot if axis == -1 else hot.movedim(-1, axis)


def walk(a, way, x, lens, states, step):
    """One direction of a recurrence: all steps of the first state, and the last states. What lies
    beyond the end of a sequence is zero, and its states stay."""
    reverse = a.get("direction", b"forward").decode() == "reverse" or way == 1
    ys = [None] * x.shape[0]
    for t in (range(x.shape[0] - 1, -1, -1) if reverse else range(x.shape[0])):
        after = step(t, *states)
        on = torch.ones(x.shape[1], 1, dtype=torch.bool) if lens is None else (t < lens).unsqueeze(1)
        states = [torch.where(on, new, old) for new, old in zip(after, states)]
        ys[t] = torch.where(on, after[0], torch.zeros_like(after[0]))
    return torch.stack(ys), states


def first_state(h0, way, x, size):
    return h0[way] if h0 is not None else x.new_zeros(x.shape[1], size)


def lstm(a, x, w, r, b=None, lens=None, h0=None, c0=None, p=None):
    """Gates i, o, f, c as ONNX orders them; both directions; unrolled."""
    size = a["hidden_size"]
    out, hs, cs = [], [], []
    for d in range(w.shape[0]):
        bias = b[d, :4 * size] + b[d, 4 * size:] if b is not None else 0

        def step(t, h, c, d=d, bias=bias):
            i, o, f, g = (x[t] @ w[d].T + h @ r[d].T + bias).chunk(4, 1)
            c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
            return torch.sigmoid(o) * torch.tanh(c), c

        y, (h, c) = walk(a, d, x, lens, [first_state(h0, d, x, size), first_state(c0, d, x, size)], step)
        out.append(y)
        hs.append(h)
        cs.append(c)
    return torch.stack(out, 1), torch.stack(hs), torch.stack(cs)


def gru(a, x, w, r, b=None, lens=None, h0=None):
    """Gates z, r, h; linear_before_reset as the attribute says."""
    size, out, hs = a["hidden_size"], [], []
    for d in range(w.shape[0]):
        wb = b[d, :3 * size] if b is not None else x.new_zeros(3 * size)
        rb = b[d, 3 * size:] if b is not None else x.new_zeros(3 * size)

        def step(t, h, d=d, wb=wb, rb=rb):
            xz, xr, xh = (x[t] @ w[d].T + wb).chunk(3, 1)
            rz, rr, rh = r[d].chunk(3, 0)
            bz, br, bh = rb.chunk(3, 0)
            z = torch.sigmoid(xz + h @ rz.T + bz)
            s = torch.sigmoid(xr + h @ rr.T + br)
            if a.get("linear_before_reset", 0):
                n = torch.tanh(xh + s * (h @ rh.T + bh))
            else:
                n = torch.tanh(xh + (s * h) @ rh.T + bh)
            return ((1 - z) * n + z * h,)

        y, (h,) = walk(a, d, x, lens, [first_state(h0, d, x, size)], step)
        out.append(y)
        hs.append(h)
    return torch.stack(out, 1), torch.stack(hs)


def gemm(a, x, y, c=None):
    x = x.T if a.get("transA", 0) else x
    y = y.T if a.get("transB", 0) else y
    z = a.get("alpha", 1.0) * (x @ y)
    return z if c is None else z + a.get("beta", 1.0) * c


def split(a, x, sizes=None):
    axis = a.get("axis", 0)
    sizes = ints(sizes) if sizes is not None else a.get("split")
    return torch.split(x, sizes, axis) if sizes else torch.chunk(x, a["_outputs"], axis)


def reshape(a, x, shape):
    shape = ints(shape)
    if not a.get("allowzero", 0):
        shape = [x.shape[k] if n == 0 else n for k, n in enumerate(shape)]
    return x.reshape(shape)


def unsqueeze(a, x, axes=None):
    axes = ints(axes) if axes is not None else a["axes"]
    rank = x.dim() + len(axes)
    for axis in sorted(k % rank for k in axes):
        x = x.unsqueeze(axis)
    return x


def squeeze(a, x, axes=None):
    axes = ints(axes) if axes is not None else a.get("axes", [k for k, n in enumerate(x.shape) if n == 1])
    for axis in sorted((k % x.dim() for k in axes), reverse=True):
        x = x.squeeze(axis)
    return x


def kind_of(element):
    """NumPy's letter for the kind of an ONNX element type, by either generation of the onnx package."""
    if hasattr(onnx.helper, "tensor_dtype_to_np_dtype"):
        return onnx.helper.tensor_dtype_to_np_dtype(element).kind
    return onnx.mapping.TENSOR_TYPE_TO_NP_TYPE[element].kind


def cast(a, x):
    kind = kind_of(a["to"])
    return x.double() if kind == "f" else x.bool() if kind == "b" else x.long()


def clip(a, x, low=None, high=None):
    low = low if low is not None else a.get("min")
    high = high if high is not None else a.get("max")
    return torch.clamp(x, None if low is None else float(low), None if high is None else float(high))


def resize(a, x, *rest):
    """Places are computed in f32, as ONNX Runtime and Ridge do."""
    f32 = torch.float32
    size = ints(rest[2])[2:] if len(rest) > 2 and rest[2] is not None else None
    old = torch.tensor(x.shape[2:], dtype=f32)
    scales = torch.tensor(size, dtype=f32) / old if size else rest[1].reshape(-1)[2:].to(f32)
    size = size or ints(torch.floor(scales * old))
    mode = a.get("mode", b"nearest").decode()
    where = a.get("coordinate_transformation_mode", b"half_pixel").decode()
    for k, n in enumerate(size):
        old = x.shape[2 + k]
        at = torch.arange(n, dtype=f32)
        at = (at + 0.5) / scales[k] - 0.5 if where == "half_pixel" else at / scales[k]
        if where == "align_corners":
            at = torch.arange(n, dtype=f32) * (old - 1) / max(n - 1, 1)
        at = at.double()
        if mode == "nearest":
            index = torch.floor(at) if a.get("nearest_mode", b"") == b"floor" else torch.ceil(at - 0.5)
            x = x.index_select(2 + k, index.long().clamp(0, old - 1))
            continue
        at = at.clamp(0, old - 1)
        low = torch.floor(at).long()
        high = (low + 1).clamp(max=old - 1)
        part = (at - low).reshape([-1] + [1] * (x.dim() - 3 - k))
        x = x.index_select(2 + k, low) * (1 - part) + x.index_select(2 + k, high) * part
    return x


def scatter_nd(a, x, ids, updates):
    """Rows of ids point along the first axes; with reduction add the updates are added."""
    at = tuple(ids.long().movedim(-1, 0))
    return x.index_put(at, updates, accumulate=a.get("reduction", b"none") == b"add")


def hard_negatives(a, losses, classes):
    """All of positive classes; of class 0 those with the largest losses, the first of equal ones."""
    flags = classes > 0
    for n in range(len(losses)):
        negative = [p for p in range(losses.shape[1]) if classes[n, p] == 0]
        negative.sort(key=lambda p: -float(losses[n, p]))
        count = max(int(a.get("ratio", 3) * int(flags[n].sum())), a.get("least", 0))
        flags[n, negative[:count]] = True
    return flags


def match_priors(a, boxes, labels, priors):
    """Caffe's matching, pair by pair: ridge/MatchPriors says how."""
    threshold = a.get("threshold", 0.5)
    background, tie = a.get("background", threshold), 1 + 1e-4
    corners = torch.cat([priors[:, :2] - priors[:, 2:] / 2, priors[:, :2] + priors[:, 2:] / 2], 1)
    classes = torch.zeros(len(boxes), len(priors), dtype=torch.int64)
    offsets = torch.zeros(len(boxes), len(priors), 4, dtype=torch.float64)
    for n, (image, kinds) in enumerate(zip(boxes, labels)):
        low = torch.maximum(image[:, None, :2], corners[None, :, :2])
        high = torch.minimum(image[:, None, 2:], corners[None, :, 2:])
        both = (high - low).clamp(min=0).prod(-1)
        sizes = (image[:, 2:] - image[:, :2]).prod(-1)[:, None] + priors[:, 2:].prod(-1)[None]
        overlap = torch.where((kinds > 0)[:, None] & (both > 0), both / (sizes - both), torch.zeros_like(both))
        most, box = torch.zeros(len(priors), dtype=torch.float64), torch.full((len(priors),), -1)
        for b in range(len(image)):
            more = overlap[b] > most * tie
            most, box = torch.where(more, overlap[b], most), torch.where(more, torch.tensor(b), box)
        free, left = overlap.clone(), set(torch.nonzero(kinds > 0).reshape(-1).tolist())
        matched = most >= threshold
        while a.get("best", 1) and left:
            reach, winner = 0.0, None
            for b in sorted(left):
                if float(free[b].max()) > reach * tie:
                    reach, winner = float(free[b].max()), b
            if winner is None:
                break
            p = int(torch.nonzero(free[winner] * tie >= reach)[0])
            matched[p], box[p], free[:, p] = True, winner, 0
            left.remove(winner)
        classes[n] = torch.where(matched, kinds[box.clamp(min=0)], -(most >= background).long())
        mine = image[box.clamp(min=0)]
        middle, size = (mine[:, :2] + mine[:, 2:]) / 2, mine[:, 2:] - mine[:, :2]
        said = torch.cat([(middle - priors[:, :2]) / priors[:, 2:] / a.get("variance_xy", 0.1),
                          torch.log(size / priors[:, 2:]) / a.get("variance_size", 0.2)], 1)
        offsets[n] = torch.where(matched[:, None], said, torch.zeros_like(said))
    return classes, offsets


def lp_normalization(a, x):
    return x / x.norm(a.get("p", 2), a.get("axis", -1), True)


OPERATORS = {
    "Add": lambda a, x, y: x + y, "Sub": lambda a, x, y: x - y, "Mul": lambda a, x, y: x * y,
    "Div": lambda a, x, y: x / y if x.is_floating_point() else torch.div(x, y, rounding_mode="trunc"),
    "Neg": lambda a, x: -x, "Log": lambda a, x: torch.log(x), "Exp": lambda a, x: torch.exp(x),
    "Sqrt": lambda a, x: torch.sqrt(x), "Pow": lambda a, x, y: torch.pow(x, y), "Abs": lambda a, x: torch.abs(x),
    "Round": lambda a, x: torch.round(x),
    "Relu": lambda a, x: F.relu(x), "Sigmoid": lambda a, x: torch.sigmoid(x), "Tanh": lambda a, x: torch.tanh(x),
    "Erf": lambda a, x: torch.erf(x), "Softplus": lambda a, x: F.softplus(x, threshold=1e9),
    "LeakyRelu": lambda a, x: F.leaky_relu(x, a.get("alpha", 0.01)),
    "PRelu": lambda a, x, s: torch.where(x < 0, s * x, x), "Clip": clip,
    "HardSigmoid": lambda a, x: torch.clamp(a.get("alpha", 0.2) * x + a.get("beta", 0.5), 0, 1),
    "Min": lambda a, *x: torch.stack(torch.broadcast_tensors(*x)).amin(0),
    "Max": lambda a, *x: torch.stack(torch.broadcast_tensors(*x)).amax(0),
    "Sum": lambda a, *x: sum(x), "Identity": lambda a, x: x, "Cast": cast,
    "Equal": lambda a, x, y: x == y, "Less": lambda a, x, y: x < y, "Greater": lambda a, x, y: x > y,
    "GreaterOrEqual": lambda a, x, y: x >= y, "LessOrEqual": lambda a, x, y: x <= y, "Not": lambda a, x: ~x,
    "IsNaN": lambda a, x: torch.isnan(x),
    "And": lambda a, x, y: x & y, "Or": lambda a, x, y: x | y, "Where": lambda a, c, x, y: torch.where(c, x, y),
    "MatMul": lambda a, x, y: x @ y, "Gemm": gemm, "Conv": conv, "ConvTranspose": conv_transpose,
    "MaxPool": max_pool, "AveragePool": average_pool,
    "GlobalAveragePool": lambda a, x: x.mean(tuple(range(2, x.dim())), keepdim=True),
    "BatchNormalization": batch_norm, "LayerNormalization": layer_norm,
    "LRN": lambda a, x: F.local_response_norm(x, a["size"], a.get("alpha", 1e-4), a.get("beta", 0.75), a.get("bias", 1.0)),
    "ReduceSum": reduce(lambda x, axes, keep: x.sum(axes, keep) if axes else x),
    "ReduceMean": reduce(lambda x, axes, keep: x.mean(axes, keep)),
    "ReduceL2": reduce(lambda x, axes, keep: x.pow(2).sum(axes, keep).sqrt()),
    "ReduceSumSquare": reduce(lambda x, axes, keep: x.pow(2).sum(axes, keep)),
    "ReduceMax": reduce(lambda x, axes, keep: x.amax(axes, keep)),
    "Softmax": lambda a, x: torch.softmax(x, a.get("axis", -1)),
    "LogSoftmax": lambda a, x: torch.log_softmax(x, a.get("axis", -1)),
    "SoftmaxCrossEntropyLoss": softmax_loss, "NegativeLogLikelihoodLoss": nll_loss,
    "Reshape": reshape, "Flatten": lambda a, x: x.reshape(int(np.prod(x.shape[:a.get("axis", 1)])), -1),
    "Squeeze": squeeze, "Unsqueeze": unsqueeze, "Slice": slices, "Gather": gather, "OneHot": one_hot,
    "Transpose": lambda a, x: x.permute(a.get("perm", list(range(x.dim()))[::-1])),
    "Concat": lambda a, *x: torch.cat(x, a["axis"]), "Split": split,
    "Expand": lambda a, x, shape: x.expand(torch.broadcast_shapes(x.shape, tuple(ints(shape)))),
    "Pad": lambda a, x, pads, value=None: padded(x, ints(pads)[:x.dim()], ints(pads)[x.dim():],
                                                 0.0 if value is None else float(value)),
    "CTCLoss": ctc_loss, "HardNegatives": hard_negatives, "MatchPriors": match_priors, "LpNormalization": lp_normalization,
    "ReduceMin": reduce(lambda x, axes, keep: x.amin(axes, keep)),
    "ArgMin": lambda a, x: torch.argmin(x, a.get("axis", 0), bool(a.get("keepdims", 1))),
    "Resize": resize, "LSTM": lstm, "GRU": gru,
    "TopK": lambda a, x, k: torch.topk(x, int(k.reshape(-1)[0]), a.get("axis", -1), bool(a.get("largest", 1))),
    "ScatterND": scatter_nd, "Shape": lambda a, x: torch.tensor(x.shape),
    "Tile": lambda a, x, times: x.repeat(ints(times)),
    "ConstantOfShape": lambda a, shape: torch.full(ints(shape), float(numpy_helper.to_array(a["value"])[0]),
                                                   dtype=torch.float64),
    **regions.OPERATORS,
}


# A file keeps them in f32; Ridge finds GELU in the graph and computes it with these.
EXACT = {float(np.float32(c)): c for c in (0.044715, math.sqrt(2 / math.pi), math.sqrt(0.5))}


def tensor(array):
    array = np.array(array)
    if array.dtype == np.float32 and array.size == 1 and float(array.reshape(-1)[0]) in EXACT:
        array = np.full(array.shape, EXACT[float(array.reshape(-1)[0])])
    return torch.tensor(array.astype(np.float64) if array.dtype.kind == "f" else array)


def reads(node):
    """Names that a node reads, those that the body of a loop takes from outside included."""
    names = set(node.input)
    for a in node.attribute:
        if a.type == onnx.AttributeProto.GRAPH:
            names.update(*[reads(inner) for inner in a.g.node])
    return names


def as_kind(t, kind):
    return t.to(kind) if t.is_floating_point() else t


def loop(a, values, kind, times, go_on, *states):
    """A loop that runs its full count, without outputs per turn: its states in the end."""
    body = a["body"]
    for turn in range(int(times)):
        inner = {**values, **{t.name: as_kind(tensor(numpy_helper.to_array(t)), kind) for t in body.initializer}}
        inner.update(zip([port.name for port in body.input], [torch.tensor(turn), go_on, *states]))
        names = [port.name for port in body.output]
        run(body, inner, names, kind)
        assert bool(inner[names[0]])
        states = [inner[name] for name in names[1:]]
    return states


def run(graph, values, names, kind=torch.float64):
    """What these outputs are computed from; what only judges quality is left out. Floats are of this kind."""
    needed, nodes = set(names), []
    for node in reversed(graph.node):
        if needed.intersection(node.output):
            needed.update(reads(node))
            nodes.append(node)
    for node in reversed(nodes):
        a = dict(attributes(node), _outputs=len(node.output))
        inputs = [values[name] if name else None for name in node.input]
        if node.op_type == "Constant":
            result = tensor(numpy_helper.to_array(a["value"]))
        elif node.op_type == "Loop":
            result = loop(a, values, kind, *inputs)
        elif node.op_type in OPERATORS:
            result = OPERATORS[node.op_type](a, *inputs)
        else:
            raise NotImplementedError(f"{node.op_type} (node {node.name})")
        results = result if isinstance(result, (tuple, list)) else [result]
        for name, r in zip(node.output, results):
            values[name] = as_kind(r, kind)


def read_case(folder):
    """Arrays by kind and name, and the graph."""
    arrays = {"input": {}, "loss": {}, "gradient": {}, "f32": {}}
    with open(os.path.join(folder, "index.txt"), encoding="utf-8") as index:
        for line in index:
            kind, number, name = line.rstrip("\n").split(" ", 2)
            arrays[kind][name] = np.load(os.path.join(folder, f"{kind}.{number}.npy"))
    return arrays, onnx.load(os.path.join(folder, "model.onnx")).graph


def disturbed(t, generator):
    """Floats of more than one element, each off by a random share; sizes and rates stay."""
    if generator is None or not t.is_floating_point() or t.numel() < 2:
        return t
    return t * (1 + DISTURBED_BY * (2 * torch.rand(t.shape, generator=generator, dtype=torch.float64) - 1))


def autograd(graph, arrays, kind, generator=None):
    """The loss and the gradients by the weights, computed in this kind of float."""
    made = lambda array: as_kind(disturbed(tensor(array), generator), kind)
    values = {name: made(array) for name, array in arrays["input"].items()}
    weights = {t.name: made(numpy_helper.to_array(t)) for t in graph.initializer}
    for name in arrays["gradient"]:
        if name in weights:
            values.pop(name, None)
        else:
            weights[name] = values.pop(name)
        weights[name].requires_grad_(True)
    values = {**values, **weights}
    for port in graph.input:
        of = port.type.tensor_type.elem_type
        if port.name in values and kind_of(of) == "b":
            values[port.name] = values[port.name].bool()
    run(graph, values, [graph.output[0].name], kind)
    loss = values[graph.output[0].name].reshape(())
    loss.backward()
    grads = {name: weights[name].grad for name in arrays["gradient"]}
    return loss.item(), {name: np.zeros_like(arrays["gradient"][name]) if g is None else g.double().numpy()
                         for name, g in grads.items()}


def largest_norm(gradients):
    return max(float(np.linalg.norm(g)) for g in gradients.values())


def worst_of(distances):
    """Of (name, distance) the largest; what is no number is the largest."""
    return max(((d if math.isfinite(d) else math.inf, name) for name, d in distances), default=(math.inf, "nothing"))


def compare_f64(arrays, theirs):
    largest = largest_norm(arrays["gradient"])
    if not largest > 0:
        return math.inf, "all gradients are zero"

    def distance(name, g):
        return float(np.linalg.norm(g - theirs[name])) / max(float(np.linalg.norm(theirs[name])), 1e-3 * largest)

    return worst_of([(name, distance(name, g)) for name, g in arrays["gradient"].items()])


def compare_f32(graph, arrays, theirs):
    """Of the allowance that PyTorch's own errors give each gradient, how much is taken at most, by which one, and
    after how many disturbances."""
    least = OF_LARGEST * largest_norm(theirs)
    errors = {name: float(np.linalg.norm(g - theirs[name])) for name, g in arrays["f32"].items()}
    allowed = dict.fromkeys(errors, least)
    generator = torch.Generator().manual_seed(1)
    for turn in range(1 + DISTURBANCES):
        own = autograd(graph, arrays, torch.float32, generator if turn else None)[1]
        for name in errors:
            allowed[name] = max(allowed[name], TIMES_THEIRS * float(np.linalg.norm(own[name] - theirs[name])))
        share, name = worst_of([(name, error / allowed[name]) for name, error in errors.items()])
        if share <= 1:
            break
    return share, name, turn


def compare(program, spec, batch, in_f32):
    """Prints a row; whether all is within the bounds."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([program, spec, str(batch), folder] + ["f32"] * in_f32, check=True)
        arrays, graph = read_case(folder)
    expected = float(next(iter(arrays["loss"].values())).reshape(-1)[0])
    loss, theirs = autograd(graph, arrays, torch.float64)
    apart = abs(expected - loss) / max(abs(expected), 1e-30)
    worst, name = compare_f64(arrays, theirs)
    print(f"{spec:56} {len(theirs):7} {apart:9.1e} {worst:14.1e}  {name:44}", end="")
    good = worst <= BOUND and apart <= BOUND
    if in_f32:
        share, name, turns = compare_f32(graph, arrays, theirs)
        print(f" {100 * share:4.0f} % {turns:4}  {name}", end="")
        good = good and share <= 1
    print("" if good else "  WRONG", flush=True)
    return good


def ratio_of_draw(program, spec, batch, draw):
    """Ridge's error in f32 to PyTorch's, in the geometric mean over the weights; and whether the strict rule, at most
    twice PyTorch's or 1e-5 of the largest gradient's norm, holds for every weight."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([program, spec, str(batch), folder, str(draw)], check=True)
        arrays, graph = read_case(folder)
    arrays["gradient"] = arrays["f32"]
    exact = autograd(graph, arrays, torch.float64)[1]
    theirs = autograd(graph, arrays, torch.float32)[1]
    largest = largest_norm(exact)
    logs, strict = [], True
    for name, g in exact.items():
        ours = float(np.linalg.norm(arrays["f32"][name] - g))
        other = float(np.linalg.norm(theirs[name] - g))
        strict = strict and ours <= max(TIMES_THEIRS * other, OF_LARGEST * largest)
        logs.append(math.log(max(ours, LEAST_ERROR * largest) / max(other, LEAST_ERROR * largest)))
    return math.exp(sum(logs) / len(logs)), strict


def compare_draws(program, forms, draws):
    """A row per network; whether Ridge is as exact as PyTorch."""
    print(f"\nerrors in f32, Ridge's / PyTorch's, {draws} draws of weights and samples")
    print(f"{'workload':56} {'mean':>6} {'least':>6} {'most':>6} {'strict rule':>12}")
    every = []
    for spec, batch in forms:
        ratios, strict = zip(*(ratio_of_draw(program, spec, batch, 1 + k) for k in range(draws)))
        every += ratios
        mean = math.exp(sum(map(math.log, ratios)) / draws)
        print(f"{spec:56} {mean:6.2f} {min(ratios):6.2f} {max(ratios):6.2f} {sum(strict):6} of {draws:2}", flush=True)
    low, middle, high = np.quantile(every, [0.25, 0.5, 0.75])
    good = bool(middle <= WORSE) or len(every) < ENOUGH
    print(f"median {middle:.2f}, quartiles {low:.2f} and {high:.2f}; of {len(every)} draws Ridge is beyond twice PyTorch's "
          f"in {sum(r > 2 for r in every)}, PyTorch beyond twice Ridge's in {sum(r < 0.5 for r in every)}"
          + ("" if good else "  WORSE"))
    return good


def tiny_forms(program):
    """(spec, batch) of all workloads that learn, as far as they can be compared."""
    lines = subprocess.run([program, "list"], check=True, capture_output=True, text=True).stdout.split("\n")
    for line in filter(None, lines):
        spec, batch = line.split(" ")
        name = spec.split(":")[0]
        if name in LEFT_OUT:
            print(f"{spec:56} not compared: {LEFT_OUT[name]}")
            continue
        yield spec + (",dropout=none" if name in WITHOUT_DROPOUT else ""), int(batch)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--program", default="build/release/tests/oracle/gradients")
    parser.add_argument("--f32", action="store_true", help="of the specs given, too")
    parser.add_argument("--draws", type=int, help=f"of weights and samples, in f32; default {DRAWS}, of specs given 0")
    parser.add_argument("specs", nargs="*", help="SPEC or SPEC@BATCH; none: the tiny forms, and some at full size")
    options = parser.parse_args()
    print(f"{'workload':56} {'weights':>7} {'loss':>9} {'worst gradient':>14}  {'':44} {'f32':>6} {'runs':>4}")
    rows = [(*(s.split("@") + ["0"])[:2], options.f32) for s in options.specs]
    forms = [(spec, int(batch)) for spec, batch, _ in rows]
    draws = options.draws or 0
    if not rows:
        forms = list(tiny_forms(options.program))
        rows = [(spec, batch, True) for spec, batch in forms] + [(spec, batch, False) for spec, batch in FULL]
        draws = DRAWS if options.draws is None else options.draws
    bad = 0
    for spec, batch, in_f32 in rows:
        try:
            bad += not compare(options.program, spec, batch, in_f32)
        except (NotImplementedError, subprocess.CalledProcessError) as error:
            print(f"{spec:56} {error}", flush=True)
            bad += 1
    if draws:
        bad += not compare_draws(options.program, forms, draws)
    sys.exit(bad > 0)


if __name__ == "__main__":
    main()
