#!/usr/bin/env python3
"""Memory that a PyTorch peer takes beside the program when it joins with weights='swarm': at most at once, and after.

A first peer trains on. Then a second one joins, whose model begins with other weights, and takes the swarm's. Figures
are in sizes of the weights in float32, without the model's own and its gradients: "joining" is the most that the
process held during join() (Linux: VmHWM since clear_refs), "joined" what it holds after it, "trained" after 20 steps.
Both are of resident memory, the latter two after malloc_trim.

Usage: torch_join_memory.py [--models a,b] [--state] LIBRARY PACKAGE
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

from torch_overhead import KNOWN, memory, torch  # which ends here without PyTorch

LISTEN = '127.0.0.1:17719'


def peak(begin=False):
    """Bytes that this process held at most since peak(begin=True)."""
    if begin:
        memory()
        pathlib.Path('/proc/self/clear_refs').write_text('5')
        return 0
    status = pathlib.Path('/proc/self/status').read_text(encoding='ascii').split('VmHWM:')[1]
    return 1024 * int(status.split()[0])


def make(name, seed):
    torch.set_num_threads(1)
    torch.manual_seed(seed)
    net = KNOWN[name]['net'](torch.nn)
    return net, torch.optim.SGD(net.parameters(), 0.01), KNOWN[name]['batch'](torch)


def train(name, net, optimizer, batch, swarm):
    optimizer.zero_grad()
    KNOWN[name]['loss'](torch, net, batch).backward()
    optimizer.step()
    return swarm is None or swarm.step()


def first(name):
    import rumor
    parts = make(name, 1)
    swarm = rumor.join('memory', parts[0], listen=LISTEN, density=0.001, options={'quiet': True})
    for _ in range(5):
        train(name, *parts, swarm)
    print('trained', flush=True)
    while train(name, *parts, swarm):
        pass


def joiner(name, state):
    import rumor
    parts = make(name, 2)
    train(name, *parts, None)  # the memory of a step is not the swarm's
    before = memory()
    peak(begin=True)
    swarm = rumor.join('memory', parts[0], seeds=[LISTEN], weights='swarm', density=0.001, state=state or None,
                       options={'quiet': True})
    most, joined = peak(), memory()
    for _ in range(20):
        train(name, *parts, swarm)
    unit = 4 * sum(p.numel() for p in parts[0].parameters())
    print(json.dumps({'model': name, 'params': unit // 4, 'joining': (most - before) / unit,
                      'joined': (joined - before) / unit, 'trained': (memory() - before) / unit}), flush=True)
    swarm.close()


def measure(options, name):
    command = [sys.executable, __file__, options.library, options.package, '--models', name, '--role']
    one = subprocess.Popen([*command, 'first'], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        assert one.stdout.readline() == 'trained\n', one.wait()
        with tempfile.TemporaryDirectory() as folder:
            more = ['--at', os.path.join(folder, 'state')] if options.state else []
            told = json.loads(subprocess.run([*command, 'joiner', *more], check=True, text=True,
                                             stdout=subprocess.PIPE).stdout.splitlines()[-1])
    finally:
        one.kill()
        one.wait()
    print(f'{told["model"]:>12}  {told["params"] / 1e6:6.1f} M parameters  joining {told["joining"]:.2f}  '
          f'joined {told["joined"]:.2f}  trained {told["trained"]:.2f}', flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split('\n', 1)[0])
    parser.add_argument('--models', default='mlp-wide,gpt-6x384', help=', '.join(KNOWN))
    parser.add_argument('--state', action='store_true', help='with a state directory')
    parser.add_argument('--at', default='', help=argparse.SUPPRESS)
    parser.add_argument('--role', help=argparse.SUPPRESS)
    parser.add_argument('library')
    parser.add_argument('package')
    options = parser.parse_args()
    os.environ['RUMOR_LIBRARY'] = options.library
    sys.path.insert(0, options.package)
    if options.role:
        first(options.models) if options.role == 'first' else joiner(options.models, options.at)
        return
    for name in options.models.split(','):
        measure(options, name)


if __name__ == '__main__':
    main()
