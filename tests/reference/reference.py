#!/usr/bin/python3
"""The forward pass of a DeepSeek V3 model in float64, written from the published equations.

Sources: DeepSeek-V2 (arXiv:2405.04434, section 2.1, multi-head latent attention), DeepSeek-V3 (arXiv:2412.19437, sections
2.1.1 and 2.1.2, DeepSeekMoE with sigmoid affinities and bias for choosing), YaRN (arXiv:2309.00071, sections 3.2 to 3.4), and
for what the papers leave open the released configuration's meaning: rotary pairs are neighbours, the YaRN ramp runs over
whole pair numbers, mscale_all_dim enters the softmax scale squared.

Keys and values are expanded for every head and token (nothing is absorbed, nothing is cached, every step computes the
whole sequence again), so that no step of it is shared with the engine.

    reference.py MODEL --tokens 5,9,12 --generate 8    ->   {"tokens": [...], "logits": [[...], ...]} on stdout

logits[i] are those from which tokens[i] was taken.
"""
import argparse
import json
import math
import os
import struct
import sys

import numpy as np


class Weights:
    """Tensors by name, in float64."""

    def __init__(self, directory):
        self.directory = directory
        with open(os.path.join(directory, "model.safetensors.index.json"), encoding="utf-8") as file:
            self.shard_of = json.load(file)["weight_map"]
        self.shards = {}

    def shard(self, name):
        if name not in self.shards:
            with open(os.path.join(self.directory, name), "rb") as file:
                raw = file.read()
            (length,) = struct.unpack("<Q", raw[:8])
            self.shards[name] = (json.loads(raw[8 : 8 + length]), raw[8 + length :])
        return self.shards[name]

    def __call__(self, name):
        header, data = self.shard(self.shard_of[name])
        entry = header[name]
        begin, end = entry["data_offsets"]
        if entry["dtype"] == "BF16":
            upper = np.frombuffer(data[begin:end], dtype="<u2").astype(np.uint32)
            values = (upper << 16).view(np.float32)
        elif entry["dtype"] == "F32":
            values = np.frombuffer(data[begin:end], dtype="<f4")
        else:
            sys.exit("unexpected dtype " + entry["dtype"])
        return values.astype(np.float64).reshape(entry["shape"])


def rms_norm(x, gain, epsilon):
    return gain * x / np.sqrt(np.mean(np.square(x), axis=-1, keepdims=True) + epsilon)


def sigmoid(x):
    return 1.0 / (1.0 + np.exp(-x))


def swiglu(weights, prefix, x):
    gate = x @ weights(prefix + "gate_proj.weight").T
    up = x @ weights(prefix + "up_proj.weight").T
    return (gate * sigmoid(gate) * up) @ weights(prefix + "down_proj.weight").T


def attention_factor(factor, weight):
    """YaRN, equation 22 with DeepSeek's weight: sqrt(1/t) = 0.1 m ln(s) + 1."""
    return 0.1 * weight * math.log(factor) + 1.0 if factor > 1.0 else 1.0


