# SPDX-License-Identifier: Apache-2.0
"""A PyTorch module of an ONNX file that Ridge wrote: the same network, operator by operator, as
somebody who knows PyTorch would write it. Convolutions, products, norms and LSTMs are torch.nn's own
modules with the file's weights, batch norms are folded into convolutions, attention and GELU are
one call. The result is an fx.GraphModule, straight code that torch.compile traces."""
import math
import operator

import numpy as np
import onnx
import torch
from onnx import numpy_helper
from torch import fx, nn
from torch.nn import functional as F
from torch.nn.utils.fusion import fuse_conv_bn_eval

ONNX_FLOAT, ONNX_BOOL = 1, 9
INTEGERS = {5: torch.int16, 3: torch.int8, 6: torch.int32, 7: torch.int64, 2: torch.uint8}
# Inputs that say how an operator works: numbers when the network is made, not tensors.
NUMBERS = {"Reshape": [1], "Slice": [1, 2, 3, 4], "Expand": [1], "ReduceSum": [1], "TopK": [1],
           "OneHot": [1, 2], "Unsqueeze": [1], "CumSum": [1]}
# One number is a factor or a bound of an elementwise operator, whatever the tensor's type.
ELEMENTWISE = {"Add", "Sub", "Mul", "Div", "Pow", "Equal", "Less", "GreaterOrEqual", "Where"}
BINARY = {"Add": operator.add, "Sub": operator.sub, "Mul": operator.mul, "Div": operator.truediv,
          "Pow": operator.pow, "Equal": operator.eq, "Less": operator.lt,
          "GreaterOrEqual": operator.ge, "And": torch.logical_and, "Or": torch.logical_or}
SEVERAL = {"LSTM", "TopK"}  # outputs
UNARY = {"Relu": F.relu, "Sigmoid": torch.sigmoid, "Tanh": torch.tanh, "Not": torch.logical_not}
# What Ridge exports for one call of PyTorch: names are bound, numbers are compared.
GELU = ("Mul", ("Mul", "x", 0.5),
        ("Add", ("Tanh", ("Mul", ("Add", "x", ("Mul", ("Pow", "x", 3.0), 0.044715)),
                          math.sqrt(2 / math.pi))), 1.0))
ATTENTION = ("MatMul",
             ("Softmax", ("Add", ("Mul", ("MatMul", "q", ("Transpose", "k")), "scale"), "mask")),
             "v")


# ---- operators ----

def reshape(x, shape, allowzero=0):
    return x.reshape([x.shape[k] if d == 0 and not allowzero else d for k, d in enumerate(shape)])


def transpose(x, perm):
    return x.permute(perm)


def flatten(x, axis=1):
    return x.reshape(math.prod(x.shape[:axis]), -1)


def unsqueeze(x, axes):
    for axis in sorted(axes):
        x = x.unsqueeze(axis)
    return x


def concat(*parts, axis):
    return torch.cat(parts, axis)


def expand(x, shape):
    return x.expand(np.broadcast_shapes(tuple(x.shape), tuple(shape)))


def cut(x, starts, ends, axes=None, steps=None):
    where = [slice(None)] * x.dim()
    for k, start in enumerate(starts):
        axis = axes[k] if axes else k
        where[axis] = slice(start, min(ends[k], x.shape[axis]), steps[k] if steps else 1)
    return x[tuple(where)]


def gather(x, index, axis=0):
    """Rows of a table by PyTorch's own look-up; of anything else by index."""
    if axis == 0 and x.dim() == 2:
        return F.embedding(index, x)
    rows = x.index_select(axis, index.reshape(-1))
    return rows.reshape(list(x.shape[:axis]) + list(index.shape) + list(x.shape[axis + 1:]))


def one_hot(index, depth, values, dtype, axis=-1):
    """The comparison, which a graph can capture; torch's one_hot looks at the values first."""
    if values != [0, 1] or axis != -1:
        raise NotImplementedError("OneHot of other values than 0 and 1, or along another axis")
    return (index.unsqueeze(-1) == torch.arange(depth, device=index.device)).to(dtype)


def softmax(x, axis=-1):
    return F.softmax(x, axis)


