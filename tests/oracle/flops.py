# SPDX-License-Identifier: Apache-2.0
"""Counts the floating-point operations that a run really executes and compares them with the model.

valgrind's callgrind counts how often each instruction of exe_start is executed; objdump says what
each instruction is. FLOPs = executions x lanes x (2 for a fused multiply-add, 1 for add, sub, mul,
div, sqrt, min, max). valgrind has no AVX-512, so the AVX2 kernels are counted; Winograd is off, as it
computes the same convolution with fewer operations than the model's definition.
"""
import argparse
import json
import os
import re
import subprocess
import sys
import tempfile

# Model specifications whose sizes fill whole vectors: tails would count padding lanes as work. Batch
# normalisation is counted where the definition has it, so it is executed there too: --no-fuse. Folded into the
# weights it would be 0.2 % less work than the model says; that is printed, not judged.
NETS = [("resnet50:image=64", 1, "--no-fuse"), ("resnet50:image=64", 1, None), ("ncf", 48, "--no-fuse"),
        ("ncf", 48, None)]
# Comparisons of max pooling, which count as nothing, and the sums of blocks of depth that are added to each other
# are executed, too: 0.12 % of resnet50 at this size.
BOUND = 2e-3

FMA = re.compile(r"^v?f(n?m(add|sub)|maddsub|msubadd)\d*(ps|ss|pd|sd)$")
FMA_VEX = re.compile(r"^vfn?m(add|sub)\d{3}(ps|ss|pd|sd)$")
PLAIN = re.compile(r"^v?(add|sub|mul|div|sqrt|min|max|hadd)(ps|ss|pd|sd)$")


def flops_of(text):
    """FLOPs of one execution of a disassembled instruction."""
    mnemonic, _, operands = text.strip().partition(" ")
    if FMA_VEX.match(mnemonic) or FMA.match(mnemonic):
        factor = 2
    elif PLAIN.match(mnemonic):
        factor = 1
    else:
        return 0
    size = 4 if mnemonic[-1] == "s" else 8
    if mnemonic[-2] == "s":
        return factor
    return factor * (32 if "%ymm" in operands else 16) // size


def disassemble(program):
    output = subprocess.run(["objdump", "-d", "--no-show-raw-insn", program], check=True,
                            capture_output=True, text=True).stdout
    table = {}
    for line in output.splitlines():
        match = re.match(r"^\s*([0-9a-f]+):\s+(.*)$", line)
        if match:
            flops = flops_of(match.group(2))
            if flops:
                table[int(match.group(1), 16)] = flops
    return table


def executions(path, program):
    """(address, count) of every instruction of the program's own code."""
    inside, skip = False, False
    with open(path, encoding="utf-8") as file:
        for line in file:
            if line.startswith("ob="):
                inside = os.path.basename(line[3:].strip()) == os.path.basename(program)
            elif line.startswith("calls="):
                skip = True
            elif line.startswith("0x"):
                if inside and not skip:
                    words = line.split()
                    yield int(words[0], 16), int(words[-1])
                skip = False


def count(program, table, model, batch, option):
    runs = 2
    with tempfile.TemporaryDirectory() as folder:
        out = os.path.join(folder, "callgrind")
        command = ["valgrind", "--tool=callgrind", "--dump-instr=yes", "--compress-pos=no",
                   "--compress-strings=no", "--collect-atstart=no", "--toggle-collect=exe_start",
                   f"--callgrind-out-file={out}", program, "run", model, "--batch", str(batch),
                   "--threads", "1", "--providers", "native", "--isa", "avx2", "--no-winograd",
                   "--no-tune", "--cache", os.path.join(folder, "cache"), "--on-request"]
        command += [option] if option else []
        subprocess.run(command, input="\n" * (runs - 1), check=True, text=True,
                       capture_output=True)
        total = sum(table.get(address, 0) * times for address, times in executions(out, program))
    return total / runs


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ridge", default="./ridge")
    args = parser.parse_args()
    table, failed = disassemble(args.ridge), 0
    for model, batch, option in NETS:
        graph = subprocess.run([args.ridge, "graph", model, "--batch", str(batch), "--json"],
                               check=True, capture_output=True, text=True).stdout
        said = json.loads(graph)["flops_model"]
        seen = count(args.ridge, table, model, batch, option)
        wrong = option is not None and abs(seen / said - 1) > BOUND
        failed += wrong
        print(f"{'not ok' if wrong else 'ok'} - {model} batch {batch} {option or 'fused'}: executed"
              f" {seen:.6g}, model {said:.6g}, ratio {seen / said:.5f}", flush=True)
    print(f"{len(NETS) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
