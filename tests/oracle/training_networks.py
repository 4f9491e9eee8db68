# SPDX-License-Identifier: Apache-2.0
"""Networks in PyTorch for tests/oracle/training_turns.py: those that ONNX can say, made from the graph
of their loss, and two that are written out."""
import math
import os

import numpy as np


def symmetric(pads, rank):
    return pads[:rank] == pads[rank:]


class Source:
    """Python statements for the nodes of an ONNX graph; values are v0, v1 ..., weights p[k]."""

    def __init__(self, graph, folder, weights):
        import onnx
        from onnx import numpy_helper
        self.onnx, self.lines = onnx, []
        self.constants = {t.name: numpy_helper.to_array(t) for t in graph.initializer}
        self.names, self.params, self.buffers, self.inputs = {}, [], [], []
        self.numbers, self.statistics = 0, set()
        needed, nodes = {graph.output[0].name}, []
        for node in reversed(graph.node):
            if needed.intersection(node.output):
                needed.update(node.input)
                nodes.append(node)
        for node in nodes:  # what else is constant; all other arrays of floats are weights
            if node.op_type == "BatchNormalization":
                self.statistics.update(node.input[3:5])
            elif node.op_type == "Unsqueeze" and node.name.endswith(":csr/Unsqueeze_1"):
                self.statistics.add(node.input[0])
        for port in graph.input:
            if port.name in needed and port.name not in self.constants:
                self.names[port.name] = f"x[{len(self.inputs)}]"
                self.inputs.append(np.load(os.path.join(folder, weights[port.name])))
        self.nodes = list(reversed(nodes))
        self.by_output = {name: n for n in self.nodes for name in n.output}
        for node in self.nodes:
            if ":csr/" not in node.name:  # a part of a sparse product
                self.emit(node)
        self.lines.append(f"return {self.name(graph.output[0].name)}.reshape(())")

    def name(self, value):
        """What stands for a value; a float constant that is not a number becomes a weight."""
        if value in self.names:
            return self.names[value]
        array = self.constants[value]
        kind = ("b", self.buffers) if array.dtype.kind != "f" or array.size < 2 or \
            value in self.statistics else ("p", self.params)
        self.names[value] = f"{kind[0]}[{len(kind[1])}]"
        kind[1].append((value, array))
        return self.names[value]

    def ints(self, value):
        return [int(v) for v in self.constants[value].reshape(-1)]

    def emit(self, node):
        a = {k.name: self.onnx.helper.get_attribute_value(k) for k in node.attribute}
        if node.op_type == "Constant":
            self.constants[node.output[0]] = self.onnx.numpy_helper.to_array(a["value"])
            return
        text = self.sparse(node) if node.op_type == "ScatterND" else \
            getattr(self, "op_" + node.op_type.lower())(node, a)
        result = f"v{self.numbers}"
        self.numbers += 1
        self.names[node.output[0]] = result
        self.lines.append(f"{result} = {text}")

    def of(self, node, *at):
        return [self.name(node.input[k]) for k in (at or range(len(node.input)))]

    def __getattr__(self, kind):
        simple = {"relu": "F.relu({})", "sigmoid": "torch.sigmoid({})", "softplus": "F.softplus({})",
                  "matmul": "{} @ {}", "add": "{} + {}", "sub": "{} - {}", "mul": "{} * {}",
                  "div": "{} / {}", "less": "{} < {}", "greaterorequal": "{} >= {}",
                  "where": "torch.where({}, {}, {})", "tanh": "torch.tanh({})",
                  "neg": "-{}", "log": "torch.log({})", "exp": "torch.exp({})", "identity": "{}",
                  "globalaveragepool": "{}.mean((2, 3), keepdim=True)"}
        kind = kind.removeprefix("op_")
        if kind not in simple:
            raise NotImplementedError(f"operator {kind} has no line of PyTorch here")
        return lambda node, a: simple[kind].format(*self.of(node))

    def op_conv(self, node, a):
        x, *rest = self.of(node)
        pads = list(a.get("pads", [0, 0, 0, 0]))
        if not symmetric(pads, 2):
            x, pads = f"F.pad({x}, {[pads[1], pads[3], pads[0], pads[2]]})", [0, 0, 0, 0]
        return (f"F.conv2d({x}, {rest[0]}, {rest[1] if len(rest) > 1 else None}, "
                f"{list(a.get('strides', [1, 1]))}, {pads[:2]}, 1, {a.get('group', 1)})")

    def pool(self, node, a, call, padding, more):
        x, pads = self.of(node)[0], list(a.get("pads", [0, 0, 0, 0]))
        if not symmetric(pads, 2):
            x, pads = f"F.pad({x}, {[pads[1], pads[3], pads[0], pads[2]]}, value={padding})", [0] * 4
        return (f"{call}({x}, {list(a['kernel_shape'])}, {list(a.get('strides', [1, 1]))}, {pads[:2]}, "
                f"ceil_mode={bool(a.get('ceil_mode', 0))}{more})")

    def op_maxpool(self, node, a):
        return self.pool(node, a, "F.max_pool2d", "-math.inf", "")

    def op_averagepool(self, node, a):
        counted = bool(a.get("count_include_pad", 0))
        return self.pool(node, a, "F.avg_pool2d", "0.0", f", count_include_pad={counted}")

    def op_batchnormalization(self, node, a):
        x, scale, bias, mean, var = self.of(node)
        return (f"F.batch_norm({x}, {mean}, {var}, {scale}, {bias}, True, "
                f"{1 - a.get('momentum', 0.9)}, {a.get('epsilon', 1e-5)})")

    def op_lrn(self, node, a):
        return (f"F.local_response_norm({self.of(node)[0]}, {a['size']}, {a.get('alpha', 1e-4)}, "
                f"{a.get('beta', 0.75)}, {a.get('bias', 1.0)})")

    def op_gather(self, node, a):
        table, ids = self.of(node)
        return f"F.embedding({ids}, {table})" if table.startswith("p") else f"{table}[{ids}]"

    def op_gemm(self, node, a):
        x, y, *bias = self.of(node)
        x, y = x + ".T" * a.get("transA", 0), y + ".T" * a.get("transB", 0)
        return f"torch.addmm({bias[0]}, {x}, {y})" if bias else f"{x} @ {y}"

    def op_concat(self, node, a):
        return f"torch.cat([{', '.join(self.of(node))}], {a['axis']})"

    def op_reshape(self, node, a):
        return f"{self.of(node, 0)[0]}.reshape({self.ints(node.input[1])})"

    def op_flatten(self, node, a):
        return f"{self.of(node, 0)[0]}.flatten({a.get('axis', 1)})"

    def op_transpose(self, node, a):
        return f"{self.of(node)[0]}.permute({list(a['perm'])})"

    def op_expand(self, node, a):
        shape = [-1 if n == 1 else n for n in self.ints(node.input[1])]
        return f"{self.of(node, 0)[0]}.expand({shape})"

    def op_unsqueeze(self, node, a):
        axis, = self.ints(node.input[1])
        return f"{self.of(node, 0)[0]}.unsqueeze({axis})"

    def axes(self, node, a):
        return list(a["axes"]) if "axes" in a else self.ints(node.input[1]) if len(node.input) > 1 else None

    def op_squeeze(self, node, a):
        axis, = self.axes(node, a)
        return f"{self.of(node, 0)[0]}.squeeze({axis})"

    def reduced(self, node, a, call):
        axes, keep = self.axes(node, a), bool(a.get("keepdims", 1))
        return f"{self.of(node, 0)[0]}.{call}({f'{axes}, {keep}' if axes or keep else ''})"

    def op_reducemean(self, node, a):
        return self.reduced(node, a, "mean")

    def op_reducesum(self, node, a):
        return self.reduced(node, a, "sum")

    def op_softmax(self, node, a):
        return f"torch.softmax({self.of(node)[0]}, {a.get('axis', -1)})"

    def op_softmaxcrossentropyloss(self, node, a):
        return (f"F.cross_entropy({', '.join(self.of(node))}, ignore_index={a.get('ignore_index', -100)}, "
                f"reduction={a.get('reduction', b'mean').decode()!r})")

    def op_cast(self, node, a):
        kind = self.onnx.helper.tensor_dtype_to_np_dtype(a["to"]).kind if hasattr(
            self.onnx.helper, "tensor_dtype_to_np_dtype") else \
            self.onnx.mapping.TENSOR_TYPE_TO_NP_TYPE[a["to"]].kind
        return f"{self.of(node)[0]}.to({ {'f': 'one.dtype', 'b': 'torch.bool'}.get(kind, 'torch.int64')})"

    def op_onehot(self, node, a):
        depth, = self.ints(node.input[1])
        return f"F.one_hot({self.of(node, 0)[0]}.long(), {depth}).to(one.dtype)"

    def sparse(self, node):
        """A sparse matrix times a dense one, which ONNX gathers and scatters element by element."""
        product = self.by_output[node.input[2]]
        rows, values = self.by_output[product.input[0]], self.by_output[product.input[1]]
        at = {"rows": self.name(node.input[1]), "columns": self.name(rows.input[1])}
        given = self.name(values.input[0])
        height = self.constants[node.input[0]].shape[0]
        return (f"sparse({at['rows']}, {at['columns']}, {given}, {height}, {self.name(rows.input[0])})")


