#!/usr/bin/env python3
"""Accuracy and compression of broadcast against the dense synchronous baseline: same model, data and samples.

usage: convergence.py RUMOR [NODES:DENSITY:RATE]...     default 16:0.001 8:0.003 4:0.003 (the preset's rate)
The dense side is the best of three rates of Adam and three of momentum, by mean accuracy over the seeds."""
import json
import os
import subprocess
import sys
import tempfile

SEEDS = (1, 2)
DENSE = [('adam', rate) for rate in (0.001, 0.002, 0.003)] + [('momentum', rate) for rate in (0.03, 0.05, 0.1)]


def run(rumor, nodes, seed, *assignments):
    with tempfile.TemporaryDirectory() as directory:
        path = os.path.join(directory, 'result.json')
        command = [rumor, 'sim', 'fashion-mlp', '--nodes', str(nodes), '--sim-seed', str(seed), '--json', path]
        for assignment in assignments:
            command += ['--set', assignment]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        with open(path, encoding='utf-8') as file:
            return json.load(file)


def mean_accuracy(results):
    return sum(result['final']['accuracy'] for result in results) / len(results)


def compare(rumor, nodes, density, *more):
    dense = {}
    for kind, rate in DENSE:
        settings = ('exchange.mode=sync', f'optimizer.kind={kind}', f'optimizer.rate={rate}')
        dense[kind, rate] = mean_accuracy([run(rumor, nodes, seed, *settings) for seed in SEEDS])
    best = max(dense, key=dense.get)
    results = [run(rumor, nodes, seed, f'compress.density={density}', *more) for seed in SEEDS]
    assert all(result['replicas']['identical'] for result in results)
    ratio = min(result['traffic']['ratio'] for result in results)
    ours = mean_accuracy(results)
    print(f'{nodes} peers at density {density}: {ours:.2%} at {ratio:.0f} times fewer bytes; '
          f'dense {best[0]} {best[1]}: {dense[best]:.2%}; difference {ours - dense[best]:+.2%}', flush=True)


if __name__ == '__main__':
    for case in sys.argv[2:] or ('16:0.001', '8:0.003', '4:0.003'):
        parts = case.split(':')
        compare(sys.argv[1], int(parts[0]), parts[1], *(f'optimizer.rate={rate}' for rate in parts[2:]))
