"""The loops of rivals.py: one model, data and optimizer, and each way of training it on two machines.

A loop ends when rank 0 meets the target, or at the limit; rank 1 goes on until it is told. Returns what rank 0 saw.
"""
import os
import pathlib
import time

import torch
from torch import nn

import shaped_link
from torch_data import fashion

BATCH, ROWS, PORT = 32, 2000, 7755
EVALUATE_EVERY = 0.5  # seconds


def model(width):
    torch.set_num_threads(1)
    torch.manual_seed(1)
    return nn.Sequential(nn.Linear(784, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 10))


def _loss(net, images, labels):
    with torch.no_grad():
        return nn.functional.cross_entropy(net(images), labels).item()


def _pass(net, images, labels):
    rows = torch.randint(0, len(images), (BATCH,))
    nn.functional.cross_entropy(net(images[rows]), labels[rows]).backward()


def seconds_a_step(job):
    """Of this machine, without any exchange, while the other rank measures too."""
    net = model(job.width)
    optimizer = torch.optim.SGD(net.parameters(), job.rate)
    images, labels = fashion('train')
    begin = time.monotonic()
    for _ in range(300):
        optimizer.zero_grad()
        _pass(net, images, labels)
        optimizer.step()
    return (time.monotonic() - begin) / 300


def train(job, net, zero_grad, step):
    """Steps until the target is met. step(met): the exchange and the optimizer; returns whether the loop is over."""
    images, labels = fashion('train')
    test = [part[:ROWS] for part in fashion('t10k')]
    torch.manual_seed(10 + job.rank)
    print('begun', flush=True)
    begin, looked, evaluating, steps, loss = time.monotonic(), time.monotonic(), 0.0, 0, float('inf')
    while True:
        zero_grad()
        _pass(net, images, labels)
        met = False
        if job.rank == 0 and time.monotonic() - looked > EVALUATE_EVERY:
            looked = time.monotonic()
            loss = _loss(net, *test)
            met = loss <= job.loss or looked - begin > job.limit
            evaluating += time.monotonic() - looked
        steps += 1
        if step(met):
            return {'seconds': time.monotonic() - begin, 'steps': steps, 'loss': loss, 'evaluating': evaluating}


class Ending:
    """How rank 0 tells rank 1 that it is over, where the exchange has no word for it: a file."""

    def __init__(self, job):
        self.job, self.path, self.steps = job, pathlib.Path(job.folder) / 'over', 0

    def is_over(self, met):
        self.steps += 1
        if met:
            self.path.touch()
        return met or (self.job.rank == 1 and self.steps % 20 == 0 and self.path.exists())


def run_rumor(job):
    import rumor
    net, state, ending = model(job.width), f'{job.folder}/{job.rank}', Ending(job)
    optimizer = torch.optim.SGD(net.parameters(), job.rate)
    swarm = rumor.join('rivals', net, seeds=[f'{shaped_link.ADDRESSES[1 - job.rank]}:{PORT}'], state=state,
                       listen=f'{shaped_link.ADDRESSES[job.rank]}:{PORT}', batch_size=BATCH, density=job.density,
                       options={'allow': f'{state}/allowed', 'overhead': job.overhead})
    while not swarm.status()['peers']:
        time.sleep(0.1)

    def step(met):
        optimizer.step()
        return not swarm.step() or ending.is_over(met)

    told = train(job, net, optimizer.zero_grad, step)
    swarm.close()
    return told


def run_ddp(job):
    import torch.distributed as dist
    os.environ['GLOO_SOCKET_IFNAME'] = shaped_link.DEVICE
    dist.init_process_group('gloo', init_method=f'tcp://{shaped_link.ADDRESSES[0]}:{PORT}', rank=job.rank, world_size=2)
    net = nn.parallel.DistributedDataParallel(model(job.width))
    optimizer, over, steps = torch.optim.SGD(net.parameters(), job.rate), torch.zeros(1), [0]

    def step(met):
        """Whether rank 0 has met the target is told every tenth step, so that it costs little."""
        optimizer.step()
        over[0] = max(over[0].item(), float(met))
        steps[0] += 1
        if steps[0] % 10 != 0:
            return False
        dist.broadcast(over, 0)
        return over[0].item() > 0

    told = train(job, net, optimizer.zero_grad, step)
    dist.destroy_process_group()
    return told


def run_hivemind(job, local=False):
    import hivemind
    import hivemind.compression
    net, ending, first = model(job.width), Ending(job), pathlib.Path(job.folder) / 'first'
    while job.rank == 1 and not first.exists():
        time.sleep(0.1)
    dht = hivemind.DHT(start=True, host_maddrs=[f'/ip4/{shaped_link.ADDRESSES[job.rank]}/tcp/{PORT}'],
                       initial_peers=[first.read_text()] if job.rank == 1 else None)
    if job.rank == 0:
        (first.parent / 'part').write_text(str(dht.get_visible_maddrs()[0]))
        os.rename(first.parent / 'part', first)
    half = hivemind.compression.Float16Compression()
    optimizer = hivemind.Optimizer(
        dht=dht, run_id='rivals', target_batch_size=job.average_rows, batch_size_per_step=BATCH,
        optimizer=lambda groups: torch.optim.SGD(groups, job.rate), params=net.parameters(), use_local_updates=local,
        matchmaking_time=job.matchmaking, averaging_timeout=60, delay_state_averaging=False,
        grad_compression=half, state_averaging_compression=half)
    there = pathlib.Path(job.folder) / f'there-{job.rank}'
    there.touch()
    while not (there.parent / f'there-{1 - job.rank}').exists():
        time.sleep(0.1)

    def step(met):
        optimizer.step()
        return ending.is_over(met)

    # Its processes end with this one, which is killed: an orderly end takes longer than the training.
    return {**train(job, net, optimizer.zero_grad, step), 'averages': optimizer.local_epoch}


WAYS = {'rumor': run_rumor, 'ddp': run_ddp, 'hivemind': run_hivemind,
        'hivemind-local': lambda job: run_hivemind(job, local=True)}


def run(job):
    alone = seconds_a_step(job)
    told = WAYS[job.way](job)
    told['trains'] = min(1.0, alone * told['steps'] / max(told['seconds'] - told['evaluating'], 1e-9))
    return told
