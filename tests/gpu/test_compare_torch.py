# SPDX-License-Identifier: Apache-2.0
"""What the comparison with PyTorch measures and judges, over a made GPU. tests/gpu/compare.sh runs
this where a PyTorch is."""
import contextlib
import io
import json
import math
import os
import stat
import sys
import tempfile
import types
import unittest
from unittest import mock

sys.path.append(os.path.dirname(os.path.abspath(__file__)))

import compare_torch
from compare_torch import torch
from turns import Ridge, milliseconds


def program(folder, text):
    """A program that stands in for ridge."""
    path = os.path.join(folder, "ridge")
    with open(path, "w", encoding="utf-8") as file:
        file.write("#!/bin/sh\n" + text)
    os.chmod(path, os.stat(path).st_mode | stat.S_IXUSR)
    return path


class Answers(unittest.TestCase):
    def test_only_times_are_times(self):
        self.assertEqual(milliseconds("0.25\n", "x"), 0.25)
        for line in ("", "\n", "nan\n", "inf\n", "0\n", "-1\n", "launch failed\n"):
            with self.assertRaisesRegex(RuntimeError, "instead of a time"):
                milliseconds(line, "x")

    def test_a_program_that_fails_gives_no_sample(self):
        with tempfile.TemporaryDirectory() as folder:
            text = "echo ready; read a; echo 0.5; read a; exit 2\n"
            ridge = Ridge(program(folder, text), "m", 0, [])
            self.assertEqual(ridge.sample(), 0.5)
            for _ in range(2):
                with self.assertRaises(RuntimeError):
                    ridge.sample()
            ridge.close()

    def test_a_program_that_does_not_start_is_no_engine(self):
        with tempfile.TemporaryDirectory() as folder:
            with self.assertRaises(SystemExit):
                Ridge(program(folder, "echo 'no GPU'; exit 5\n"), "m", 0, [])

    def test_a_block_says_how_many(self):
        with tempfile.TemporaryDirectory() as folder:
            ridge = Ridge(program(folder, "echo ready; while read a; do echo ${a:-0.5}; done\n"),
                          "m", 0, [])
            self.assertEqual((ridge.sample(), ridge.block(17)), (0.5, 17))
            ridge.close()


class MadeGpu:
    """Replays take 0.02 ms each, and Python's calls a whole one: only the first must be reported."""

    def __init__(self):
        self.calls, self.now = [], 0.0

    def replay(self):
        self.calls.append("replay")
        self.now += 0.02

    def event(self, enable_timing):
        assert enable_timing
        event = types.SimpleNamespace(at=None, synchronize=lambda: self.calls.append("wait"))

        def record():
            self.calls.append("event")
            event.at = self.now

        event.record = record
        event.elapsed_time = lambda end: end.at - event.at
        return event

    def sleep(self, cycles):
        self.calls.append("busy")
        self.cycles = cycles


class DeviceTime(unittest.TestCase):
    def test_pytorch_is_timed_by_the_gpu(self):
        gpu = MadeGpu()
        graph = compare_torch.Graph.__new__(compare_torch.Graph)
        graph.graph = gpu
        with mock.patch.object(torch.cuda, "Event", gpu.event), \
                mock.patch.object(torch.cuda, "_sleep", gpu.sleep, create=True):
            self.assertAlmostEqual(graph.block(5), 0.02)
        self.assertEqual(gpu.calls,
                         ["busy", "replay", "event"] + 5 * ["replay"] + ["event", "wait"])
        self.assertGreaterEqual(gpu.cycles, 6 * 10e-6 * 2e9)  # 10 us of Python per replay, 2 GHz

    def test_blocks_last_a_millisecond(self):
        for ms, count in ((0.004, 200), (0.02, 50), (0.3, 4), (7.0, 1)):
            engine = mock.Mock()
            engine.block.return_value = ms
            blocks = compare_torch.Blocks(engine)
            self.assertEqual(blocks.sample(), ms)
            engine.block.assert_called_with(count)


