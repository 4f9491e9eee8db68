# SPDX-License-Identifier: Apache-2.0
"""llama3, qwen3, mixtral and qwen3_moe against the networks of Hugging Face's transformers, with the same weights and inputs:
logits, the chosen token, and what a step leaves in the caches of keys and values, in both phases.

    PYTHON tests/oracle/decoders.py --ridge build/release/ridge [--only NAME...]

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
from transformers import (DynamicCache, LlamaConfig, LlamaForCausalLM, MixtralConfig, MixtralForCausalLM, Qwen3Config,
                          Qwen3ForCausalLM, Qwen3MoeConfig, Qwen3MoeForCausalLM)

BOUND, BATCH, WORDS, BLOCK = 1e-4, 2, 5000, 32
DEPTHS = {"llama3": 2, "qwen3": 2, "mixtral": 1, "qwen3_moe": 1}  # a layer of experts is gigabytes
LLAMA_ROTATIONS = dict(rope_type="llama3", rope_theta=5e5, factor=32.0, high_freq_factor=4.0, low_freq_factor=1.0,
                       original_max_position_embeddings=8192)
QWEN_ROTATIONS = dict(rope_type="default", rope_theta=1e6)
MIXTRAL_ROTATIONS = dict(rope_type="default", rope_theta=1e6)
NAMES = {"self_attn.q_proj": "attention.query", "self_attn.k_proj": "attention.key",
         "self_attn.v_proj": "attention.value", "self_attn.o_proj": "attention.output", "mlp.gate_proj": "mlp.gate",
         "mlp.up_proj": "mlp.up", "mlp.down_proj": "mlp.down"}
NAMES_EXPERTS = {name: own for name, own in NAMES.items() if "mlp" not in name} | {"mlp.gate": "mlp.router"}
NORMS = {"input_layernorm": "attention.norm", "post_attention_layernorm": "mlp.norm",
         "self_attn.q_norm": "attention.query.norm", "self_attn.k_norm": "attention.key.norm"}


def llama3():
    return LlamaForCausalLM(LlamaConfig(
        vocab_size=WORDS, hidden_size=2048, intermediate_size=8192, num_hidden_layers=DEPTHS["llama3"], num_attention_heads=32,
        num_key_value_heads=8, head_dim=64, rms_norm_eps=1e-5, max_position_embeddings=131072,
        tie_word_embeddings=True, rope_parameters=LLAMA_ROTATIONS))


def qwen3():
    return Qwen3ForCausalLM(Qwen3Config(
        vocab_size=WORDS, hidden_size=1024, intermediate_size=3072, num_hidden_layers=DEPTHS["qwen3"], num_attention_heads=16,
        num_key_value_heads=8, head_dim=128, rms_norm_eps=1e-6, max_position_embeddings=40960,
        tie_word_embeddings=True, rope_parameters=QWEN_ROTATIONS))


def mixtral():
    return MixtralForCausalLM(MixtralConfig(
        vocab_size=WORDS, hidden_size=4096, intermediate_size=14336, num_hidden_layers=DEPTHS["mixtral"],
        num_attention_heads=32, num_key_value_heads=8, head_dim=128, rms_norm_eps=1e-5, max_position_embeddings=32768,
        num_local_experts=8, num_experts_per_tok=2, sliding_window=None, tie_word_embeddings=False,
        rope_parameters=MIXTRAL_ROTATIONS))


def qwen3_moe():
    return Qwen3MoeForCausalLM(Qwen3MoeConfig(
        vocab_size=WORDS, hidden_size=2048, intermediate_size=6144, moe_intermediate_size=768,
        num_hidden_layers=DEPTHS["qwen3_moe"], num_attention_heads=32, num_key_value_heads=4, head_dim=128,
        rms_norm_eps=1e-6, max_position_embeddings=40960, num_experts=128, num_experts_per_tok=8, norm_topk_prob=True,
        tie_word_embeddings=False, rope_parameters=QWEN_ROTATIONS))


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


def read(tensor, folder):
    """A tensor of the file; what lies beside it stays there until it is read."""
    if tensor.data_location != onnx.TensorProto.EXTERNAL:
        return torch.tensor(numpy_helper.to_array(tensor))
    place = {entry.key: entry.value for entry in tensor.external_data}
    dtype = onnx.helper.tensor_dtype_to_np_dtype(tensor.data_type)
    return torch.from_numpy(np.memmap(os.path.join(folder, place["location"]), dtype, "c", int(place["offset"]),
                                      tuple(tensor.dims)))


def experts_of(file, name):
    """Their weights as [experts, out, in], those of gate and up one after the other."""
    both = torch.cat([file[f"{name}.{which}.weight"].transpose(1, 2) for which in ("gate", "up")], dim=1)
    return {"gate_up_proj": both, "down_proj": file[f"{name}.down.weight"].transpose(1, 2).contiguous()}


def weights_of(path, network, depth):
    """Those of the file under the network's names; every one of the network's must be there."""
    tensors = onnx.load(path, load_external_data=False).graph.initializer
    file = {t.name: read(t, os.path.dirname(path)) for t in tensors}
    table = matrix_of(file, "embedding")
    tied = network.config.tie_word_embeddings
    state = {"model.embed_tokens.weight": table, "lm_head.weight": table if tied else matrix_of(file, "head"),
             "model.norm.weight": file["norm.weight"]}
    for layer in range(depth):
        there, here = f"model.layers.{layer}.", f"layer{layer}."
        experts = f"{here}mlp.router.weight" in file
        for name, own in (NAMES_EXPERTS if experts else NAMES).items():
            state[f"{there}{name}.weight"] = linear_of(file, f"{here}{own}")
        for name, weights in experts_of(file, f"{here}mlp").items() if experts else ():
            state[f"{there}mlp.experts.{name}"] = weights
        for name, own in NORMS.items():
            if f"{here}{own}.weight" in file:
                state[f"{there}{name}.weight"] = file[f"{here}{own}.weight"]
    network.load_state_dict(state, strict=True, assign=True)


def network_of(make):
    """Without memory for weights; the angles are no weights."""
    with torch.device("meta"):
        network = make().eval().float()
    network.model.rotary_emb = type(network.model.rotary_emb)(network.config)
    return network


def arrays(folder):
    return {name[:-len(".npy")]: np.load(os.path.join(folder, name)) for name in os.listdir(folder)}


def past_of(inputs, config, context):
    past = DynamicCache(config=config)
    for layer in range(config.num_hidden_layers):
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
    name = make.__name__
    spec = f"{name}:depth={DEPTHS[name]},vocabulary={WORDS},context={context},phase={phase},weights={weights}"
    batch = ["--batch", str(BATCH)]
    with tempfile.TemporaryDirectory() as folder:
        model, given, made = (os.path.join(folder, name) for name in ("model.onnx", "in", "out"))
        subprocess.run([ridge, "export", spec, *batch, "-o", model, "-i", given], check=True, capture_output=True)
        subprocess.run([ridge, "infer", spec, *batch, "-o", made, "--no-tune"], check=True, capture_output=True)
        network = network_of(make)
        weights_of(model, network, DEPTHS[name])
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
    parser.add_argument("--only", nargs="+", choices=DEPTHS, default=list(DEPTHS))
    options = parser.parse_args()
    torch.set_grad_enabled(False)
    floats = (("prefill", 70, "floats"), ("decode", 50, "floats"), ("decode", 700, "floats"))
    codes = (("prefill", 70, "i4"), ("decode", 50, "i4"), ("decode", 50, "i8"))
    fine = []
    for make, cases in ((llama3, floats + codes), (qwen3, floats + codes), (mixtral, floats[:2]), (qwen3_moe, floats[:2])):
        if make.__name__ in options.only:
            fine += [compare(options.ridge, make, *case) for case in cases]
    return 0 if all(fine) else 1


if __name__ == "__main__":
    sys.exit(main())
