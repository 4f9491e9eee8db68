# SPDX-License-Identifier: Apache-2.0
"""Ten steps with each optimiser, and schedules, by PyTorch in float64: /usr/bin/python3 tests/oracle/optimisers.py > tests/golden/optimisers.txt

A network of two dense layers learns one batch. Inputs and weights are sines of their index (`made`), which
tests/unit/test_optimisers.c makes alike. Optimisers that PyTorch 1.13 has are its own; FTRL and TensorFlow's
RMSProp follow TensorFlow's documentation of ApplyFtrl and ApplyRMSProp, LARS and LAMB their papers, BERT's Adam its
optimization.py, each with gradients of PyTorch's autograd.
With --check FILE the file is compared instead: exit 1 where a number differs by more than 1e-10.
"""
import math
import sys

import torch

STEPS = 10
SHAPES = {"w1": (5, 4), "b1": (4,), "w2": (4, 3), "b2": (3,)}


def made(seed, scale, *shape):
    count = math.prod(shape)
    return torch.tensor([scale * math.sin(seed + 0.7 * k) for k in range(count)], dtype=torch.float64).reshape(shape)


X, TARGET = made(0.3, 1.0, 6, 5), made(1.1, 0.8, 6, 3)


def rate_of(step, top):
    return top * (1 - step / 20)


class Torch:
    """An optimiser of PyTorch; weights of one dimension do not decay."""

    def __init__(self, kind, top, decay, clip=0, clip_each=0, **options):
        self.kind, self.top, self.decay, self.options = kind, top, decay, options
        self.clip, self.clip_each = clip, clip_each

    def begin(self, weights):
        groups = [{"params": [w], "weight_decay": self.decay if w.dim() > 1 else 0.0} for w in weights.values()]
        self.optimiser = self.kind(groups, lr=self.top, **self.options)

    def step(self, weights, rate, number):
        if self.clip:
            torch.nn.utils.clip_grad_norm_(weights.values(), self.clip)
        for w in weights.values() if self.clip_each else ():  # tf.clip_by_norm
            w.grad *= self.clip_each / max(w.grad.norm().item(), self.clip_each)
        for group in self.optimiser.param_groups:
            group["lr"] = rate
        self.optimiser.step()


class Formula:
    """update(weight, gradient, slots, rate, number, decay) -> the next weight; slots change in place."""

    def __init__(self, update, top, decay, slots):
        self.update, self.top, self.decay, self.first = update, top, decay, slots

    def begin(self, weights):
        self.slots = {n: [torch.full_like(w, s) for s in self.first] for n, w in weights.items()}

    def step(self, weights, rate, number):
        with torch.no_grad():
            for name, w in weights.items():
                decay = self.decay if w.dim() > 1 else 0.0
                w.copy_(self.update(w.clone(), w.grad.clone(), self.slots[name], rate, number, decay))


def ftrl(w, g, slots, rate, number, decay, l1=0.02):
    """ApplyFtrl, learning_rate_power -0.5, l2 = decay / 2."""
    a, z = slots
    after = a + g * g
    z += g - (after.sqrt() - a.sqrt()) / rate * w
    a.copy_(after)
    quadratic = after.sqrt() / rate + 2 * (decay / 2)
    return torch.where(z.abs() > l1, (z.sign() * l1 - z) / quadratic, torch.zeros_like(w))


def rmsprop_tensorflow(w, g, slots, rate, number, decay, rho=0.9, momentum=0.9, epsilon=1e-3):
    """ApplyRMSProp: ms += (g^2 - ms)(1 - rho); mom = momentum mom + rate g / sqrt(ms + epsilon); w -= mom."""
    ms, mom = slots
    g = g + decay * w
    ms += (g * g - ms) * (1 - rho)
    mom.copy_(momentum * mom + rate * g / (ms + epsilon).sqrt())
    return w - mom


def lars(w, g, slots, rate, number, decay, momentum=0.9, coefficient=0.05):
    """You, Gitman, Ginsburg 2017, algorithm 1; weights without decay are not adapted."""
    v, = slots
    local = coefficient * w.norm() / (g.norm() + decay * w.norm()) if decay else 1.0
    v.copy_(momentum * v + rate * local * (g + decay * w))
    return w - v


def moments(g, slots, beta1=0.9, beta2=0.999):
    m, v = slots
    m.copy_(beta1 * m + (1 - beta1) * g)
    v.copy_(beta2 * v + (1 - beta2) * g * g)
    return m, v


def lamb(w, g, slots, rate, number, decay, epsilon=1e-6):
    """You et al. 2020, algorithm 2; weights without decay are not adapted."""
    m, v = moments(g, slots)
    d = (m / (1 - 0.9**number)) / ((v / (1 - 0.999**number)).sqrt() + epsilon) + decay * w
    return w - rate * (w.norm() / d.norm() if decay else 1.0) * d


def adamw_bert(w, g, slots, rate, number, decay, epsilon=1e-6):
    """optimization.py of google-research/bert: no bias correction."""
    m, v = moments(g, slots)
    return w - rate * (m / (v.sqrt() + epsilon) + decay * w)


