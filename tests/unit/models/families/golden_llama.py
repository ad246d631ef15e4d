#!/usr/bin/env python3
"""Writes golden_llama.h: loss and gradient of a small Llama with all that the family can have, by PyTorch in double.

usage: golden_llama.py > golden_llama.h    (any PyTorch 2; it shares no code with models/)

With grouped queries, heads wider than the embedding, biases, scaled rotary positions and a head of its own.
"""
import math
import torch
import torch.nn.functional as F

from golden_gpt import show, values

VOCABULARY, CONTEXT, LAYERS, HEADS, GROUPS, HEAD, WIDTH, WIDE, BATCH = 11, 6, 2, 4, 2, 4, 8, 12, 2
BASE, FACTOR, LOW, HIGH, ORIGINAL, EPSILON = 100.0, 8.0, 1.0, 4.0, 16, 1e-6


def shapes():
    """In the order of Qwen2ForCausalLM's state_dict."""
    out = [('embed_tokens.weight', (VOCABULARY, WIDTH))]
    for i in range(LAYERS):
        attention = [(f'self_attn.{name}_proj.{part}', shape)
                     for name, heads in (('q', HEADS), ('k', GROUPS), ('v', GROUPS))
                     for part, shape in (('weight', (heads * HEAD, WIDTH)), ('bias', (heads * HEAD,)))]
        rest = [('self_attn.o_proj.weight', (WIDTH, HEADS * HEAD)), ('mlp.gate_proj.weight', (WIDE, WIDTH)),
                ('mlp.up_proj.weight', (WIDE, WIDTH)), ('mlp.down_proj.weight', (WIDTH, WIDE)),
                ('input_layernorm.weight', (WIDTH,)), ('post_attention_layernorm.weight', (WIDTH,))]
        out += [(f'layers.{i}.{name}', shape) for name, shape in attention + rest]
    return out + [('norm.weight', (WIDTH,)), ('lm_head.weight', (VOCABULARY, WIDTH))]


def parameters():
    total = sum(torch.Size(shape).numel() for _, shape in shapes())
    flat, at, out = values(total, 37, 101, 64), 0, {}
    for name, shape in shapes():
        size = torch.Size(shape).numel()
        out[name] = flat[at:at + size].reshape(shape).clone() + (1 if 'norm' in name else 0)
        out[name].requires_grad_()
        at += size
    return out


def frequencies():
    """Llama 3.1: long waves slower by the factor, short ones as they are, a blend between."""
    out = []
    for i in range(HEAD // 2):
        f = BASE ** (-2 * i / HEAD)
        turns = ORIGINAL * f / (2 * math.pi)  # within the original context
        share = min(1, max(0, (turns - LOW) / (HIGH - LOW)))
        out.append((1 - share) * f / FACTOR + share * f)
    return torch.tensor(out)


def rotate(x):
    """x: [batch, heads, context, head]."""
    angle = torch.outer(torch.arange(CONTEXT, dtype=torch.float64), frequencies())
    a, b = x[..., :HEAD // 2], x[..., HEAD // 2:]
    return torch.cat([a * angle.cos() - b * angle.sin(), b * angle.cos() + a * angle.sin()], dim=-1)


def norm(x, gain):
    return x / torch.sqrt((x * x).mean(dim=-1, keepdim=True) + EPSILON) * gain


def layer(x, p):
    n = norm(x, p['input_layernorm.weight'])
    split = [F.linear(n, p[f'self_attn.{one}_proj.weight'], p[f'self_attn.{one}_proj.bias'])
             .view(BATCH, CONTEXT, -1, HEAD).transpose(1, 2) for one in 'qkv']
    q, k, v = rotate(split[0]), rotate(split[1]), split[2]
    k, v = (t.repeat_interleave(HEADS // GROUPS, dim=1) for t in (k, v))
    y = F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(BATCH, CONTEXT, -1)
    x = x + F.linear(y, p['self_attn.o_proj.weight'])
    n = norm(x, p['post_attention_layernorm.weight'])
    wide = F.silu(F.linear(n, p['mlp.gate_proj.weight'])) * F.linear(n, p['mlp.up_proj.weight'])
    return x + F.linear(wide, p['mlp.down_proj.weight'])


def loss_of(p):
    tokens = torch.tensor([i * 7 % VOCABULARY for i in range(BATCH * (CONTEXT + 1))]).reshape(BATCH, CONTEXT + 1)
    x = p['embed_tokens.weight'][tokens[:, :-1]]
    for i in range(LAYERS):
        start = f'layers.{i}.'
        x = layer(x, {name[len(start):]: t for name, t in p.items() if name.startswith(start)})
    logits = F.linear(norm(x, p['norm.weight']), p['lm_head.weight'])
    return F.cross_entropy(logits.reshape(-1, VOCABULARY), tokens[:, 1:].reshape(-1))


def main():
    p = parameters()
    loss = loss_of(p)
    loss.backward()
    print('// Made by golden_llama.py; do not edit. A whole Llama, computed by PyTorch in double.')
    print('#pragma once\n')
    print('namespace rumor::models::golden {\n')
    print(f'inline constexpr double llama_loss = {float(loss.detach()):.12g};')
    show('llama_gradient', torch.cat([t.grad.flatten() for t in p.values()]))
    print('\n}  // namespace rumor::models::golden')


if __name__ == '__main__':
    main()