class Rope:
    """Unit complex numbers e^(i m theta_j), scaled, for position m and pair j."""

    def __init__(self, config):
        dimension = config["qk_rope_head_dim"]
        base = config["rope_theta"]
        pairs = np.arange(dimension // 2)
        theta = base ** (-2.0 * pairs / dimension)
        self.scale = 1.0
        self.softmax = (config["qk_nope_head_dim"] + dimension) ** -0.5
        scaling = config.get("rope_scaling")
        if scaling:
            factor = scaling["factor"]
            length = scaling["original_max_position_embeddings"]

            def pair_with_turns(turns):
                # theta_j * L = 2 pi turns, solved for j.
                return math.log(length / (2 * math.pi * turns)) / math.log(base) * dimension / 2

            first = max(0, math.floor(pair_with_turns(scaling["beta_fast"])))
            last = min(dimension - 1, math.ceil(pair_with_turns(scaling["beta_slow"])))
            width = last - first if last != first else 0.001
            extrapolate = 1.0 - np.clip((pairs - first) / width, 0.0, 1.0)  # gamma of equation 19
            theta = (1.0 - extrapolate) * theta / factor + extrapolate * theta
            all_dimensions = scaling.get("mscale_all_dim", 0.0)
            self.scale = attention_factor(factor, scaling.get("mscale", 1.0)) / attention_factor(factor, all_dimensions)
            if all_dimensions:
                self.softmax *= attention_factor(factor, all_dimensions) ** 2
        self.theta = theta

    def __call__(self, x):
        """x: [tokens, ..., dimension]"""
        z = x[..., 0::2] + 1j * x[..., 1::2]
        turn = self.scale * np.exp(1j * np.arange(x.shape[0])[:, None] * self.theta[None, :])
        z = z * turn.reshape((x.shape[0],) + (1,) * (x.ndim - 2) + (-1,))
        return np.stack([z.real, z.imag], axis=-1).reshape(x.shape)


def attention(config, weights, prefix, rope, h):
    tokens = h.shape[0]
    heads, nope, rotary = config["num_attention_heads"], config["qk_nope_head_dim"], config["qk_rope_head_dim"]
    value, latent, epsilon = config["v_head_dim"], config["kv_lora_rank"], config["rms_norm_eps"]
    if config.get("q_lora_rank"):
        c_q = rms_norm(h @ weights(prefix + "q_a_proj.weight").T, weights(prefix + "q_a_layernorm.weight"), epsilon)
        q = c_q @ weights(prefix + "q_b_proj.weight").T
    else:
        q = h @ weights(prefix + "q_proj.weight").T
    q = q.reshape(tokens, heads, nope + rotary)
    q = np.concatenate([q[..., :nope], rope(q[..., nope:])], axis=-1)
    down = h @ weights(prefix + "kv_a_proj_with_mqa.weight").T
    c_kv = rms_norm(down[:, :latent], weights(prefix + "kv_a_layernorm.weight"), epsilon)
    k_rope = rope(down[:, latent:])
    up = (c_kv @ weights(prefix + "kv_b_proj.weight").T).reshape(tokens, heads, nope + value)
    k = np.concatenate([up[..., :nope], np.repeat(k_rope[:, None, :], heads, axis=1)], axis=-1)
    scores = np.einsum("thd,shd->hts", q, k) * rope.softmax
    scores[:, np.triu(np.ones((tokens, tokens), dtype=bool), 1)] = -np.inf
    scores = np.exp(scores - scores.max(axis=-1, keepdims=True))
    scores /= scores.sum(axis=-1, keepdims=True)
    out = np.einsum("hts,shd->thd", scores, up[..., nope:])
    return out.reshape(tokens, heads * value) @ weights(prefix + "o_proj.weight").T


def experts(config, weights, prefix, x):
    count, groups, chosen = config["n_routed_experts"], config["n_group"], config["num_experts_per_tok"]
    affinity = sigmoid(x @ weights(prefix + "gate.weight").T)
    biased = affinity + weights(prefix + "gate.e_score_correction_bias")
    out = np.zeros_like(x)
    for t in range(x.shape[0]):
        grouped = biased[t].reshape(groups, count // groups)
        group_score = np.sort(grouped, axis=1)[:, -2:].sum(axis=1)
        best_groups = np.argsort(-group_score, kind="stable")[: config["topk_group"]]
        candidates = np.full(groups, -np.inf)[:, None].repeat(count // groups, axis=1)
        candidates[best_groups] = grouped[best_groups]
        picked = np.argsort(-candidates.reshape(-1), kind="stable")[:chosen]
        gates = affinity[t, picked]
        if config["norm_topk_prob"] and chosen > 1:
            gates = gates / gates.sum()
        for expert, gate in zip(picked, gates * config["routed_scaling_factor"]):
            out[t] += gate * swiglu(weights, f"{prefix}experts.{expert}.", x[t])
    if config["n_shared_experts"]:
        out += swiglu(weights, prefix + "shared_experts.", x)
    return out


def logits_of(config, weights, tokens):
    rope = Rope(config)
    epsilon = config["rms_norm_eps"]
    h = weights("model.embed_tokens.weight")[tokens]
    for layer in range(config["num_hidden_layers"]):
        prefix = f"model.layers.{layer}."
        h = h + attention(config, weights, prefix + "self_attn.", rope,
                          rms_norm(h, weights(prefix + "input_layernorm.weight"), epsilon))
        x = rms_norm(h, weights(prefix + "post_attention_layernorm.weight"), epsilon)
        if layer < config["first_k_dense_replace"]:
            h = h + swiglu(weights, prefix + "mlp.", x)
        else:
            h = h + experts(config, weights, prefix + "mlp.", x)
    return rms_norm(h[-1], weights("model.norm.weight"), epsilon) @ weights("lm_head.weight").T


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("model")
    parser.add_argument("--tokens", required=True)
    parser.add_argument("--generate", type=int, default=1)
    arguments = parser.parse_args()
    with open(os.path.join(arguments.model, "config.json"), encoding="utf-8") as file:
        config = json.load(file)
    weights = Weights(arguments.model)
    tokens = [int(token) for token in arguments.tokens.split(",")]
    answer = {"tokens": [], "logits": []}
    for _ in range(arguments.generate):
        logits = logits_of(config, weights, np.array(tokens))
        best = int(np.argmax(logits))
        answer["tokens"].append(best)
        answer["logits"].append(logits.tolist())
        tokens.append(best)
    json.dump(answer, sys.stdout)


if __name__ == "__main__":
    main()
