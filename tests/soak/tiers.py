#!/usr/bin/env python3
"""Tiers of a small CNN on Fashion-MNIST: three real peers train it in stages with exits, then the report of the exits,
and how much three noisy views of a picture help. Without exits, for comparison, as well. Some minutes on two cores.

usage: tiers.py RUMOR [--samples 600000]
"""
import argparse
import array
import gzip
import os
import random
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, 'system'))

import peers  # noqa: E402
from peers import Swarm, run, wait_for  # noqa: E402
from stages import evaluated  # noqa: E402
from tiers import Tier, settings  # noqa: E402

DATA = '/usr/share/datasets/fashion-mnist'
RUN = """
[model]
family = "cnn"
channels = [4, 8, 32]     # 28 x 28, halved after each: 14 x 14 x 4, then 7 x 7 x 8, then 3 x 3 x 32
groups = 4
hidden = [128]

[data]
kind = "idx"

[optimizer]
kind = "momentum"
momentum = 0.9
rate = 0.05
batch = 32

[compress]
density = 0.05
"""
STAGES = ['pipeline.stages=3', 'pipeline.cut=[1,1,2]', 'pipeline.border=int8']
PICTURES, NOISE = 1_000, 60


def train(swarm):
    """The joined model of one peer a stage."""
    swarm.run_name = os.path.join(swarm.directory, 'run.toml')
    with open(swarm.run_name, 'w', encoding='utf-8') as file:
        file.write(RUN)
    for peer in swarm.peers:
        peer.seeds = [swarm.peers[2 if peer.index == 0 else 0].listen]
        swarm.count = 1 if peer.index == 0 else 3  # the one peer with data has all of them
        peer.start('--stage', f'{peer.index + 1}/3', '--threads', '1')
    for peer in swarm.peers:
        wait_for(f'the end of peer {peer.index}', lambda p=peer: p.process.poll() is not None, 60, swarm.progress)
        assert peer.process.returncode == 0, peer.said()
    model = os.path.join(swarm.directory, 'joined.safetensors')
    assert run('export', *[peer.state for peer in swarm.peers], '--to', model).returncode == 0
    return model


def test_set():
    with gzip.open(f'{DATA}/t10k-images-idx3-ubyte.gz') as file:
        pixels = file.read()[16:]
    with gzip.open(f'{DATA}/t10k-labels-idx1-ubyte.gz') as file:
        return [pixels[i * 784:(i + 1) * 784] for i in range(PICTURES)], file.read()[8:]


def views(swarm, model, sensors):
    """Answers of tier 2 and above to one noisy view of each picture, and to three of them."""
    top = Tier(swarm, model, 3)
    middle = Tier(swarm, model, 2, '--sensors', sensors, '--next', top.address)
    first = Tier(swarm, model, 1, '--mean', '72.9404', '--scale', '0.0111085')
    chance, right = random.Random(1), {1: 0, 3: 0}
    for picture, label in zip(*test_set()):
        features = []
        for _ in range(3):
            seen = array.array('f', [min(255, max(0, value + chance.gauss(0, NOISE))) for value in picture])
            features.append(first.post('/features', seen.tobytes())[1])
        for count in right:
            right[count] += middle.ask(b''.join(features[:count]))['class'] == label
    for tier in (top, middle, first):
        tier.kill()
    print(f'--sensors {sensors}: one view {right[1] / PICTURES:.1%}, three views {right[3] / PICTURES:.1%} right')


def measure(samples):
    with Swarm(3, samples, *STAGES) as swarm:
        model = train(swarm)
        print(f'without exits {evaluated(swarm, model)["accuracy"]:.2%} right', flush=True)
    with Swarm(3, samples, *STAGES, 'pipeline.exits=[0.3,0.3]') as swarm:
        model = train(swarm)
        print(run('serve', swarm.run_name, model, '--report', '--exit-below', '0.2', *settings(swarm)).stdout)
        for sensors in ('mean', 'max'):
            views(swarm, model, sensors)


if __name__ == '__main__':
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('rumor')
    parser.add_argument('--samples', type=int, default=600_000)
    chosen = parser.parse_args()
    peers.RUMOR = chosen.rumor
    measure(chosen.samples)
