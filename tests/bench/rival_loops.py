"""The loops of rivals.py: one task, and each way of training it on two machines.

A loop ends when rank 0 meets the target, or at the limit; rank 1 goes on until it is told. Returns what rank 0 saw.
"""
import os
import pathlib
import time

import torch
from torch import nn

import shaped_link
from rival_tasks import make_net, make_task

PORT = 7755


def seconds_a_step(job):
    """Of this machine, without any exchange, while the other rank measures too."""
    net = make_net(job.task)
    optimizer = job.task.optimizer(net.parameters(), job.rate)
    begin = time.monotonic()
    for _ in range(job.task.alone_steps):
        optimizer.zero_grad()
        job.task.loss(net).backward()
        optimizer.step()
    return (time.monotonic() - begin) / job.task.alone_steps


def train(job, net, optimizer, exchange):
    """Steps until the target is met. exchange(met), after the optimizer's step: whether the loop is over.

    "in_step" is the share of the time, evaluations aside, that passed in the optimizer's step and the exchange.
    DistributedDataParallel exchanges in backward(), which is not in it."""
    torch.manual_seed(10 + job.rank)
    print('begun', flush=True)
    begin, evaluating, in_step, steps, loss = time.monotonic(), 0.0, 0.0, 0, float('inf')
    looked, curve, over = begin, [], False
    while not over:
        optimizer.zero_grad()
        job.task.loss(net).backward()
        met = False
        if job.rank == 0 and time.monotonic() - looked > job.task.evaluate_every:
            looked = time.monotonic()
            loss = job.task.test_loss(net)
            curve.append((round(looked - begin, 1), steps, round(loss, 3)))
            met = loss <= job.loss or looked - begin > job.limit
            evaluating += time.monotonic() - looked
        steps += 1
        entered = time.monotonic()
        optimizer.step()
        over = exchange(met)
        in_step += time.monotonic() - entered
    seconds = time.monotonic() - begin
    return {'seconds': seconds, 'steps': steps, 'loss': loss, 'evaluating': evaluating,
            'in_step': in_step / (seconds - evaluating), 'curve': curve}


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
    net, state, ending = make_net(job.task), f'{job.folder}/{job.rank}', Ending(job)
    optimizer = job.task.optimizer(net.parameters(), job.rate)
    swarm = rumor.join('rivals', net, seeds=[f'{shaped_link.ADDRESSES[1 - job.rank]}:{PORT}'], state=state,
                       listen=f'{shaped_link.ADDRESSES[job.rank]}:{PORT}', batch_size=job.task.batch,
                       density=job.density,
                       options={'allow': f'{state}/allowed', 'overhead': job.overhead})
    while not swarm.status()['peers']:
        time.sleep(0.1)

    told = train(job, net, optimizer, lambda met: not swarm.step() or ending.is_over(met))
    swarm.close()
    return told


def run_ddp(job):
    import torch.distributed as dist
    os.environ['GLOO_SOCKET_IFNAME'] = shaped_link.DEVICE
    dist.init_process_group('gloo', init_method=f'tcp://{shaped_link.ADDRESSES[0]}:{PORT}', rank=job.rank, world_size=2)
    net = nn.parallel.DistributedDataParallel(make_net(job.task))
    optimizer, over, steps = job.task.optimizer(net.parameters(), job.rate), torch.zeros(1), [0]

    def exchange(met):
        """Whether rank 0 has met the target is told every tenth step, so that it costs little."""
        over[0] = max(over[0].item(), float(met))
        steps[0] += 1
        if steps[0] % 10 != 0:
            return False
        dist.broadcast(over, 0)
        return over[0].item() > 0

    told = train(job, net, optimizer, exchange)
    dist.destroy_process_group()
    return told


def run_hivemind(job, local=False, behind=False):
    """local: averages weights instead of gradients. behind: trains on while weights are averaged, and adds what the
    average changes (hivemind's delta rule)."""
    import hivemind
    import hivemind.compression
    net, ending, first = make_net(job.task), Ending(job), pathlib.Path(job.folder) / 'first'
    while job.rank == 1 and not first.exists():
        time.sleep(0.1)
    dht = hivemind.DHT(start=True, host_maddrs=[f'/ip4/{shaped_link.ADDRESSES[job.rank]}/tcp/{PORT}'],
                       initial_peers=[first.read_text()] if job.rank == 1 else None)
    if job.rank == 0:
        (first.parent / 'part').write_text(str(dht.get_visible_maddrs()[0]))
        os.rename(first.parent / 'part', first)
    half = hivemind.compression.Float16Compression()
    optimizer = hivemind.Optimizer(
        dht=dht, run_id='rivals', target_batch_size=job.average_rows, batch_size_per_step=job.task.batch,
        optimizer=lambda groups: job.task.optimizer(groups, job.rate), params=net.parameters(),
        use_local_updates=local, matchmaking_time=job.matchmaking, averaging_timeout=60, delay_state_averaging=behind,
        grad_compression=half, state_averaging_compression=half)
    there = pathlib.Path(job.folder) / f'there-{job.rank}'
    there.touch()
    while not (there.parent / f'there-{1 - job.rank}').exists():
        time.sleep(0.1)
    # Its processes end with this one, which is killed: an orderly end takes longer than the training.
    return {**train(job, net, optimizer, ending.is_over), 'averages': optimizer.local_epoch}


WAYS = {'rumor': run_rumor, 'ddp': run_ddp, 'hivemind': run_hivemind,
        'hivemind-local': lambda job: run_hivemind(job, local=True),
        'hivemind-behind': lambda job: run_hivemind(job, local=True, behind=True)}


def run(job):
    job.task = make_task(job)
    alone = seconds_a_step(job)
    told = WAYS[job.way](job)
    told['trains'] = min(1.0, alone * told['steps'] / max(told['seconds'] - told['evaluating'], 1e-9))
    return told
