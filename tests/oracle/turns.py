# SPDX-License-Identifier: Apache-2.0
"""What comparisons with other programs share: Ridge as a process that is asked for one sample after
the other, the order in which programs take turns, and the files that Ridge writes."""
import math
import os
import re
import statistics
import subprocess
import time

import numpy as np

LONG_S = 1.0  # an execution this long finds nothing of its own in caches, whoever ran before


def milliseconds(line, who):
    """Of an answer. A program that failed ends or says something else, and must not look fast."""
    try:
        value = float(line)
    except ValueError:
        value = math.nan
    if not 0 < value < math.inf:
        raise RuntimeError(f"{who} answered {line.strip()!r} instead of a time in ms")
    return value


class Ridge:
    """`ridge run --on-request`: one sample per line on its standard input."""

    def __init__(self, program, model, batch, extra):
        command = [program, "run", model, "--on-request"] + extra
        if batch:
            command += ["--batch", str(batch)]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        text=True)
        self.name = " ".join(command)
        if self.process.stdout.readline() != "ready\n":
            self.close()
            raise SystemExit(f"{self.name} failed")

    def ask(self, line):
        try:
            self.process.stdin.write(line + "\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            pass  # it has ended, which its answer shows
        return milliseconds(self.process.stdout.readline(), self.name)

    def sample(self):
        return self.ask("")

    def block(self, count):
        """Of one execution among so many, by the device's own clock."""
        return self.ask(str(count))

    def close(self):
        try:
            self.process.stdin.close()
        except BrokenPipeError:
            pass
        self.process.wait()
        self.process.stdout.close()


def tensor_file(folder, name):
    """The file that Ridge wrote for a tensor: other characters than these become '_'."""
    return os.path.join(folder, re.sub(r"[^A-Za-z0-9._+-]", "_", name) + ".npy")


def read_tensor(folder, name):
    return np.load(tensor_file(folder, name))


def wants_more(taken, passed, samples, seconds, limit):
    if passed >= limit:
        return taken < 3
    return taken < samples or (passed < seconds and taken < 400)


def take_turns(engines, samples, seconds, limit):
    times = {name: [] for name in engines}
    warm = {name: engine.sample() for name, engine in engines.items()}
    long = min(warm.values()) > LONG_S * 1e3
    began = time.time()
    while wants_more(len(times["ridge"]), time.time() - began, samples, seconds, limit):
        for name, engine in engines.items():
            if not long:
                engine.sample()  # its own caches and threads are warm again
            times[name].append(engine.sample())
    return {name: statistics.median(values) for name, values in times.items()}


def mean_ratio(rows, other, ours="ridge"):
    """Geometric mean of the other's time over ours, of the rows that have both."""
    ratios = [row[other] / row[ours] for row in rows if other in row and ours in row]
    return math.exp(sum(map(math.log, ratios)) / len(ratios)) if ratios else math.nan