def sparse_products(torch):
    """Products with matrices that do not change, each in the form that this PyTorch multiplies fastest."""
    made = {}

    def matrix(at, values, size):
        coo = torch.sparse_coo_tensor(at, values, size).coalesce()
        return coo.to_sparse_csr() if torch.backends.mkl.is_available() else coo

    class Product(torch.autograd.Function):
        @staticmethod
        def forward(ctx, key, x):
            ctx.key = key
            return made[key][0] @ x

        @staticmethod
        def backward(ctx, g):
            return None, made[ctx.key][1] @ g

    def sparse(rows, columns, values, height, x):
        key = (id(rows), id(values), values.dtype)
        if key not in made:
            at = torch.stack([rows.reshape(-1).long(), columns.reshape(-1).long()])
            made[key] = (matrix(at, values.detach(), (height, x.shape[0])),
                         matrix(at.flip(0), values.detach(), (x.shape[0], height)))
        return Product.apply(key, x)
    return sparse


def network_of_graph(torch, folder, dtype):
    """loss(), weights by name."""
    import onnx
    from torch.nn import functional as F
    with open(os.path.join(folder, "index.txt"), encoding="utf-8") as index:
        files = {line.split(" ", 2)[2].rstrip("\n"): f"{line.split()[0]}.{line.split()[1]}.npy"
                 for line in index}
    source = Source(onnx.load(os.path.join(folder, "model.onnx")).graph, folder, files)

    def tensor(array):
        t = torch.tensor(np.array(array))
        return t.to(dtype) if t.is_floating_point() else t if t.dtype == torch.bool else t.long()
    scope = {"torch": torch, "F": F, "math": math, "one": torch.ones((), dtype=dtype),
             "sparse": sparse_products(torch)}
    text = "def loss(p, b, x):\n" + "".join(f"    {line}\n" for line in source.lines)
    exec(compile(text, os.path.join(folder, "loss.py"), "exec"), scope)
    p = [tensor(a).requires_grad_(True) for _, a in source.params]
    b, x = [tensor(a) for _, a in source.buffers], [tensor(a) for a in source.inputs]
    return scope["loss"], p, b, x, [name for name, _ in source.params]