def arg_max(x, axis=0, keepdims=1):
    return torch.argmax(x, axis, bool(keepdims))


def reduce_sum(x, axes=None, keepdims=1):
    every = list(range(x.dim()))
    return torch.sum(x, axes or every, bool(keepdims), dtype=x.dtype)


def reduce_l2(x, axes=None, keepdims=1):
    return torch.linalg.vector_norm(x, 2, axes, bool(keepdims))


def cum_sum(x, axis):
    return torch.cumsum(x, axis)


def top_k(x, k, axis=-1, largest=1):
    return torch.topk(x, k[0], axis, bool(largest))


def scatter_elements(x, index, updates, axis=0):
    return x.scatter(axis, index, updates)


def global_average_pool(x):
    return x.mean(list(range(2, x.dim())), keepdim=True)


def ceil_size(size, kernel, stride):
    return -((kernel - size) // stride) + 1


def max_pool(x, kernel_shape, strides=(1, 1), pads=(0, 0, 0, 0)):
    """Padding at the ends alone is what PyTorch calls ceil mode, if the sizes agree."""
    top, left, bottom, right = pads
    if (top, left) == (bottom, right):
        return F.max_pool2d(x, kernel_shape, strides, (top, left))
    wanted = [(x.shape[2 + k] + pads[k] + pads[2 + k] - kernel_shape[k]) // strides[k] + 1
              for k in range(2)]
    ceil = [ceil_size(x.shape[2 + k], kernel_shape[k], strides[k]) for k in range(2)]
    if (top, left) == (0, 0) and wanted == ceil:
        return F.max_pool2d(x, kernel_shape, strides, ceil_mode=True)
    return F.max_pool2d(F.pad(x, (left, right, top, bottom), value=-math.inf), kernel_shape,
                        strides)


def average_pool(x, kernel_shape, strides=(1, 1), pads=(0, 0, 0, 0), count_include_pad=0):
    if tuple(pads[:2]) != tuple(pads[2:]):
        raise NotImplementedError("AveragePool with other pads at the end than at the beginning")
    return F.avg_pool2d(x, kernel_shape, strides, tuple(pads[:2]),
                        count_include_pad=bool(count_include_pad))


def attention(q, k, v, mask, scale):
    """PyTorch's fused attention, from 2.1 on; before, what it stands for."""
    try:
        return F.scaled_dot_product_attention(q, k, v, attn_mask=mask, scale=scale)
    except (AttributeError, TypeError):
        return torch.matmul(F.softmax(torch.matmul(q, k.transpose(-1, -2)) * scale + mask, -1), v)


def gelu(x):
    return F.gelu(x, approximate="tanh")


OPERATORS = {"Reshape": reshape, "Transpose": transpose, "Flatten": flatten,
             "Unsqueeze": unsqueeze, "Concat": concat, "Expand": expand, "Slice": cut,
             "Gather": gather, "Softmax": softmax, "ArgMax": arg_max, "ReduceSum": reduce_sum,
             "ReduceL2": reduce_l2, "CumSum": cum_sum, "TopK": top_k, "MaxPool": max_pool,
             "ScatterElements": scatter_elements, "GlobalAveragePool": global_average_pool,
             "AveragePool": average_pool, "MatMul": torch.matmul, "Where": torch.where,
             **BINARY, **UNARY}


# ---- modules ----

class Lstm(nn.Module):
    """nn.LSTM with ONNX's weights and outputs: Y [T, directions, N, H], last h, last c."""

    def __init__(self, w, r, b, directions, hidden):
        super().__init__()
        self.directions, self.hidden = directions, hidden
        self.lstm = nn.LSTM(w.shape[2], hidden, bidirectional=directions == 2)
        for k in range(directions):
            end = "_l0" + ("_reverse" if k else "")
            for name, value in (("weight_ih", w[k]), ("weight_hh", r[k]),
                                ("bias_ih", b[k][:4 * hidden]), ("bias_hh", b[k][4 * hidden:])):
                getattr(self.lstm, name + end).data = gates(value)
        self.lstm.flatten_parameters()

    def forward(self, x):
        y, (h, c) = self.lstm(x)
        y = y.reshape(y.shape[0], y.shape[1], self.directions, self.hidden)
        return y.transpose(1, 2), h, c


def gates(x):
    """ONNX's order i, o, f, c becomes PyTorch's i, f, c, o."""
    i, o, f, c = x.chunk(4)
    return torch.cat([i, f, c, o]).contiguous()


if hasattr(torch, "compiler"):  # cuDNN's LSTM is left as it is: unrolled it would be far slower
    Lstm.forward = torch.compiler.disable(Lstm.forward)


def convolution(weight, bias, attributes):
    pads = attributes.get("pads", [0, 0, 0, 0])
    groups, strides = attributes.get("group", 1), attributes.get("strides", [1, 1])
    even = pads[:2] == pads[2:]
    conv = nn.Conv2d(weight.shape[1] * groups, weight.shape[0], tuple(weight.shape[2:]),
                     tuple(strides), tuple(pads[:2]) if even else 0,
                     tuple(attributes.get("dilations", [1, 1])), groups, bias is not None)
    conv.weight.data = weight.clone()
    if bias is not None:
        conv.bias.data = bias.clone()
    return conv.eval(), None if even else (pads[1], pads[3], pads[0], pads[2])


def batch_norm(weight, bias, mean, variance, epsilon):
    norm = nn.BatchNorm2d(len(weight), eps=epsilon)
    norm.weight.data, norm.bias.data = weight.clone(), bias.clone()
    norm.running_mean, norm.running_var = mean.clone(), variance.clone()
    return norm.eval()


def linear(weight, bias):
    """Of ONNX's [K, N]; PyTorch keeps [N, K]."""
    module = nn.Linear(weight.shape[0], weight.shape[1], bias is not None)
    module.weight.data = weight.t().contiguous()
    if bias is not None:
        module.bias.data = bias.clone()
    return module


def layer_norm(weight, bias, epsilon):
    norm = nn.LayerNorm(tuple(weight.shape), eps=epsilon)
    norm.weight.data, norm.bias.data = weight.clone(), bias.clone()
    return norm


# ---- translation ----

def attributes_of(node):
    values = {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}
    return {name: v.decode() if isinstance(v, bytes) else list(v) if isinstance(v, (list, tuple))
            else v for name, v in values.items()}


class Translator:
    """Node by node; `made` has a node of fx for each tensor, `known` the tensors that are constant."""

    def __init__(self, model, dtype):
        self.graph, self.dtype = model.graph, dtype
        self.fx, self.root = fx.Graph(), nn.Module()
        self.known = {i.name: torch.from_numpy(numpy_helper.to_array(i).copy())
                      for i in model.graph.initializer}
        self.made, self.users = {}, {}
        self.producer = {name: node for node in model.graph.node for name in node.output}
        for node in model.graph.node:
            for name in node.input:
                self.users[name] = self.users.get(name, 0) + 1
        for output in model.graph.output:
            self.users[output.name] = self.users.get(output.name, 0) + 1

    # -- tensors --

    def tensor(self, name):
        """Made, or a constant that becomes a buffer."""
        if name not in self.made:
            buffer = f"constant{len(self.made)}"
            self.root.register_buffer(buffer, self.known[name])
            self.made[name] = self.fx.get_attr(buffer)
        return self.made[name]

    def argument(self, node, k):
        name = node.input[k]
        if k in NUMBERS.get(node.op_type, []) and name in self.known:
            return self.known[name].tolist()
        if node.op_type in ELEMENTWISE and name in self.known and self.known[name].dim() == 0:
            return self.known[name].item()
        return None if not name else self.tensor(name)

    def add_module(self, node, module, x):
        name = f"m{len(self.made)}_{node.op_type}"
        self.root.add_module(name, module)
        return self.fx.call_module(name, (x,))

    def is_known(self, names):
        return all(not name or name in self.known for name in names)

    # -- patterns --

    def match(self, pattern, name, found):
        """Whether a tensor is what the pattern says; `found` gets the names that it binds."""
        if isinstance(pattern, str):
            return found.setdefault(pattern, name) == name
        if isinstance(pattern, float):
            value = self.known.get(name)
            return value is not None and value.numel() == 1 and math.isclose(
                value.item(), pattern, rel_tol=1e-5)
        node = self.producer.get(name)
        return node is not None and node.op_type == pattern[0] and \
            len(node.input) == len(pattern) - 1 and \
            all(self.match(p, n, found) for p, n in zip(pattern[1:], node.input))

    def whole(self, node):
        """One call for what several nodes make of tensors that are there already, or None."""
        found, out = {}, node.output[0]
        if node.op_type == "Mul" and self.match(GELU, out, found):
            return self.fx.call_function(gelu, (self.made[found["x"]],))
        found = {}
        if node.op_type == "MatMul" and self.match(ATTENTION, out, found) and \
                found["scale"] in self.known and self.swaps_last(found["k"]):
            q, k, v, mask = (self.tensor(found[name]) for name in ("q", "k", "v", "mask"))
            return self.fx.call_function(
                attention, (q, k, v, mask, self.known[found["scale"]].item()))
        return None

    def swaps_last(self, name):
        """Whether the one Transpose of a tensor's that follows swaps its last two dimensions."""
        perms = [attributes_of(n)["perm"] for n in self.graph.node
                 if n.op_type == "Transpose" and n.input[0] == name]
        return perms == [[0, 1, 3, 2]]

    # -- operators with weights --

    def alone(self, name, kind):
        """The node of that kind that makes a tensor for one user only, or None."""
        node = self.producer.get(name)
        return node if node and node.op_type == kind and self.users[name] == 1 else None

    def conv(self, node, norm=None):
        bias = self.known[node.input[2]] if len(node.input) > 2 else None
        module, pads = convolution(self.known[node.input[1]], bias, attributes_of(node))
        if norm is not None:
            module = fuse_conv_bn_eval(module, norm)
        x = self.made[node.input[0]]
        return self.add_module(node, module, self.fx.call_function(F.pad, (x, pads)) if pads else x)

    def norm(self, node):
        factors = [self.known[name] for name in node.input[1:]]
        module = batch_norm(*factors, attributes_of(node).get("epsilon", 1e-5))
        before = self.alone(node.input[0], "Conv")
        if before:
            return self.conv(before, module)
        return self.add_module(node, module, self.made[node.input[0]])

    def product(self, node, bias=None):
        module = linear(self.known[node.input[1]], bias)
        return self.add_module(node, module, self.made[node.input[0]])

    def biased(self, node):
        """An Add that a product's module does, or None."""
        for x, bias in (node.input, reversed(node.input)):
            before, row = self.alone(x, "MatMul"), self.known.get(bias)
            if before and row is not None and row.dim() == 1 and before.input[1] in self.known and \
                    len(row) == self.known[before.input[1]].shape[-1]:
                return self.product(before, row)
        return None

    def lstm(self, node):
        names, attributes = node.input, attributes_of(node)
        if any(names[4:]) or attributes.get("direction", "forward") == "reverse":
            raise NotImplementedError("LSTM with lengths, first states or backward only")
        directions = 2 if attributes.get("direction") == "bidirectional" else 1
        w, r = self.known[names[1]], self.known[names[2]]
        hidden = attributes["hidden_size"]
        b = self.known[names[3]] if len(names) > 3 else torch.zeros(directions, 8 * hidden)
        return self.add_module(node, Lstm(w, r, b, directions, hidden), self.made[names[0]])

    def with_weights(self, node):
        """The module of a node whose weights are constant, or None."""
        kind = node.op_type
        if kind == "Conv":
            return self.conv(node)
        if kind == "BatchNormalization":
            return self.norm(node)
        if kind == "LSTM":
            return self.lstm(node)
        if kind == "LayerNormalization":
            weights = [self.known[name] for name in node.input[1:]]
            module = layer_norm(*weights, attributes_of(node).get("epsilon", 1e-5))
            return self.add_module(node, module, self.made[node.input[0]])
        if kind == "MatMul" and node.input[1] in self.known and node.input[0] in self.made and \
                self.known[node.input[1]].dim() == 2:
            return self.product(node)
        return self.biased(node) if kind == "Add" else None

    # -- all --

    def cast(self, node):
        to = attributes_of(node)["to"]
        types = {ONNX_FLOAT: self.dtype, ONNX_BOOL: torch.bool, **INTEGERS}
        return self.fx.call_method("to", (self.tensor(node.input[0]), types[to]))

    def call(self, node):
        if node.op_type == "Cast":
            return self.cast(node)
        if node.op_type == "Identity":
            return self.tensor(node.input[0])
        arguments = tuple(self.argument(node, k) for k in range(len(node.input)))
        if node.op_type == "OneHot":
            return self.fx.call_function(one_hot, arguments + (self.dtype,), attributes_of(node))
        ignored = {"TopK": {"sorted"}, "MaxPool": {"dilations", "ceil_mode"},
                   "AveragePool": {"ceil_mode"}}.get(node.op_type, set())
        attributes = {k: v for k, v in attributes_of(node).items() if k not in ignored}
        return self.fx.call_function(OPERATORS[node.op_type], arguments, attributes)

    def fold(self, node):
        """A node of constants alone is computed here."""
        arguments = [self.known[n].tolist() if k in NUMBERS.get(node.op_type, [])
                     else self.known[n] for k, n in enumerate(node.input)]
        if node.op_type == "Identity":
            self.known[node.output[0]] = arguments[0]
        else:
            self.known[node.output[0]] = OPERATORS[node.op_type](*arguments, **attributes_of(node))

    def add(self, node):
        if self.is_known(node.input) and node.op_type in set(OPERATORS) | {"Identity"}:
            self.fold(node)
            return
        made = self.whole(node) or self.with_weights(node) or self.call(node)
        if node.op_type not in SEVERAL:
            self.made[node.output[0]] = made
            return
        for k, name in enumerate(node.output):
            if name:
                self.made[name] = self.fx.call_function(operator.getitem, (made, k))

    def inputs(self):
        for k, meta in enumerate(self.graph.input):
            x = self.fx.placeholder(f"input{k}")
            if meta.type.tensor_type.elem_type == ONNX_FLOAT and self.dtype != torch.float32:
                x = self.fx.call_method("to", (x, self.dtype))
            self.made[meta.name] = x

    def outputs(self):
        results = []
        for meta in self.graph.output:
            x = self.tensor(meta.name)
            if meta.type.tensor_type.elem_type == ONNX_FLOAT and self.dtype != torch.float32:
                x = self.fx.call_method("to", (x, torch.float32))
            results.append(x)
        self.fx.output(tuple(results))

    def module(self):
        self.inputs()
        for node in self.graph.node:
            if node.op_type not in set(OPERATORS) | {"Conv", "BatchNormalization", "LSTM", "Cast",
                                                     "LayerNormalization", "OneHot", "Identity"}:
                raise NotImplementedError(f"{node.op_type} has no translation")
            self.add(node)
        self.outputs()
        module = fx.GraphModule(self.root, self.fx, "Network")
        module.graph.eliminate_dead_code()
        return fx.GraphModule(module, module.graph, "Network").eval().to(self.dtype)


def of_file(path, dtype=torch.float32):
    """The module; its inputs and outputs keep f32, as those of Ridge do."""
    with torch.no_grad():
        return Translator(onnx.load(path), dtype).module()


def encoder_of(path, to, output="memory_layer"):
    """Writes what leads to one tensor of a file as a file of its own, for sentences that all have
    their full length: LSTMs lose their lengths, which PyTorch takes from the host only."""
    model = onnx.load(path)
    graph, wanted, nodes = model.graph, {output}, []
    for node in reversed(graph.node):
        if not wanted.intersection(node.output):
            continue
        if node.op_type == "LSTM" and len(node.input) > 4:
            node.input[4] = ""
        wanted.update(node.input)
        nodes.insert(0, node)
    last = [d for d in onnx.shape_inference.infer_shapes(model).graph.value_info
            if d.name == output]
    made = onnx.helper.make_graph(
        nodes, "encoder", [i for i in graph.input if i.name in wanted],
        last or [onnx.helper.make_tensor_value_info(output, ONNX_FLOAT, None)],
        [i for i in graph.initializer if i.name in wanted])
    onnx.save(onnx.helper.make_model(made, opset_imports=model.opset_import,
                                     ir_version=model.ir_version), to)
