#!/usr/bin/env python3
"""Compares ways to train over three networks and several numbers of peers, and prints the table of METHODS.md.

usage: methods_table.py RUMOR RUN [--nodes 4,16,32] [--networks lan,wan,home] [--rates 0.5,1,2] [--keep DIR]
                        [--points 24] [--set KEY=VALUE]... METHOD...

METHOD: as `rumor compare --methods` has it, each an argument of its own; {nodes} in it is the number of peers. The
networks are, one way: lan, 10 Gbit/s and 0.2 ms; wan, 100 Mbit/s and 60 ms; home, 20 Mbit/s up, 100 down, 100 ms, and
peers whose steps take 1 to 4 times as long. A step takes 20 virtual ms. With --keep what has been tried is kept, and
the same command goes on after an interruption.
"""

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

NETWORKS = {
    'lan': ('latency_ms = [0.2, 0.2]\njitter_ms = 0\nup_mbit = 10000\ndown_mbit = 10000\n', []),
    'wan': ('latency_ms = [60, 60]\njitter_ms = 2\nup_mbit = 100\ndown_mbit = 100\n', []),
    'home': ('latency_ms = [100, 100]\njitter_ms = 10\nup_mbit = 20\ndown_mbit = 100\n',
             ['--step-factors', '1,2,3,4']),
}


def amount(number, unit):
    for prefix in ('', 'k', 'M', 'G', 'T'):
        if number < 1000 or prefix == 'T':
            return f'{number:.3g} {prefix}{unit}'
        number /= 1000


def row(network, nodes, method):
    quality = f'{method["accuracy"] * 100:.2f} %' if method['accuracy'] is not None else f'{method["loss"]:.3f}'
    sent = amount(method['sent_bytes_per_node'], 'B') if method['sent_bytes_per_node'] else '-'
    ratio = f'{method["ring_ratio"]:.3g}' if method['ring_ratio'] else '-'
    reached = method['seconds_to_common_loss']
    agree = 'equal' if method['identical'] else f'within {method["disagreement"] * 100:.1f} %'
    cells = [network, str(nodes), method['method'], f'{method["rate"]:.3g}', quality,
             f'{method["virtual_seconds"]:.0f} s', f'{reached:.0f} s' if reached is not None else '-', sent, ratio,
             f'{method["idle_fraction"] * 100:.0f} %', agree]
    return '| ' + ' | '.join(cells) + ' |'


def compare(arguments, network, nodes, folder):
    text, options = NETWORKS[network]
    shape = folder / f'{network}.toml'
    shape.write_text(text, encoding='utf-8')
    out = folder / 'result.json'
    methods = ','.join(arguments.methods).replace('{nodes}', str(nodes))
    command = [arguments.rumor, 'compare', arguments.run, '--methods', methods,
               '--nodes', str(nodes), '--network', str(shape), '--rates', arguments.rates,
               '--points', arguments.points, '--json', str(out), *options]
    if arguments.keep:
        command += ['--keep', arguments.keep]
    for assignment in arguments.set:
        command += ['--set', assignment]
    if subprocess.run(command, stdout=subprocess.DEVNULL, check=False).returncode != 0:
        sys.exit(f'{" ".join(command)} failed')
    return json.loads(out.read_text(encoding='utf-8'))['methods']


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split('usage: ')[1])
    parser.add_argument('rumor')
    parser.add_argument('run')
    parser.add_argument('methods', nargs='+')
    parser.add_argument('--nodes', default='4,16,32')
    parser.add_argument('--networks', default='lan,wan,home')
    parser.add_argument('--rates', default='0.5,1,2')
    parser.add_argument('--points', default='24')
    parser.add_argument('--keep')
    parser.add_argument('--set', action='append', default=[])
    arguments = parser.parse_args()
    print('| network | peers | method | rate | accuracy | time | to common loss | sent by a peer | ring / sent | idle '
          '| replicas |\n' + '|---' * 11 + '|')
    with tempfile.TemporaryDirectory() as folder:
        for network in arguments.networks.split(','):
            for nodes in arguments.nodes.split(','):
                for method in compare(arguments, network, nodes, pathlib.Path(folder)):
                    print(row(network, nodes, method), flush=True)


if __name__ == '__main__':
    main()
