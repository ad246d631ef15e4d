#!/usr/bin/env python3
"""The first ten losses of GPT-2 124M on the CPU, beside PyTorch's from the same weights and tokens.

usage: gpt2_steps.py build/tests/soak/gpt2_steps [--context 1024] [--steps 10] [--threads 2]

Needs PyTorch 2 and NumPy, some 3 GB and, with a context of 1024, some minutes. Fails where a loss differs by more than
a thousandth.
"""
import argparse
import subprocess
import sys

import usage

usage.check(__doc__, 1)
usage.needs('numpy', 'torch')

import numpy  # noqa: E402
import torch  # noqa: E402
import torch.nn.functional as F  # noqa: E402

VOCABULARY, LAYERS, HEADS, WIDTH = 50257, 12, 12, 768


def mix64(x):
    x = (x + numpy.uint64(0x9e3779b97f4a7c15))
    x = (x ^ (x >> numpy.uint64(30))) * numpy.uint64(0xbf58476d1ce4e5b9)
    x = (x ^ (x >> numpy.uint64(27))) * numpy.uint64(0x94d049bb133111eb)
    return x ^ (x >> numpy.uint64(31))


def shapes(context):
    d = WIDTH
    yield from (('wte', (VOCABULARY, d)), ('wpe', (context, d)))
    for i in range(LAYERS):
        yield from ((f'{i}.norm_1.gain', (d,)), (f'{i}.norm_1.bias', (d,)), (f'{i}.attention', (d, 3 * d)),
                    (f'{i}.attention.bias', (3 * d,)), (f'{i}.output', (d, d)), (f'{i}.output.bias', (d,)),
                    (f'{i}.norm_2.gain', (d,)), (f'{i}.norm_2.bias', (d,)), (f'{i}.wide', (d, 4 * d)),
                    (f'{i}.wide.bias', (4 * d,)), (f'{i}.narrow', (4 * d, d)), (f'{i}.narrow.bias', (d,)))
    yield from (('norm.gain', (d,)), ('norm.bias', (d,)))


def parameters(context):
    at, out = 0, {}
    for name, shape in shapes(context):
        size = int(numpy.prod(shape))
        if len(shape) == 1:
            values = numpy.full(shape, 1.0 if name.endswith('gain') else 0.0, numpy.float32)
        else:
            drawn = (mix64(numpy.arange(at, at + size, dtype=numpy.uint64)) >> numpy.uint64(40)).astype(numpy.int64)
            scale = 0.0070710678 if name.endswith(('output', 'narrow')) else 0.034641016
            values = (drawn - (1 << 23)).astype(numpy.float32) * numpy.float32(2 ** -23) * numpy.float32(scale)
        out[name] = torch.from_numpy(values.reshape(shape)).requires_grad_()
        at += size
    return out


def loss_of(p, tokens):
    norm = lambda x, name: F.layer_norm(x, (WIDTH,), p[name + '.gain'], p[name + '.bias'], 1e-5)
    linear = lambda x, name: x @ p[name] + p[name + '.bias']
    places = len(tokens) - 1
    x = p['wte'][tokens[:-1]] + p['wpe']
    for i in range(LAYERS):
        q, k, v = (part.view(places, HEADS, -1).transpose(0, 1)
                   for part in linear(norm(x, f'{i}.norm_1'), f'{i}.attention').split(WIDTH, dim=1))
        y = F.scaled_dot_product_attention(q[None], k[None], v[None], is_causal=True)[0]
        x = x + linear(y.transpose(0, 1).reshape(places, WIDTH), f'{i}.output')
        x = x + linear(F.gelu(linear(norm(x, f'{i}.norm_2'), f'{i}.wide'), approximate='tanh'), f'{i}.narrow')
    return F.cross_entropy(norm(x, 'norm') @ p['wte'].T, tokens[1:])


def main():
    parser = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    parser.add_argument('program')
    parser.add_argument('--context', type=int, default=1024)
    parser.add_argument('--steps', type=int, default=10)
    parser.add_argument('--threads', type=int, default=2)
    options = parser.parse_args()
    ours = subprocess.run([options.program, str(options.context), str(options.steps), str(options.threads)],
                          capture_output=True, text=True, check=True).stdout.split('\n')
    torch.set_num_threads(options.threads)
    p = parameters(options.context)
    numbers = numpy.arange(options.context + 1, dtype=numpy.uint64) + numpy.uint64(1 << 40)
    tokens = torch.from_numpy((mix64(numbers) % numpy.uint64(VOCABULARY)).astype(numpy.int64))
    worst = 0
    for step in range(options.steps):
        loss = loss_of(p, tokens)
        loss.backward()
        with torch.no_grad():
            for tensor in p.values():
                tensor -= 0.1 * tensor.grad
                tensor.grad = None
        theirs, mine = float(loss.detach()), float(ours[step])
        worst = max(worst, abs(theirs - mine))
        print(f'step {step + 1:2}  Rumor {mine:.6f}  PyTorch {theirs:.6f}', flush=True)
    print(ours[options.steps])
    print('ok' if worst < 1e-3 else f'FAILED: {worst:.6f} apart')
    return worst >= 1e-3


with numpy.errstate(over='ignore'):
    sys.exit(main())
