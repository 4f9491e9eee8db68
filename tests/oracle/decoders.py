# SPDX-License-Identifier: Apache-2.0
"""llama3 and qwen3 against the networks of Hugging Face's transformers, with the same weights and inputs:
logits, the chosen token, and what a step leaves in the caches of keys and values, in both phases.

    PYTHON tests/oracle/decoders.py --ridge build/release/ridge

PYTHON has torch, transformers and onnx. Exit 1 where something is off by more than 1e-4 of its largest element:
transformers computes angles in f32, which is off by 4e-5 at position 700.
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
from transformers import DynamicCache, LlamaConfig, LlamaForCausalLM, Qwen3Config, Qwen3ForCausalLM

BOUND, BATCH, DEPTH, WORDS, BLOCK = 1e-4, 2, 2, 5000, 32
LLAMA_ROTATIONS = dict(rope_type="llama3", rope_theta=5e5, factor=32.0, high_freq_factor=4.0, low_freq_factor=1.0,
                       original_max_position_embeddings=8192)
QWEN_ROTATIONS = dict(rope_type="default", rope_theta=1e6)
NAMES = {"self_attn.q_proj": "attention.query", "self_attn.k_proj": "attention.key",
         "self_attn.v_proj": "attention.value", "self_attn.o_proj": "attention.output", "mlp.gate_proj": "mlp.gate",
         "mlp.up_proj": "mlp.up", "mlp.down_proj": "mlp.down"}
NORMS = {"input_layernorm": "attention.norm", "post_attention_layernorm": "mlp.norm",
         "self_attn.q_norm": "attention.query.norm", "self_attn.k_norm": "attention.key.norm"}


def llama3():
    return LlamaForCausalLM(LlamaConfig(
        vocab_size=WORDS, hidden_size=2048, intermediate_size=8192, num_hidden_layers=DEPTH, num_attention_heads=32,
        num_key_value_heads=8, head_dim=64, rms_norm_eps=1e-5, max_position_embeddings=131072,
        tie_word_embeddings=True, rope_parameters=LLAMA_ROTATIONS))


def qwen3():
    return Qwen3ForCausalLM(Qwen3Config(
        vocab_size=WORDS, hidden_size=1024, intermediate_size=3072, num_hidden_layers=DEPTH, num_attention_heads=16,
        num_key_value_heads=8, head_dim=128, rms_norm_eps=1e-6, max_position_embeddings=40960,
        tie_word_embeddings=True, rope_parameters=QWEN_ROTATIONS))


def matrix_of(file, name):
    """Rows of weights [N, K]; quantised ones as floats, by the description of MatMulNBits."""
    codes = file.get(f"{name}.codes")
    if codes is None:
        return file[f"{name}.weight"]
    scales = file[f"{name}.scales"]
    if codes.shape[-1] == BLOCK // 2:
        codes, middle = torch.stack((codes & 15, codes >> 4), dim=-1), 8
    else:
        middle = 128
    blocks = codes.reshape(*scales.shape, BLOCK).float() - middle
    return (blocks * scales[..., None]).reshape(scales.shape[0], -1)


def linear_of(file, name):
    return matrix_of(file, name) if f"{name}.codes" in file else file[f"{name}.weight"].T.contiguous()


def weights_of(path, network):
    """Those of the file under the network's names; every one of the network's must be there."""
    file = {t.name: torch.tensor(numpy_helper.to_array(t)) for t in onnx.load(path).graph.initializer}
    table = matrix_of(file, "embedding")
    state = {"model.embed_tokens.weight": table, "lm_head.weight": table, "model.norm.weight": file["norm.weight"]}
    for layer in range(DEPTH):
        there, here = f"model.layers.{layer}.", f"layer{layer}."
        for name, own in NAMES.items():
            state[f"{there}{name}.weight"] = linear_of(file, f"{here}{own}")
        for name, own in NORMS.items():
            if f"{here}{own}.weight" in file:
                state[f"{there}{name}.weight"] = file[f"{here}{own}.weight"]
    network.load_state_dict(state, strict=True)


def arrays(folder):
    return {name[:-len(".npy")]: np.load(os.path.join(folder, name)) for name in os.listdir(folder)}


def past_of(inputs, config, context):
    past = DynamicCache(config=config)
    for layer in range(DEPTH):
        keys, values = (torch.tensor(inputs[f"layer{layer}.attention.{what}"][:, :, :context])
                        for what in ("keys", "values"))
        past.update(keys, values, layer)
    return past


def error(ours, theirs):
    return float(np.abs(ours - theirs).max() / np.abs(theirs).max())


def errors(ours, result, suffix):
    """Of the logits, and of all caches."""
    yield error(ours["logits"], result.logits[:, -1].numpy())
    for layer, cache in enumerate(result.past_key_values.layers):
        yield error(ours[f"layer{layer}.attention.keys{suffix}"], cache.keys.numpy())
        yield error(ours[f"layer{layer}.attention.values{suffix}"], cache.values.numpy())


def compare(ridge, make, phase, context, weights):
    spec = f"{make.__name__}:depth={DEPTH},vocabulary={WORDS},context={context},phase={phase},weights={weights}"
    batch = ["--batch", str(BATCH)]
    with tempfile.TemporaryDirectory() as folder:
        model, given, made = (os.path.join(folder, name) for name in ("model.onnx", "in", "out"))
        subprocess.run([ridge, "export", spec, *batch, "-o", model, "-i", given], check=True, capture_output=True)
        subprocess.run([ridge, "infer", spec, *batch, "-o", made, "--no-tune"], check=True, capture_output=True)
        network = make().eval().float()
        weights_of(model, network)
        inputs, ours = arrays(given), arrays(made)
    more = {}
    if phase == "decode":
        more = {"past_key_values": past_of(inputs, network.config, context),
                "position_ids": torch.full((BATCH, 1), context)}
    result = network(torch.tensor(inputs["tokens"]), use_cache=True, **more)
    worst = max(errors(ours, result, ".next" if phase == "decode" else ""))
    same = bool((ours["token"] == result.logits[:, -1].argmax(-1).numpy()).all())
    print(f"{spec}: largest error {worst:.1e}, {'the same' if same else 'other'} tokens")
    return worst <= BOUND and same


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--ridge", default="build/release/ridge")
    ridge = parser.parse_args().ridge
    torch.set_grad_enabled(False)
    cases = (("prefill", 70, "floats"), ("decode", 50, "floats"), ("decode", 700, "floats"), ("prefill", 70, "i4"),
             ("decode", 50, "i4"), ("decode", 50, "i8"))
    fine = [compare(ridge, make, *case) for make in (llama3, qwen3) for case in cases]
    return 0 if all(fine) else 1


if __name__ == "__main__":
    sys.exit(main())
