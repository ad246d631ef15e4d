#!/usr/bin/env python3
"""What swarm.step() costs a PyTorch loop: bursts of steps with it and without it, in turns, in one process.

A step is forward, backward and plain SGD on random data: no optimizer takes less. Another peer trains along in a
process of its own and sends updates. "overhead" is the time of a step with swarm.step() over that of one without,
less one, median of the pairs, with all that threads of the peer do meanwhile; "processor time" the same in seconds of
the processor, which other programs on the machine disturb less; "in step" the share of the time between entering and
leaving swarm.step(); "memory" what the process took since join(), in sizes of the weights in float32 (the model's own
are not in it, nor what PyTorch has freed: both figures are taken after malloc_trim); "counted" the part of it that
/status counts; "steps an update" how many steps of the loop went into one, since a pass over all weights would else
take more than its share (rumor.h, `overhead`).

There are --rounds pairs of bursts (7), each of --least steps at least (4), whatever --seconds says. The large models
have fewer of both unless told otherwise, so that each is done within ten minutes on two slow cores: their overhead is
one or two pairs of times, but time in step and memory are as good as those of others.

Usage: torch_overhead.py [--rounds N] [--seconds S] [--least N] [--density D] [--models a,b] [--json FILE]
           LIBRARY PACKAGE
"""
import argparse
import ctypes
import json
import os
import statistics
import subprocess
import sys
import time

os.environ.setdefault('OMP_WAIT_POLICY', 'passive')
SKIPPED = 77

try:
    import torch
except ImportError:
    print('python3 has no PyTorch (python3-torch)')
    sys.exit(SKIPPED)

from torch_speed import MODELS, cross_entropy, gpt, pictures, text, token_loss  # noqa: E402

KNOWN = {
    'mlp-128': MODELS['mlp-128'],
    'mlp-wide': dict(text='MLP 784-2048-2048-2048-10, batch 256',
                     net=lambda nn: nn.Sequential(nn.Linear(784, 2048), nn.ReLU(), nn.Linear(2048, 2048), nn.ReLU(),
                                                  nn.Linear(2048, 2048), nn.ReLU(), nn.Linear(2048, 10)),
                     batch=lambda torch: pictures(torch, 256, (784,)), loss=cross_entropy),
    'gpt-6x384': MODELS['gpt-6x384'],
    'gpt-10x512': dict(text='GPT 10 x 512, 8 rows of 256', net=gpt(10, 8, 512, 256),
                       batch=lambda torch: text(torch, 8, 256), loss=token_loss, bursts=dict(rounds=2, least=2)),
    'gpt2-small': dict(text='GPT-2 small (12 x 768, 50,257 tokens), 1 row of 256',
                       net=gpt(12, 12, 768, 256, 50257), batch=lambda torch: text(torch, 1, 256), loss=token_loss,
                       bursts=dict(rounds=1, least=2)),
}


# Rows of "memory" in /status.
COUNTED = ['weights', 'view', 'gradient', 'residual', 'in_flight', 'entries', 'log']


def say(text):
    """Progress, for those who wait: not part of the result."""
    print(f'  {time.strftime("%H:%M:%S")} {text}', file=sys.stderr, flush=True)


def memory():
    """Bytes of this process that are in memory, without those that malloc keeps though they were freed."""
    trim = getattr(ctypes.CDLL(None), 'malloc_trim', None)  # the GNU library's
    if trim is not None:
        trim(0)
    with open('/proc/self/statm', encoding='ascii') as file:
        return int(file.read().split()[1]) * os.sysconf('SC_PAGE_SIZE')


PARTNER = '''
import os, sys, time
sys.path[:0] = sys.argv[1:3]
import torch, rumor
from torch_overhead import KNOWN
torch.set_num_threads(1)
torch.manual_seed(1)
os.nice(10)
model = KNOWN[sys.argv[3]]['net'](torch.nn)
swarm = rumor.join('overhead', model, seeds=[sys.argv[4]], density=float(sys.argv[5]),
                   options={'quiet': True, 'overhead': 1, 'threads': 1})
with torch.no_grad():
    while True:
        for parameter in model.parameters():
            parameter.view(-1)[::100].add_(1e-5)
        swarm.step()
        time.sleep(0.5)
'''