def network_crnn(torch, batch, dtype):
    """workloads/vision/crnn.c, with torch's LSTM and CTC loss."""
    from torch import nn
    from torch.nn import functional as F

    class Crnn(nn.Module):
        def __init__(self, filters=64, units=256, symbols=36):
            super().__init__()
            wide = [filters, 2 * filters, 4 * filters, 4 * filters, 8 * filters, 8 * filters]
            self.convs = nn.ModuleList(nn.Conv2d(3 if k == 0 else wide[k - 1], n, 3, padding=1, bias=k < 2)
                                       for k, n in enumerate(wide))
            self.last = nn.Conv2d(wide[-1], wide[-1], 2, (2, 1), bias=False)
            self.norms = nn.ModuleList(nn.BatchNorm2d(n, 1e-3) for n in wide + wide[-1:])
            self.lstm = nn.LSTM(wide[-1], units, 2, bidirectional=True)
            self.out = nn.Linear(2 * units, symbols + 1, bias=False)

        def forward(self, image, label, length):
            x = image / 255
            for k, (conv, norm) in enumerate(zip(self.convs, self.norms)):
                x = F.relu(norm(conv(x)))
                x = F.max_pool2d(x, 2) if k < 2 else F.max_pool2d(x, (2, 1)) if k in (3, 5) else x
            x = F.relu(self.norms[-1](self.last(F.pad(x, (0, 1)))))
            x = self.out(self.lstm(x.squeeze(2).permute(2, 0, 1))[0])
            steps = torch.full((x.shape[1],), x.shape[0], dtype=torch.int64)
            return F.ctc_loss(F.log_softmax(x, 2), label, steps, length, blank=x.shape[2] - 1,
                              reduction="none", zero_infinity=True).mean()
    torch.manual_seed(1)
    model = Crnn().to(dtype)
    width = 100
    x = [torch.rand(batch, 3, 32, width, dtype=dtype), torch.randint(0, 36, (batch, 13)),
         torch.randint(1, 13, (batch,))]
    return model, x