class Settings(unittest.TestCase):
    def test_tf32_is_told_to_inductor(self):
        for precision, wanted in (("tf32", "tf32"), ("f32", "ieee"), ("bf16", "ieee")):
            with mock.patch.object(torch.backends, "cudnn",
                                   types.SimpleNamespace(fp32_precision="none")) as cudnn:
                compare_torch.set_precision(precision)
                self.assertEqual(cudnn.fp32_precision, wanted)
                self.assertEqual(cudnn.allow_tf32, wanted == "tf32")
        compare_torch.set_precision("f32")

    def test_all_algorithms_are_tried(self):
        with mock.patch.object(torch.backends, "cudnn",
                               types.SimpleNamespace(benchmark_limit=10)) as cudnn:
            compare_torch.set_search()
            self.assertEqual((cudnn.benchmark, cudnn.benchmark_limit), (True, 0))

    def test_what_a_version_lacks_is_left_out(self):
        config = types.SimpleNamespace(freezing=False)
        compare_torch.set_where_there(config, freezing=True, no_such_option=True)
        self.assertEqual(vars(config), {"freezing": True})

    @unittest.skipUnless(hasattr(torch, "compile"), "no torch.compile")
    def test_constants_are_folded(self):
        compare_torch.set_search()
        self.assertTrue(torch._inductor.config.freezing)


class Layouts(unittest.TestCase):
    """Eager is faster plain here, compiled channels-last."""

    def engine(self, module, _):
        last = module.weight.is_contiguous(memory_format=torch.channels_last)
        made = mock.Mock()
        made.block.return_value = 2.0 if last != getattr(module, "is_compiled", False) else 1.0
        return made

    def test_each_way_takes_its_own(self):
        def compiled(module):
            module.is_compiled = True
            return module

        args = types.SimpleNamespace(torch_device="cpu", no_compile=False)
        module, image = torch.nn.Conv2d(3, 4, 3), torch.zeros(1, 3, 8, 8)
        with mock.patch.object(compare_torch, "engine_of", lambda args: self.engine), \
                mock.patch.object(compare_torch, "compiled", compiled):
            engines, layouts = compare_torch.engines_of(args, module, [image])
        self.assertEqual([engine.block() for engine in engines.values()], [1.0, 1.0])
        self.assertEqual(layouts, "plain / channels-last")

    def test_modules_are_placed_apart(self):
        args = types.SimpleNamespace(torch_device="cpu")
        module = torch.nn.Conv2d(3, 4, 3)
        placed, _ = compare_torch.place(args, module, [], torch.channels_last)
        self.assertNotEqual(placed.weight.data_ptr(), module.weight.data_ptr())
        self.assertTrue(module.weight.is_contiguous())


ROW = {"model": "m", "batch": 1, "precision": "f32", "error": 0.0, "ridge_error": 0.0, "ridge": 1.0,
       "eager": 2.0, "compiled": 1.5, "ridge_latency": 3.0, "eager_latency": 1.0,
       "compiled_latency": 1.0}


class Verdict(unittest.TestCase):
    def judged(self, no_means=False, **changes):
        args = types.SimpleNamespace(check_only=False, no_compile=False, no_means=no_means)
        text = io.StringIO()
        with contextlib.redirect_stdout(text):
            bad = compare_torch.verdict(args, [dict(ROW, **changes)])
            compare_torch.print_table([dict(ROW, **changes)])
        return bad, text.getvalue()

    def test_the_devices_time_is_judged(self):
        bad, text = self.judged()
        self.assertEqual(bad, 0)
        self.assertIn("geometric mean 2.00 x PyTorch eager, wanted 1.50 (single executions: 0.33)",
                      text)
        self.assertEqual(self.judged(ridge=1.6, ridge_latency=0.1)[0], 2)

    def test_rows_are_judged_without_their_means(self):
        self.assertEqual(self.judged(no_means=True, ridge=1.6)[0], 0)
        self.assertEqual(self.judged(no_means=True, ridge=1.6, error=0.1)[0], 1)

    def test_rows_of_several_calls_have_one_mean(self):
        with tempfile.TemporaryDirectory() as folder:
            files = [os.path.join(folder, name) for name in ("a", "b")]
            for path, ms in zip(files, (0.5, 2.0)):
                with open(path, "w", encoding="utf-8") as file:
                    json.dump([dict(ROW, ridge=ms)], file)
            text = io.StringIO()
            with contextlib.redirect_stdout(text), \
                    mock.patch.object(sys, "argv", ["compare_torch.py", "--judge"] + files):
                code = compare_torch.main()
            self.assertEqual((code, text.getvalue().count("f32")), (0, 2))
            self.assertIn("geometric mean 2.00 x PyTorch eager", text.getvalue())

    def test_outputs_of_both_are_judged(self):
        self.assertIn("FAIL m f32: Ridge's outputs differ", self.judged(ridge_error=0.1)[1])
        self.assertIn("FAIL m f32: Ridge's outputs differ", self.judged(ridge_error=math.nan)[1])
        self.assertIn("FAIL m f32: PyTorch's outputs differ", self.judged(error=0.1)[1])


if __name__ == "__main__":
    unittest.main()