class Loop:
    def __init__(self, name, package, density):
        torch.manual_seed(1)
        self.known = KNOWN[name]
        self.net = self.known['net'](torch.nn)
        self.params = sum(p.numel() for p in self.net.parameters())
        self.optimizer = torch.optim.SGD(self.net.parameters(), 0.01)
        self.batch = self.known['batch'](torch)
        self.known['loss'](torch, self.net, self.batch).backward()  # its memory is not the swarm's
        self.memory = memory()
        say(f'{name}: {self.params / 1e6:.1f} M parameters, joining')
        import rumor
        listen = '127.0.0.1:17717'
        self.swarm = rumor.join('overhead', self.net, listen=listen, density=density, options={'quiet': True})
        here = os.path.dirname(os.path.abspath(__file__))
        self.partner = subprocess.Popen([sys.executable, '-c', PARTNER, package, here, name, listen, str(density)],
                                        stderr=subprocess.DEVNULL)
        self.inside = 0.0
        while self.swarm.status()['live_peers'] < 2:
            if self.partner.poll() is not None:
                sys.exit(f'the other peer has ended: {self.partner.returncode}')
            self.step(True)
        say('two peers')

    def step(self, with_swarm):
        self.optimizer.zero_grad()
        self.known['loss'](torch, self.net, self.batch).backward()
        self.optimizer.step()
        if with_swarm:
            begin = time.perf_counter()
            self.swarm.step()
            self.inside += time.perf_counter() - begin

    def burst(self, with_swarm, seconds, least):
        """Seconds a step, of the clock and of the processor in all threads of this process, and steps."""
        begin, cpu_begin, steps = time.perf_counter(), time.process_time(), 0
        while steps < least or time.perf_counter() - begin < seconds:
            self.step(with_swarm)
            steps += 1
        say(f'{steps} steps {"with" if with_swarm else "without"}, {(time.perf_counter() - begin) / steps:.2f} s each')
        return (time.perf_counter() - begin) / steps, (time.process_time() - cpu_begin) / steps, steps

    def end(self):
        self.swarm.leave(0)
        self.partner.kill()
        self.partner.wait()


def measure(name, package, options):
    loop = Loop(name, package, options.density)
    usual = {'rounds': 7, 'least': 4, **loop.known.get('bursts', {})}
    rounds, least = options.rounds or usual['rounds'], options.least or usual['least']
    loop.burst(True, options.seconds / 2, least)
    loop.inside, ratios, cpu_ratios, without, steps, time_with = 0.0, [], [], [], 0, 0.0
    first = loop.swarm.status()['steps']
    for _ in range(rounds):
        plain, cpu_plain, _ = loop.burst(False, options.seconds, least)
        with_swarm, cpu_with, count = loop.burst(True, options.seconds, least)
        ratios.append(with_swarm / plain)
        cpu_ratios.append(cpu_with / cpu_plain)
        without.append(plain)
        steps += count
        time_with += with_swarm * count
    time.sleep(0.5)
    status = loop.swarm.status()
    updates = max(status['steps'] - first, 1)
    used = memory() - loop.memory
    counted = sum(status['memory'][row] for row in COUNTED)
    loop.end()
    return {'model': name, 'text': loop.known['text'], 'params': loop.params,
            'step_ms': statistics.median(without) * 1e3,
            'overhead': statistics.median(ratios) - 1, 'cpu_overhead': statistics.median(cpu_ratios) - 1,
            'in_step': loop.inside / time_with, 'memory': used / (4 * loop.params),
            'memory_counted': counted / (4 * loop.params), 'steps_an_update': steps / updates,
            'live_peers': status['live_peers']}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split('\n', 1)[0])
    parser.add_argument('--rounds', type=int)
    parser.add_argument('--seconds', type=float, default=3)
    parser.add_argument('--least', type=int)
    parser.add_argument('--density', type=float, default=0.001)
    parser.add_argument('--models', default='mlp-128,mlp-wide,gpt-6x384', help=', '.join(KNOWN))
    parser.add_argument('--json')
    parser.add_argument('library')
    parser.add_argument('package')
    options = parser.parse_args()
    os.environ['RUMOR_LIBRARY'] = options.library
    sys.path.insert(0, options.package)
    results = []
    print(f'PyTorch {torch.__version__}, {torch.get_num_threads()} threads, density {options.density}', flush=True)
    for name in options.models.split(','):
        result = measure(name, options.package, options)
        results.append(result)
        print(f'{result["text"]}: {result["params"] / 1e6:.1f} M parameters, {result["step_ms"]:.1f} ms a step; '
              f'overhead {result["overhead"] * 100:.1f} %, processor time {result["cpu_overhead"] * 100:.1f} %, '
              f'in step {result["in_step"] * 100:.1f} %, memory {result["memory"]:.2f} '
              f'(counted {result["memory_counted"]:.2f}), '
              f'{result["steps_an_update"]:.1f} steps an update', flush=True)
    if options.json:
        with open(options.json, 'w', encoding='utf-8') as file:
            json.dump(results, file, indent=2)


if __name__ == '__main__':
    main()