def network_bert(torch, batch, dtype, tokens=384):
    """workloads/lib/bert_training.c: 15 % of the words are asked for, and whether sentences follow each other."""
    from torch import nn
    from torch.nn import functional as F

    class Layer(nn.Module):
        def __init__(self, d, heads, wide):
            super().__init__()
            self.heads, self.qkv, self.out = heads, nn.Linear(d, 3 * d), nn.Linear(d, d)
            self.up, self.down = nn.Linear(d, wide), nn.Linear(wide, d)
            self.norm1, self.norm2 = nn.LayerNorm(d, 1e-12), nn.LayerNorm(d, 1e-12)

        def forward(self, x, mask):
            n, t, d = x.shape
            q, k, v = self.qkv(x).view(n, t, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4)
            if hasattr(F, "scaled_dot_product_attention"):
                y = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, dropout_p=0.1)
            else:
                y = torch.softmax(q @ k.transpose(2, 3) / math.sqrt(d // self.heads) + mask, -1)
                y = F.dropout(y, 0.1) @ v
            x = self.norm1(x + F.dropout(self.out(y.transpose(1, 2).reshape(n, t, d)), 0.1))
            return self.norm2(x + F.dropout(self.down(F.gelu(self.up(x), approximate="tanh")), 0.1))

    class Bert(nn.Module):
        def __init__(self, words=30522, d=768, layers=12, heads=12):
            super().__init__()
            self.word, self.place, self.part = (nn.Embedding(k, d) for k in (words, 512, 2))
            self.norm = nn.LayerNorm(d, 1e-12)
            self.layers = nn.ModuleList(Layer(d, heads, 4 * d) for _ in range(layers))
            self.pool, self.next = nn.Linear(d, d), nn.Linear(d, 2)
            self.turn, self.turned, self.bias = nn.Linear(d, d), nn.LayerNorm(d, 1e-12), \
                nn.Parameter(torch.zeros(words))

        def forward(self, ids, parts, at, masked, is_next):
            t = ids.shape[1]
            x = F.dropout(self.norm(self.word(ids) + self.place.weight[:t] + self.part(parts)), 0.1)
            mask = x.new_zeros(ids.shape[0], 1, 1, t)
            for layer in self.layers:
                x = layer(x, mask)
            found = x.gather(1, at[:, :, None].expand(-1, -1, x.shape[2]))
            scores = F.linear(self.turned(F.gelu(self.turn(found), approximate="tanh")), self.word.weight, self.bias)
            answer = self.next(torch.tanh(self.pool(x[:, 0])))
            return F.cross_entropy(scores.flatten(0, 1), masked.flatten()) + F.cross_entropy(answer, is_next)
    torch.manual_seed(1)
    model = Bert().to(dtype)
    asked = (15 * tokens + 99) // 100
    draw = lambda top, *size: torch.randint(0, top, size)
    return model, [draw(30522, batch, tokens), draw(2, batch, tokens), draw(tokens, batch, asked),
                   draw(30522, batch, asked), draw(2, batch)]


def network(torch, spec, batch, folder, dtype):
    """loss of a list of inputs, its weights and their names, the inputs."""
    if spec.startswith(("crnn", "bert")):
        given = dict(word.split("=") for word in spec.partition(":")[2].split(",") if word)
        if spec.startswith("crnn"):
            model, x = network_crnn(torch, batch, dtype)
        else:
            model, x = network_bert(torch, batch, dtype, int(given.get("tokens", 384)))
        names, weights = zip(*model.named_parameters())
        return (lambda: model), list(weights), x, list(names)
    loss, p, b, x, names = network_of_graph(torch, folder, dtype)
    return (lambda: lambda *inputs: loss(p, b, inputs)), p, x, names
