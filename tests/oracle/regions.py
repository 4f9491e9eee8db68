# SPDX-License-Identifier: Apache-2.0
"""Operators of detectors with two stages for gradients.py: which boxes are kept, which places are drawn,
and what is cut out of a map. Written from their definitions; PyTorch has none of them in its core."""
import math

import numpy as np
import torch

MASK64, MASK32 = (1 << 64) - 1, np.uint64(0xFFFFFFFF)


def words(seed, counters):
    """Philox 4x32-10 (Salmon et al., SC 2011): four words for each counter."""
    i = np.asarray(counters, dtype=np.uint64)
    c = [i & MASK32, i >> np.uint64(32), np.zeros_like(i), np.zeros_like(i)]
    key = [seed & 0xFFFFFFFF, seed >> 32]
    for _ in range(10):
        first, second = c[0] * np.uint64(0xD2511F53), c[2] * np.uint64(0xCD9E8D57)
        c = [(second >> np.uint64(32)) ^ c[1] ^ np.uint64(key[0]), second & MASK32,
             (first >> np.uint64(32)) ^ c[3] ^ np.uint64(key[1]), first & MASK32]
        key = [(key[0] + 0x9E3779B9) & 0xFFFFFFFF, (key[1] + 0xBB67AE85) & 0xFFFFFFFF]
    return np.stack(c, -1)


def stream(seed, step):
    """Of an operator that draws, at a step (engine/ops/lib/dropout.h)."""
    mixed = seed * 0x9E3779B97F4A7C15 & MASK64
    mixed ^= mixed >> 32
    return mixed + step * 0xBF58476D1CE4E5B9 & MASK64


