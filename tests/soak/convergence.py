#!/usr/bin/env python3
"""Decentralised training of each model family beside dense synchronous training: same model, data and samples.

usage: convergence.py RUMOR [PRESET[:NODES:DENSITY[:RATE[:BATCH]]]]... [--seeds 1]     all presets when none is named

One row of a table for each case: accuracy on the test set (nats a byte for text), and how many times fewer bytes than
4 a parameter an update has, however many mini-batches are in it. The dense side is the best of several rates, by mean
over the seeds. Takes hours on two cores: 3 minutes (fashion-mlp) to 30 (text-gpt) a run, three to seven runs a case and
seed.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile

CASES = {'fashion-mlp': ('4:0.003', '8:0.003', '16:0.001'), 'fashion-cnn': ('4:0.003', '16:0.003'),
         'text-gpt': ('4:0.02', '16:0.01:0.02:2')}
DENSE = {'fashion-mlp': {'adam': (0.001, 0.002, 0.003), 'momentum': (0.03, 0.05, 0.1)},
         'fashion-cnn': {'adam': (0.001, 0.002, 0.003), 'momentum': (0.05,)},
         'text-gpt': {'muon': (0.01, 0.02), 'adam': (0.001, 0.002, 0.004)}}
# Keys of the rivals that differ from the preset's.
RIVALS = {'adam': ('optimizer.momentum=0.9',)}


def simulate(rumor, preset, nodes, seed, *assignments):
    with tempfile.TemporaryDirectory() as directory:
        path = os.path.join(directory, 'result.json')
        command = [rumor, 'sim', preset, '--nodes', str(nodes), '--sim-seed', str(seed), '--json', path]
        for assignment in assignments:
            command += ['--set', assignment]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        with open(path, encoding='utf-8') as file:
            return json.load(file)


class Case:
    def __init__(self, rumor, preset, nodes, density, seeds, rate=None, batch=None):
        self.rumor, self.preset, self.nodes, self.density, self.seeds = rumor, preset, int(nodes), density, seeds
        self.both = [f'optimizer.batch={batch}'] if batch else []
        self.settings = [f'compress.density={density}', *([f'optimizer.rate={rate}'] if rate else []), *self.both]
        self.text = preset.startswith('text')

    def score(self, results):
        """The greater the better."""
        finals = [-result['final']['loss'] if self.text else result['final']['accuracy'] for result in results]
        return sum(finals) / len(finals)

    def runs(self, what, *settings):
        results = [simulate(self.rumor, self.preset, self.nodes, seed, *settings) for seed in self.seeds]
        print(f'{self.preset}, {self.nodes} peers, {what}: {self.shown(self.score(results))}', file=sys.stderr,
              flush=True)
        return results

    def shown(self, score):
        return f'{-score:.3f} nats' if self.text else f'{score:.2%}'

    def row(self):
        ours = self.runs(f'density {self.density}', *self.settings)
        assert all(result['replicas']['identical'] for result in ours)
        dense = {(kind, rate): self.score(self.runs(f'dense {kind} {rate}', 'exchange.mode=sync',
                                                    f'optimizer.kind={kind}', f'optimizer.rate={rate}',
                                                    *RIVALS.get(kind, ()), *self.both))
                 for kind, rates in DENSE[self.preset].items() for rate in rates}
        best = max(dense, key=dense.get)
        ratio = min(result['traffic']['ratio'] for result in ours)
        return (f'| {self.preset} | {self.nodes} | {float(self.density):.1%} | {self.shown(self.score(ours))} | '
                f'{self.shown(dense[best])} ({best[0]} {best[1]}) | {ratio:,.0f} |')


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('rumor')
    parser.add_argument('cases', nargs='*', default=list(CASES))
    parser.add_argument('--seeds', type=int, default=1)
    options = parser.parse_args()
    print('| run | peers | density | ours | dense, best rate | times fewer bytes |', flush=True)
    print('|---|---|---|---|---|---|', flush=True)
    for asked in options.cases:
        preset, _, rest = asked.partition(':')
        if preset not in CASES:
            parser.error(f'{preset} is none of {", ".join(CASES)}')
        for case in [rest] if rest else CASES[preset]:
            nodes, density, *more = case.split(':')
            print(Case(options.rumor, preset, nodes, density, range(1, options.seeds + 1), *more).row(), flush=True)


if __name__ == '__main__':
    main()
