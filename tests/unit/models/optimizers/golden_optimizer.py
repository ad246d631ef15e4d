#!/usr/bin/env python3
"""Prints the constants of optimizer_golden_test.cc: PyTorch's AdamW and clip_grad_norm_ on a few parameters.

usage: golden_optimizer.py      (needs torch)
"""

import torch

STEPS, PARAMETERS = 6, 5


def gradient_of(step):
    return torch.tensor([((7 * step + 3 * i) % 11 - 5) / 8 for i in range(PARAMETERS)], dtype=torch.float32)


def main():
    weights = torch.nn.Parameter(torch.tensor([i / 4 - 0.5 for i in range(PARAMETERS)], dtype=torch.float32))
    optimizer = torch.optim.AdamW([weights], lr=0.05, betas=(0.9, 0.95), eps=1e-8, weight_decay=0.2, foreach=False)
    print('weights after each step, gradients cut to norm 0.75:')
    for step in range(STEPS):
        weights.grad = gradient_of(step)
        norm = torch.nn.utils.clip_grad_norm_([weights], 0.75)
        optimizer.step()
        print('    {%sf, {%s}},' % (repr(round(norm.item(), 9)), ', '.join('%.9gf' % w for w in weights.tolist())))


if __name__ == '__main__':
    main()