def sample_targets(a, classes, step):
    """At most `positives` places of a positive class, then of class 0, those with the least lots."""
    count = a.get("count", 256)
    most, ratio = a.get("positives", count // 2), a.get("ratio", 0.0)
    rows, places = classes.shape
    seed = stream(a.get("seed", 0), int(step.reshape(-1)[0]))
    first, end = a.get("first", 0) * places, (a.get("first", 0) + rows) * places
    lots = words(seed, range(first // 4, -(-end // 4))).reshape(-1)[first % 4:][:rows * places].reshape(rows, places)
    chosen = torch.zeros(rows, count, dtype=torch.int64)
    kinds = torch.full((rows, count), -1, dtype=torch.int64)
    for n in range(rows):
        order = np.argsort(lots[n], kind="stable")
        positive = [p for p in order if classes[n, p] > 0][:most]
        room = count - len(positive)
        room = min(room, int(ratio * len(positive))) if ratio > 0 else room
        taken = positive + [p for p in order if classes[n, p] == 0][:room]
        chosen[n, :len(taken)] = torch.tensor(np.array(taken, dtype=np.int64))
        kinds[n, :len(taken)] = classes[n, chosen[n, :len(taken)]]
    return chosen, kinds


def overlaps(box, others):
    low, high = torch.maximum(box[:2], others[:, :2]), torch.minimum(box[2:], others[:, 2:])
    both = (high - low).clamp(min=0).prod(-1)
    union = (box[2:] - box[:2]).prod() + (others[:, 2:] - others[:, :2]).prod(-1) - both
    return torch.where((both > 0) & (union > 0), both / union, torch.zeros_like(both))


def non_max_suppression(a, boxes, scores, most=None, iou=None, least=None):
    """Rows [image, class, box]: the best that overlap no better one by more than iou."""
    assert not a.get("center_point_box", 0)
    boxes, scores = boxes.detach(), scores.detach()
    boxes = torch.cat([torch.minimum(boxes[..., :2], boxes[..., 2:]), torch.maximum(boxes[..., :2], boxes[..., 2:])], -1)
    limit = float(iou.reshape(-1)[0]) if iou is not None else 0.0
    rows = []
    for n in range(scores.shape[0]):
        for c in range(scores.shape[1]):
            free = torch.ones(scores.shape[2], dtype=torch.bool)
            if least is not None:
                free = scores[n, c] > float(least.reshape(-1)[0])
            for p in torch.argsort(-scores[n, c], stable=True).tolist():
                if not free[p]:
                    continue
                rows.append([n, c, p])
                if sum(r[:2] == [n, c] for r in rows) >= int(most.reshape(-1)[0]):
                    break
                free &= overlaps(boxes[n, p], boxes[n]) <= limit
    return torch.tensor(rows, dtype=torch.int64).reshape(-1, 3)


def scatter_elements(a, x, ids, updates):
    assert a.get("reduction", b"none") == b"none"
    return x.scatter(a.get("axis", 0), ids.long(), updates)


def round_half_away(x):
    return int(math.floor(abs(x) + 0.5)) * (1 if x >= 0 else -1)


def max_roi_pool(a, x, rois):
    """Corners rounded to whole elements; bins as Caffe computes them, in float."""
    scale, result = a.get("spatial_scale", 1.0), []
    for roi in rois.detach().tolist():
        spans = []
        for axis in (1, 0): # y, x
            low, high = round_half_away(roi[1 + axis] * scale), round_half_away(roi[3 + axis] * scale)
            bins, limit = a["pooled_shape"][1 - axis], x.shape[3 - axis]
            size = np.float32(max(high - low + 1, 1)) / np.float32(bins)
            spans.append([[min(max(low + int(edge), 0), limit) for edge in
                           (np.floor(np.float32(b) * size), np.ceil(np.float32(b + 1) * size))] for b in range(bins)])
        plane = x[int(roi[0])]
        cells = [plane[:, y0:y1, x0:x1].amax((1, 2)) if y0 < y1 and x0 < x1 else torch.zeros_like(plane[:, 0, 0])
                 for y0, y1 in spans[0] for x0, x1 in spans[1]]
        result.append(torch.stack(cells, -1).reshape(-1, *a["pooled_shape"]))
    return torch.stack(result)


def axis_samples(low, high, bins, size):
    """One sample in the middle of each bin: the two elements round it, the second one's weight, and whether it is inside."""
    at = low + (high - low) / bins * (torch.arange(bins, dtype=torch.float64) + 0.5)
    inside = (at >= -1) & (at <= size)
    at = at.clamp(0, size - 1)
    first = at.floor().long().clamp(max=size - 1)
    return first, (first + 1).clamp(max=size - 1), at - first, inside


def roi_align(a, x, rois, images):
    assert a.get("mode", b"avg") == b"avg" and a.get("sampling_ratio", 0) == 1
    shift = 0.5 if a.get("coordinate_transformation_mode", b"half_pixel") == b"half_pixel" else 0.0
    scale, result = a.get("spatial_scale", 1.0), []
    rois = rois.detach() * scale - shift
    for roi, image in zip(rois, images.reshape(-1).tolist()):
        y0, y1, v, in_y = axis_samples(roi[1], roi[3], a.get("output_height", 1), x.shape[2])
        x0, x1, u, in_x = axis_samples(roi[0], roi[2], a.get("output_width", 1), x.shape[3])
        rows = x[image][:, y0] * (1 - v)[:, None] + x[image][:, y1] * v[:, None]
        y = rows[:, :, x0] * (1 - u) + rows[:, :, x1] * u
        result.append(y * (in_y[:, None] & in_x[None]))
    return torch.stack(result)


OPERATORS = {"SampleTargets": sample_targets, "NonMaxSuppression": non_max_suppression,
             "ScatterElements": scatter_elements, "MaxRoiPool": max_roi_pool, "RoiAlign": roi_align,
             "StopGradient": lambda a, x: x.detach(), "ArgMax": lambda a, x: torch.argmax(
                 x, a.get("axis", 0), bool(a.get("keepdims", 1)))}
