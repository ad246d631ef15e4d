#!/usr/bin/env python3
"""Memory that a PyTorch peer takes beside the program when it joins with weights='swarm', trains, and leaves.

A first peer trains on. Then a second one joins, whose model begins with other weights, and takes the swarm's. Figures
are in sizes of the weights in float32, without the model's own and its gradients: "joining" is the most that the
process held during join() (Linux: VmHWM since clear_refs), "joined" what it holds after it, "trained" after 20 steps.
Then both leave at the same time, so each sends what it has learned and takes what the other sends: "leaving" is the
most that the second one held during leave(), "left" what it holds afterwards. All are of resident memory; joined,
trained and left after malloc_trim. Below them: the seconds that each took for leave(), the longest time between two
lines of progress meanwhile, and whether both have equal digests (else the program fails).

Usage: torch_join_memory.py [--models a,b] [--state] LIBRARY PACKAGE
"""
import argparse
import json
import logging
import os
import pathlib
import select
import subprocess
import sys
import tempfile
import time

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


class Lines(logging.Handler):
    """Remembers when the peer says something, and the last that it says of what it sends at the end."""

    def __init__(self):
        super().__init__()
        self.times, self.last = [], ''
        logging.getLogger('rumor').addHandler(self)
        logging.getLogger('rumor').setLevel(logging.INFO)

    def emit(self, record):
        self.times.append(time.monotonic())
        if 'sends what' in record.getMessage():
            self.last = record.getMessage()


def leave(swarm):
    """Leaves. Returns what is to be told of it."""
    lines, begin = Lines(), time.monotonic()
    swarm.leave(60)
    times = [begin, *lines.times, time.monotonic()]
    return {'seconds': times[-1] - begin, 'gap': max(b - a for a, b in zip(times, times[1:])), 'last': lines.last,
            'digest': swarm.status()['digest']}


def first(name):
    import rumor
    parts = make(name, 1)
    swarm = rumor.join('memory', parts[0], listen=LISTEN, density=0.001)
    for _ in range(5):
        train(name, *parts, swarm)
    print('trained', flush=True)
    while not select.select([sys.stdin], [], [], 0)[0]:  # closed when it shall leave
        train(name, *parts, swarm)
    print(json.dumps(leave(swarm)), flush=True)


def joiner(name, state):
    import rumor
    parts = make(name, 2)
    train(name, *parts, None)  # the memory of a step is not the swarm's
    before = memory()
    peak(begin=True)
    swarm = rumor.join('memory', parts[0], seeds=[LISTEN], weights='swarm', density=0.001, state=state or None)
    held = {'joining': peak(), 'joined': memory()}
    for _ in range(20):
        train(name, *parts, swarm)
    held['trained'] = memory()
    print('trained', flush=True)
    sys.stdin.read()  # the other one leaves now
    peak(begin=True)
    told = leave(swarm)
    held |= {'leaving': peak(), 'left': memory()}
    unit = 4 * sum(p.numel() for p in parts[0].parameters())
    print(json.dumps({**told, 'model': name, 'params': unit // 4,
                      **{when: (held[when] - before) / unit for when in held}}), flush=True)


def measure(options, name):
    command = [sys.executable, __file__, options.library, options.package, '--models', name, '--role']
    pipes = {'stdin': subprocess.PIPE, 'stdout': subprocess.PIPE, 'text': True}
    with tempfile.TemporaryDirectory() as folder:
        more = ['--at', os.path.join(folder, 'state')] if options.state else []
        peers = []
        try:
            for role in (['first'], ['joiner', *more]):
                peers.append(subprocess.Popen([*command, *role], **pipes))
                assert peers[-1].stdout.readline() == 'trained\n', peers[-1].wait()
            for one in peers:
                one.stdin.close()
            other, told = [json.loads(one.stdout.readline()) for one in peers]
        finally:
            for one in peers:
                one.kill()
                one.wait()
    print(f'{told["model"]:>12}  {told["params"] / 1e6:6.1f} M parameters  ' +
          '  '.join(f'{when} {told[when]:.2f}' for when in ('joining', 'joined', 'trained', 'leaving', 'left')),
          flush=True)
    assert told['digest'] == other['digest'], 'the peers have other weights'
    print(f'{"":>12}  leave() took {other["seconds"]:.1f} s and {told["seconds"]:.1f} s, a line of progress after '
          f'{max(told["gap"], other["gap"]):.1f} s at the latest ("{told["last"]}"), digests equal', flush=True)


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
