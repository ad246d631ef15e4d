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
import json
import os
import pathlib
import statistics
import sys
import time

from torch_overhead import torch  # which ends here without PyTorch
from torch_speed import gpt

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / 'system'))
sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / 'system' / 'bridge'))
from peers import free_ports  # noqa: E402
from torch_data import fashion  # noqa: E402

nn = torch.nn
PAUSE = 0.002  # seconds after each step: loops of single milliseconds are none that people run


class Pictures:
    rows = 16
    runs = [(2, steps, density) for density in (0.001, 0.02) for steps in (150, 400, 1200)]

    def __init__(self, _):
        self.images, self.labels = fashion('train')
        self.test = fashion('t10k')

    def net(self):
        return nn.Sequential(nn.Linear(784, 28), nn.ReLU(), nn.Linear(28, 10))

    def loss(self, net, rows):
        rows = torch.randint(0, len(self.images), (rows,))
        return nn.functional.cross_entropy(net(self.images[rows]), self.labels[rows])

    def test_loss(self, net):
        return nn.functional.cross_entropy(net(self.test[0]), self.test[1])


class Text:
    rows, context = 16, 32
    runs = [(peers, steps, density) for peers, steps in ((2, 300), (2, 1000), (4, 150)) for density in (0.001, 'auto')]

    def __init__(self, path):
        self.bytes = torch.frombuffer(bytearray(pathlib.Path(path).read_bytes()), dtype=torch.uint8).long()
        self.trained = len(self.bytes) * 9 // 10

    def net(self):
        net = gpt(2, 4, 32, self.context)(nn)
        for name, parameter in net.named_parameters():  # as GPT-2 begins
            if parameter.dim() == 2:
                nn.init.normal_(parameter, std=0.02)
            elif name.endswith('bias'):
                nn.init.zeros_(parameter)
        return net

    def _loss(self, net, begins):
        rows = self.bytes[begins[:, None] + torch.arange(self.context + 1)]
        return nn.functional.cross_entropy(net(rows[:, :-1]).flatten(0, 1), rows[:, 1:].flatten())

    def loss(self, net, rows):
        return self._loss(net, torch.randint(0, self.trained - self.context, (rows,)))

    def test_loss(self, net):
        return self._loss(net, torch.linspace(self.trained, len(self.bytes) - self.context - 2, 512).long())


def join(task, count, steps, density, seed):
    """Models with equal weights, optimizers, swarms."""
    import rumor
    addresses = [f'127.0.0.1:{port}' for port in free_ports(count)]
    nets, swarms = [], []
    for me in range(count):
        torch.manual_seed(seed)
        nets.append(task.net())
        swarms.append(rumor.join('flush', nets[-1], listen=addresses[me], seeds=addresses[:me], density=density,
                                 batch_size=task.rows, options={'steps': steps * count, 'quiet': True}))
    return nets, [torch.optim.AdamW(net.parameters(), 0.003) for net in nets], swarms


def step(task, net, optimizer, rows):
    loss = task.loss(net, rows)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss


def alone(task, count, steps, seed):
    torch.manual_seed(seed)
    net = task.net()
    optimizer = torch.optim.AdamW(net.parameters(), 0.003)
    for _ in range(steps):
        step(task, net, optimizer, count * task.rows)
    with torch.no_grad():
        return task.test_loss(net).item()


def run(task, count, steps, density, seed):
    nets, optimizers, swarms = join(task, count, steps, density, seed)
    torch.manual_seed(100 + seed)
    for _ in range(steps):
        for net, optimizer, swarm in zip(nets, optimizers, swarms):
            swarm.step(loss=step(task, net, optimizer, task.rows))
            time.sleep(PAUSE)
    planned = swarms[0].status()['compression']['target_density']
    with torch.no_grad():
        own = [task.test_loss(net).item() for net in nets]
        with swarms[0].shared_weights():
            shared = task.test_loss(nets[0]).item()
        for left in [swarm.leave_in_background(60) for swarm in swarms]:
            left.result()
        after = [task.test_loss(net).item() for net in nets]
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
    task = Text(options.text) if options.text else Pictures(None)
    for count, steps, density in task.runs:
        runs = [run(task, count, steps, density, seed) for seed in range(1, options.seeds + 1)]
        print(json.dumps({'peers': count, 'steps': steps,
                          **{name: round(statistics.mean(one[name] for one in runs), 4) for name in runs[0]},
                          'after_of_seeds': [round(one['after'], 3) for one in runs]}), flush=True)


if __name__ == '__main__':
    main()
