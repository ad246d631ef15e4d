#!/usr/bin/env python3
"""Writes golden_lora.h: loss and gradient of the adapters of golden_llama.py's model, by PyTorch in double.

usage: golden_lora.py > golden_lora.h        (any PyTorch 2)

The adapted weight is W + alpha / rank B A, so that autograd gives the gradients of A and B.
"""
import torch

from golden_gpt import show, values
from golden_llama import LAYERS, loss_of, parameters

RANK, ALPHA, TARGETS = 3, 6, ('self_attn.q_proj', 'self_attn.v_proj', 'mlp.down_proj')


def main():
    p = parameters()
    names = [f'layers.{i}.{target}.weight' for i in range(LAYERS) for target in TARGETS]
    shapes = [shape for name in names for shape in ((RANK, p[name].shape[1]), (p[name].shape[0], RANK))]
    flat, at, adapters = values(sum(a * b for a, b in shapes), 29, 97, 64), 0, []
    for a, b in shapes:
        adapters.append(flat[at:at + a * b].reshape(a, b).clone().requires_grad_())
        at += a * b
    adapted = dict(p)
    for i, name in enumerate(names):
        adapted[name] = p[name].detach() + ALPHA / RANK * adapters[2 * i + 1] @ adapters[2 * i]
    loss = loss_of(adapted)
    loss.backward()
    print('// Made by golden_lora.py; do not edit. The adapters of a whole Llama, computed by PyTorch in double.')
    print('#pragma once\n')
    print('namespace rumor::models::golden {\n')
    print(f'inline constexpr double lora_loss = {float(loss.detach()):.12g};')
    show('lora_gradient', torch.cat([t.grad.flatten() for t in adapters]))
    print('\n}  // namespace rumor::models::golden')


if __name__ == '__main__':
    main()