O = torch.optim
OPTIMISERS = {
    "sgd": Torch(O.SGD, 0.2, 0.01),
    "sgd_clipped": Torch(O.SGD, 0.5, 0.01, clip=0.125),
    "momentum": Torch(O.SGD, 0.1, 0.01, momentum=0.9),
    "momentum_each_clipped": Torch(O.SGD, 0.1, 0.01, clip_each=0.0625, momentum=0.9),
    "nesterov": Torch(O.SGD, 0.1, 0.01, momentum=0.9, nesterov=True),
    "adam": Torch(O.Adam, 0.02, 0.01),
    "adamw": Torch(O.AdamW, 0.02, 0.1),
    "adamw_clipped": Torch(O.AdamW, 0.02, 0.1, clip=0.25, betas=(0.8, 0.99), eps=1e-6),
    "adamw_bert": Formula(adamw_bert, 0.02, 0.01, [0.0, 0.0]),
    "adagrad": Torch(O.Adagrad, 0.1, 0.01, lr_decay=0.01, initial_accumulator_value=0.125),
    "ftrl": Formula(ftrl, 0.1, 0.01, [0.125, 0.0]),
    "rmsprop": Torch(O.RMSprop, 0.01, 0.01, alpha=0.99, eps=1e-8, momentum=0.9),
    "rmsprop_tensorflow": Formula(rmsprop_tensorflow, 0.02, 0.01, [1.0, 0.0]),
    "lars": Formula(lars, 0.5, 0.01, [0.0]),
    "lamb": Formula(lamb, 0.02, 0.01, [0.0, 0.0]),
}


def train(optimiser):
    weights = {n: made(k + 0.5, 0.6, *s).requires_grad_() for k, (n, s) in enumerate(SHAPES.items())}
    losses = []
    optimiser.begin(weights)
    for step in range(STEPS):
        for w in weights.values():
            w.grad = None
        y = torch.tanh(X @ weights["w1"] + weights["b1"]) @ weights["w2"] + weights["b2"]
        loss = ((y - TARGET) ** 2).mean()
        loss.backward()
        losses.append(loss.item())
        optimiser.step(weights, rate_of(step, optimiser.top), step + 1)
    return losses, weights


def scheduled(make, steps=24, top=0.1):
    """Rates of a schedule of PyTorch's, or of several of them one after the other."""
    optimiser = O.SGD([torch.zeros(1, requires_grad=True)], lr=top)
    schedule, rates = make(optimiser), []
    for _ in range(steps):
        rates.append(optimiser.param_groups[0]["lr"])
        optimiser.step()
        schedule.step()
    return rates


L = O.lr_scheduler


def after_warm_up(o, then):
    return L.SequentialLR(o, [L.LinearLR(o, start_factor=0.25, total_iters=4), then], [4])


def polynomial_tensorflow(step, top, steps, end, power):
    """tf.compat.v1.train.polynomial_decay, cycle=False"""
    return (top - end) * (1 - min(step, steps) / steps)**power + end


def bert(step, top=0.1, steps=20, warm_up=4):
    """create_optimizer of google-research/bert"""
    return top * step / warm_up if step < warm_up else polynomial_tensorflow(step, top, steps, 0.0, 1.0)


SCHEDULES = {
    "step": lambda: scheduled(lambda o: L.StepLR(o, 5, gamma=0.5)),
    "multistep": lambda: scheduled(lambda o: L.MultiStepLR(o, [3, 11], gamma=0.1)),
    "cosine": lambda: scheduled(lambda o: L.CosineAnnealingLR(o, 24, eta_min=0.01)),
    "polynomial": lambda: scheduled(lambda o: L.PolynomialLR(o, 20, power=2.0)),
    "polynomial_tensorflow": lambda: [polynomial_tensorflow(s, 0.1, 16, 0.02, 0.5) for s in range(24)],
    "exponential": lambda: scheduled(lambda o: L.ExponentialLR(o, gamma=0.9)),
    "cosine_after_warm_up": lambda: scheduled(lambda o: after_warm_up(o, L.CosineAnnealingLR(o, 20, eta_min=0.01))),
    "multistep_after_warm_up": lambda: scheduled(lambda o: after_warm_up(o, L.MultiStepLR(o, [6, 12], gamma=0.1))),
    "bert": lambda: [bert(s) for s in range(24)],
}


def lines():
    for name, optimiser in OPTIMISERS.items():
        losses, weights = train(optimiser)
        for what, numbers in [("loss", losses)] + [(n, w.detach().reshape(-1).tolist()) for n, w in weights.items()]:
            yield f"{name} {what} " + " ".join(f"{x:.13g}" for x in numbers)
    for name, rates in SCHEDULES.items():
        yield f"schedule {name} " + " ".join(f"{x:.13g}" for x in rates())


def check(path):
    with open(path) as file:
        stored = file.read().splitlines()
    made_now = list(lines())
    wrong = len(stored) != len(made_now)
    for old, new in zip(stored, made_now):
        a, b = old.split(), new.split()
        if a[:2] != b[:2] or any(abs(float(p) - float(q)) > 1e-10 for p, q in zip(a[2:], b[2:])):
            print(f"stored: {old}\nnow:    {new}")
            wrong = True
    return 1 if wrong else 0


if __name__ == "__main__":
    if sys.argv[1:2] == ["--check"]:
        sys.exit(check(sys.argv[2]))
    print("\n".join(lines()))
