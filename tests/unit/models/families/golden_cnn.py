#!/usr/bin/env python3
"""Writes golden_cnn.h, the constants of cnn_test.cc: loss and gradients of two small networks by PyTorch, in doubles.

The modules are those of the comment in models/families/cnn_plan.h, so this shows too that names and shapes are
PyTorch's. Needs PyTorch, any version from 1.8 on. Usage: golden_cnn.py > golden_cnn.h
"""
import torch
import torch.nn as nn
import torch.nn.functional as F

ROWS, CHANNELS, SIDE, CLASSES, GROUPS = 3, 2, 7, 3, 2


class Block(nn.Module):
    def __init__(self, i, o, groups):
        super().__init__()
        self.conv1, self.norm1 = nn.Conv2d(i, o, 3, padding=1, bias=False), nn.GroupNorm(groups, o)
        self.conv2, self.norm2 = nn.Conv2d(o, o, 3, padding=1, bias=False), nn.GroupNorm(groups, o)

    def forward(self, x):
        y = self.norm2(self.conv2(F.relu(self.norm1(self.conv1(x)))))
        return F.relu(y + F.pad(x, (0, 0, 0, 0, 0, y.shape[1] - x.shape[1])))


def plain():
    """channels = [4, 6], pool_every = 1, groups = 0, hidden = [5]"""
    return nn.Sequential(nn.Conv2d(CHANNELS, 4, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
                         nn.Conv2d(4, 6, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
                         nn.Flatten(), nn.Linear(6, 5), nn.ReLU(), nn.Linear(5, CLASSES))


def residual():
    """channels = [4, 6], blocks = 1, groups = 2, hidden = []"""
    return nn.Sequential(nn.Conv2d(CHANNELS, 4, 3, padding=1, bias=False), nn.GroupNorm(GROUPS, 4), nn.ReLU(),
                         Block(4, 4, GROUPS), nn.MaxPool2d(2), Block(4, 6, GROUPS),
                         nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(6, CLASSES))


def values(count, factor, modulus):
    return torch.tensor([((i * factor) % modulus - modulus // 2) / 64 for i in range(count)], dtype=torch.float64)


def write(name, net):
    net = net.double()
    parameters = list(net.named_parameters())
    every = values(sum(p.numel() for _, p in parameters), 37, 101)
    at = 0
    for _, p in parameters:
        p.data = every[at:at + p.numel()].reshape(p.shape)
        at += p.numel()
    x = values(ROWS * CHANNELS * SIDE * SIDE, 29, 83).reshape(ROWS, CHANNELS, SIDE, SIDE)
    loss = F.cross_entropy(net(x), torch.tensor([0, 2, 1]))
    loss.backward()
    print(f'inline constexpr double golden_{name}_loss = {loss.item()!r};')
    print(f'inline constexpr const char* golden_{name}_names[] = {{')
    for n, _ in parameters:
        print(f'    "{n}",')
    print('};')
    print(f'// Of every third parameter.\ninline constexpr float golden_{name}_gradient[] = {{')
    gradient = torch.cat([p.grad.reshape(-1) for _, p in parameters])[::3].tolist()
    for i in range(0, len(gradient), 6):
        print('    ' + ', '.join(f'{g:.7e}f' for g in gradient[i:i + 6]) + ',')
    print('};')


print('// Written by golden_cnn.py with PyTorch.\n// clang-format off\n#pragma once\n\nnamespace rumor::models {\n')
write('plain', plain())
print()
write('residual', residual())
print('\n}  // namespace rumor::models')
