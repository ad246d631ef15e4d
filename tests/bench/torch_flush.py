#!/usr/bin/env python3
"""What leave() keeps of short runs: test losses before and after it, by the length of the run.

Several peers in this process take turns, each with its own optimizer (AdamW, 0.003) and its own rows, on loopback. Each
figure is a mean over the seeds. "own": the loss of the weights with which a peer trains, before leave(), mean of the
peers; "shared": that of the weights that all peers share then, as leave() would give them without a flush; "after":
that after leave(). "sent" is what one peer has sent to all others, everything included, and "density" what the peer
planned. "alone" is one process without Rumor, whose steps have the rows of all peers together.

Usage: torch_flush.py [--seeds N] [--text FILE] LIBRARY PACKAGE
       An MLP of 22,000 parameters on Fashion-MNIST, or with FILE a transformer of 34,000 on its bytes.
"""
import argparse
import copy
import json
import os
import pathlib
import statistics
import sys
import time

from torch_overhead import torch  # which ends here without PyTorch

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / 'system'))
sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / 'system' / 'bridge'))
from peers import free_ports  # noqa: E402
import rival_tasks  # noqa: E402

nn = torch.nn
PAUSE = 0.002  # seconds after each step: loops of single milliseconds are none that people run


class Pictures(rival_tasks.Pictures):
    batch, test_rows = 16, 10000
    runs = [(2, steps, density) for density in (0.001, 0.02) for steps in (150, 400, 1200)]

    def net(self):
        return nn.Sequential(nn.Linear(784, self.width), nn.ReLU(), nn.Linear(self.width, 10))


class Text(rival_tasks.Text):
    batch, test_rows, context, shape = 16, 512, 32, (2, 4, 32)
    runs = [(peers, steps, density) for peers, steps in ((2, 300), (2, 1000), (4, 150)) for density in (0.001, 'auto')]


def join(task, count, steps, density, seed):
    """Models with equal weights, optimizers, swarms."""
    import rumor
    addresses = [f'127.0.0.1:{port}' for port in free_ports(count)]
    nets, swarms = [], []
    for me in range(count):
        torch.manual_seed(seed)
        nets.append(task.net())
        swarms.append(rumor.join('flush', nets[-1], listen=addresses[me], seeds=addresses[:me], density=density,
                                 batch_size=task.batch, options={'steps': steps * count, 'quiet': True}))
    return nets, [torch.optim.AdamW(net.parameters(), 0.003) for net in nets], swarms


def step(task, net, optimizer):
    loss = task.loss(net)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss


def alone(task, count, steps, seed):
    task = copy.copy(task)
    task.batch *= count
    torch.manual_seed(seed)
    net = task.net()
    optimizer = torch.optim.AdamW(net.parameters(), 0.003)
    for _ in range(steps):
        step(task, net, optimizer)
    return task.test_loss(net)


def run(task, count, steps, density, seed):
    nets, optimizers, swarms = join(task, count, steps, density, seed)
    torch.manual_seed(100 + seed)
    for _ in range(steps):
        for net, optimizer, swarm in zip(nets, optimizers, swarms):
            swarm.step(loss=step(task, net, optimizer))
            time.sleep(PAUSE)
    planned = swarms[0].status()['compression']['target_density']
    own = [task.test_loss(net) for net in nets]
    with swarms[0].shared_weights():
        shared = task.test_loss(nets[0])
    for left in [swarm.leave_in_background(60) for swarm in swarms]:
        left.result()
    after = [task.test_loss(net) for net in nets]
    assert len({swarm.status()['digest'] for swarm in swarms}) == 1 and len(set(after)) == 1, 'the peers differ'
    sent = statistics.mean(swarm.status()['traffic']['sent_bytes'] for swarm in swarms)
    return {'density': planned, 'own': statistics.mean(own), 'shared': shared, 'after': after[0], 'sent': sent,
            'alone': alone(task, count, steps, seed)}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split('\n', 1)[0])
    parser.add_argument('--seeds', type=int, default=3)
    parser.add_argument('--text', default='')
    parser.add_argument('library')
    parser.add_argument('package')
    options = parser.parse_args()
    os.environ['RUMOR_LIBRARY'] = options.library
    sys.path.insert(0, options.package)
    torch.set_num_threads(1)
    options.width = 28  # of the MLP's hidden layer
    task = Text(options) if options.text else Pictures(options)
    for count, steps, density in task.runs:
        runs = [run(task, count, steps, density, seed) for seed in range(1, options.seeds + 1)]
        print(json.dumps({'peers': count, 'steps': steps,
                          **{name: round(statistics.mean(one[name] for one in runs), 4) for name in runs[0]},
                          'after_of_seeds': [round(one['after'], 3) for one in runs]}), flush=True)


if __name__ == '__main__':
    main()
