#!/usr/bin/env python3
"""The same model, data and optimizer on two machines with a home link between them: Rumor beside PyTorch's
DistributedDataParallel (gloo). Time to the same test loss, and bytes on the link.

Both ends run on this machine, in network namespaces of their own, joined by a link of tests/bench/shaped_link.py.
Fashion-MNIST, MLP 784-128-128-10, SGD. Time is counted from the first step. Skipped (77) without PyTorch, Fashion-MNIST
or root.

Usage: torch_ddp.py [--mbit 20] [--rtt-ms 50] [--loss 0.5] [--limit 600] [--json FILE] RUMOR LIBRARY PACKAGE
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

os.environ.setdefault('OMP_WAIT_POLICY', 'passive')
SKIPPED = 77
HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / 'system' / 'bridge')]

try:
    import torch
    from torch import nn
    from torch_data import FOLDER, fashion
except ImportError:
    print('python3 has no PyTorch (python3-torch)')
    sys.exit(SKIPPED)

import shaped_link  # noqa: E402

BATCH, RATE, ROWS = 32, 0.1, 2000
PORT = 7755


def train(rank, target, limit, net, after_step):
    """Steps until the test loss is met, as rank 0 sees it. Seconds, steps, loss."""
    optimizer = torch.optim.SGD(net.parameters(), RATE)
    images, labels = fashion('train')
    test_images, test_labels = fashion('t10k')
    test_images, test_labels = test_images[:ROWS], test_labels[:ROWS]
    torch.manual_seed(10 + rank)
    begin, looked, evaluating, steps, loss = time.monotonic(), time.monotonic(), 0.0, 0, float('inf')
    while True:
        rows = torch.randint(0, len(images), (BATCH,))
        optimizer.zero_grad()
        nn.functional.cross_entropy(net(images[rows]), labels[rows]).backward()
        optimizer.step()
        steps += 1
        met = False
        if rank == 0 and time.monotonic() - looked > 0.5:
            looked = time.monotonic()
            with torch.no_grad():
                loss = nn.functional.cross_entropy(net(test_images), test_labels).item()
            met = loss <= target or looked - begin > limit
            evaluating += time.monotonic() - looked
        if after_step(met):
            return {'seconds': time.monotonic() - begin, 'steps': steps, 'loss': loss, 'evaluating': evaluating}


def model():
    torch.set_num_threads(1)
    torch.manual_seed(1)
    return nn.Sequential(nn.Linear(784, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, 10))


def run_ddp(rank, target, limit):
    import torch.distributed as dist
    os.environ['GLOO_SOCKET_IFNAME'] = shaped_link.DEVICE
    dist.init_process_group('gloo', init_method=f'tcp://{shaped_link.ADDRESSES[0]}:{PORT}', rank=rank, world_size=2)
    net = nn.parallel.DistributedDataParallel(model())
    over = torch.zeros(1)
    steps = [0]

    def after_step(met):
        """Whether rank 0 has met the target is told every tenth step, so that it costs little."""
        over[0] = max(over[0].item(), float(met))
        steps[0] += 1
        if steps[0] % 10 != 0:
            return False
        dist.broadcast(over, 0)
        return over[0].item() > 0

    return train(rank, target, limit, net, after_step)


def run_rumor(rank, target, limit, state):
    import rumor
    net = model()
    swarm = rumor.join('ddp', net, seeds=[f'{shaped_link.ADDRESSES[1 - rank]}:{PORT}'], state=state, batch_size=BATCH,
                       listen=f'{shaped_link.ADDRESSES[rank]}:{PORT}',
                       options={'quiet': True, 'allow': f'{state}/allowed', 'overhead': 0.2})
    gone = [0.0]

    def after_step(met):
        if not swarm.step() or met:
            return True
        if rank == 1 and swarm.samples > 0:  # until the other has left
            now = time.monotonic()
            if now - gone[0] > 1:
                gone[0] = now
                return not swarm.status()['peers'] and swarm.status()['updates'] > 0
        return False

    while not swarm.status()['peers']:
        time.sleep(0.1)
    told = train(rank, target, limit, net, after_step)
    swarm.leave(5)
    with torch.no_grad():
        images, labels = fashion('t10k')
        told['loss'] = nn.functional.cross_entropy(net(images[:ROWS]), labels[:ROWS]).item()
    return told


def make_friends(rumor, directory):
    """State directories of two peers that admit each other."""
    states = [os.path.join(directory, str(rank)) for rank in (0, 1)]
    for state in states:
        subprocess.run([rumor, 'key', 'new', '--state', state], check=True, capture_output=True)
    for state in states:
        for other in states:
            key = subprocess.run([rumor, 'key', 'show', '--state', other], check=True, capture_output=True, text=True)
            subprocess.run([rumor, 'key', 'allow', f'{state}/allowed', key.stdout.split()[0]], check=True,
                           capture_output=True)
    return states


def compare(options, way, states):
    with shaped_link.ShapedLink(options.mbit, options.rtt_ms / 2000) as link:
        command = [sys.executable, str(HERE / 'torch_ddp.py'), '--loss', str(options.loss),
                   '--limit', str(options.limit), '--way', way, options.rumor, options.library, options.package]
        ends = [link.popen(rank, [*command, '--rank', str(rank), '--state', states[rank]], stdout=subprocess.PIPE,
                           stderr=None if options.verbose else subprocess.DEVNULL, text=True) for rank in (0, 1)]
        try:
            told = json.loads(ends[0].communicate(timeout=options.limit + 120)[0].splitlines()[-1])
            told['bytes'] = link.bytes()
            ends[1].communicate(timeout=60)
        finally:
            for end in ends:
                end.kill()
    return told


def main():
    parser = argparse.ArgumentParser(description=__doc__.split('\n', 1)[0])
    parser.add_argument('--mbit', type=float, default=20)
    parser.add_argument('--rtt-ms', type=float, default=50)
    parser.add_argument('--loss', type=float, default=0.5)
    parser.add_argument('--limit', type=float, default=600, help='seconds for one way')
    parser.add_argument('--json')
    parser.add_argument('--verbose', action='store_true')
    for internal in ('--way', '--rank', '--state'):
        parser.add_argument(internal, help=argparse.SUPPRESS)
    for name in ('rumor', 'library', 'package'):
        parser.add_argument(name)
    options = parser.parse_args()
    os.environ['RUMOR_LIBRARY'] = options.library
    sys.path.insert(0, options.package)
    if options.way:
        rank = int(options.rank)
        told = run_ddp(rank, options.loss, options.limit) if options.way == 'ddp' else \
            run_rumor(rank, options.loss, options.limit, options.state)
        print(json.dumps(told), flush=True)
        return
    why = shaped_link.why_not() or ('' if FOLDER.is_dir() else 'no Fashion-MNIST (dataset-fashion-mnist)')
    if why:
        print(f'skipped: {why}')
        sys.exit(SKIPPED)
    with tempfile.TemporaryDirectory() as directory:
        states = make_friends(options.rumor, directory)
        results = {way: compare(options, way, states) for way in ('rumor', 'ddp')}
    print(f'{options.mbit:g} Mbit/s, {options.rtt_ms:g} ms, test loss {options.loss:g}, two peers, batch {BATCH} each')
    for way, told in results.items():
        print(f'{way:>6}: {told["seconds"]:8.1f} s  {told["steps"]:6} steps  {told["bytes"] / 1e6:9.2f} MB on the '
              f'link  loss {told["loss"]:.3f}')
    ratio = results['ddp']['seconds'] / results['rumor']['seconds']
    print(f'Rumor is {ratio:.1f} times as fast, with {results["ddp"]["bytes"] / results["rumor"]["bytes"]:.0f} times '
          'fewer bytes')
    if options.json:
        with open(options.json, 'w', encoding='utf-8') as file:
            json.dump(results, file, indent=2)


if __name__ == '__main__':
    main()
