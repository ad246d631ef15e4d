#!/usr/bin/env python3
"""How long a joiner takes, and what it costs when donors die: real daemons, links shaped by their own byte caps.

  joining.py RUMOR            a small model over a slow link, donors killed 200 times at random during transfers
  joining.py RUMOR --large    124 million weights at 100 Mbit/s, two donors: needs some 14 GiB of memory
  joining.py RUMOR --busy     the same while the donors train and fill half of their links

Busy: also how much longer than before the donors' trainers wait between two steps while a joiner is served.
Small: a first joiner is left in peace; what the others receive beyond its bytes must be at most one chunk a kill.
"""
import argparse
import json
import os
import random
import shutil
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, 'system'))

import peers  # noqa: E402
from peers import Swarm, wait_for  # noqa: E402

SMALL = dict(hidden=[400, 400], density=0.1, updates=160, mbit=1, patience=120)
LARGE = dict(hidden=[11000, 11000], density=0.001, updates=12, mbit=100, patience=1800)
PAUSE_MS_MAX = 50
BEFORE_S = 60  # so long the donors are looked at without a joiner


def weights(hidden):
    sizes = [64, *hidden, 10]
    return sum(a * b + b for a, b in zip(sizes, sizes[1:]))


def chunk_bytes(params):
    size = 512
    while size < 4 * params // 64 + 1:
        size *= 2
    return min(size, 1 << 20)


class Run:
    def __init__(self, shape, donors, *settings):
        self.shape, self.donors = shape, donors
        self.swarm = Swarm(donors + 1, 0, f'model.hidden={shape["hidden"]}', 'optimizer.rate=0.01',
                           *(settings or (f'compress.density={shape["density"]}', 'network.log_mib=1',
                                          f'run.samples={16 * shape["updates"]}')))
        # A share of the cores each: else a pause is mostly a thread that waits for a core.
        self.caps = ['--set', f'network.up_mbit={shape["mbit"]}', '--set', f'network.down_mbit={shape["mbit"]}',
                     '--threads', str(max(1, (os.cpu_count() or 1) // donors))]
        self.joiner = self.swarm.peers[donors]

    def start_donor(self, index):
        large = self.donors == 2
        self.swarm.peers[index].start('--quiet', '--checkpoint-every', '3600' if large else '2',
                                      *(self.caps if large else ()))

    def train(self):
        for index in range(self.donors):
            self.start_donor(index)
        finished = [peer.status for peer in self.swarm.peers[:self.donors]]
        wait_for('the donors to finish',
                 lambda: all((s := status()) and s['phase'] in ('finishing', 'finished') for status in finished)
                 and len({status()['digest'] for status in finished}) == 1, self.shape['patience'])
        time.sleep(5)
        return finished[0]()

    def start_joiner(self):
        shutil.rmtree(self.joiner.state, ignore_errors=True)
        # Where donors train the joiner gets what cores they leave: it stands for a machine of its own.
        wrap = ('nice', '-n', '15') if self.donors == 2 else ()
        self.joiner.start('--quiet', '--checkpoint-every', '3600', *self.caps, wrap=wrap)
        return time.monotonic()

    def joined(self, digest):
        status = self.joiner.status()
        return status if status and status['digest'] == digest else None

    def stop_joiner(self):
        self.joiner.kill()


def large(run):
    goal = run.train()
    began = run.start_joiner()
    status = wait_for('an equal digest', lambda: run.joined(goal['digest']), run.shape['patience'])
    idle_s = round(time.monotonic() - began, 1)
    print(json.dumps({'weights': goal['params'], 'updates': goal['updates'], 'idle_s': idle_s,
                      'received_MB': round(status['traffic']['received_bytes'] / 1e6, 1),
                      'snapshots': status['traffic']['snapshots_installed']}, indent=2))


def pauses_until(run, until, patience):
    """What `until` gives at last, and the donors' pauses on the way there, ascending, in milliseconds: at each look the
    longest of the last ten seconds in which a trainer waited for its next step."""
    pauses = []

    def look():
        pauses.extend(s['pause_ms'] for peer in run.swarm.peers[:run.donors] if (s := peer.status()))
        return until()
    return wait_for('a joiner that trains', look, patience), sorted(pauses)


def summary(pauses):
    return {name: round(pauses[int(share * (len(pauses) - 1))], 1)
            for name, share in (('median', 0.5), ('nine_in_ten', 0.9), ('most', 1))}


def busy(run):
    for index in range(run.donors):
        run.start_donor(index)
    donors = run.swarm.peers[:run.donors]
    # Enough that a joiner rather takes the weights: gossip/PROTOCOL.md, 6.7.
    wait_for('a history longer than the weights', lambda: all(
        (s := peer.status()) and s['log']['bytes'] > 6 * s['params']
        for peer in donors), run.shape['patience'])
    began, before = time.monotonic(), donors[0].status()
    _, usual = pauses_until(run, lambda: time.monotonic() - began > BEFORE_S, 2 * BEFORE_S)
    after = donors[0].status()
    moved = sum(after['traffic'][key] - before['traffic'][key] for key in ('sent_bytes', 'received_bytes'))
    began = run.start_joiner()
    status, joining = pauses_until(
        run, lambda: (s := run.joiner.status()) and s['phase'] == 'training' and s, run.shape['patience'])
    busy_s = round(time.monotonic() - began, 1)
    print(json.dumps({'weights': after['params'], 'load_mbit': round(moved * 8e-6 / BEFORE_S, 1), 'busy_s': busy_s,
                      'received_MB': round(status['traffic']['received_bytes'] / 1e6, 1),
                      'snapshots': status['traffic']['snapshots_installed'],
                      'pause_ms': {'before': summary(usual), 'while joining': summary(joining)}}, indent=2))
    assert joining[-1] <= usual[-1] + PAUSE_MS_MAX, 'the donors waited too long'


def small(run, kills_wanted, chances):
    goal = run.train()
    run.start_joiner()
    status = wait_for('an equal digest', lambda: run.joined(goal['digest']), run.shape['patience'])
    in_peace = status['traffic']['received_bytes']
    assert status['traffic']['snapshots_installed'] == 1, status['traffic']
    run.stop_joiner()
    chunk = chunk_bytes(goal['params'])
    kills, joins, extra_worst, snapshots = 0, 0, 0, 0
    while kills < kills_wanted:
        began, kills_now = run.start_joiner(), 0
        while not (status := run.joined(goal['digest'])):
            assert time.monotonic() - began < run.shape['patience'] * 3, run.joiner.status()
            time.sleep(chances.uniform(0.05, 0.6))
            now = run.joiner.status()
            if not now or 'downloading' not in now['waiting_for']:
                continue
            victim = chances.randrange(run.donors)
            run.swarm.peers[victim].kill()
            kills_now += 1
            run.start_donor(victim)
        extra = status['traffic']['received_bytes'] - in_peace
        extra_worst = max(extra_worst, extra - kills_now * chunk)
        snapshots += status['traffic']['snapshots_installed']
        kills, joins = kills + kills_now, joins + 1
        took = time.monotonic() - began
        print(f'join {joins}: {kills_now} kills, {took:.1f} s, {extra / 1e3:.0f} kB more', flush=True)
        assert extra <= kills_now * (chunk + 16_000) + 0.05 * in_peace, (extra, kills_now)
        run.stop_joiner()
    print(json.dumps({'weights': goal['params'], 'kills': kills, 'joins': joins, 'snapshots': snapshots,
                      'in_peace_MB': round(in_peace / 1e6, 2), 'chunk_kB': chunk / 1e3,
                      'most_beyond_a_chunk_a_kill_kB': round(extra_worst / 1e3, 1)}, indent=2))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('rumor')
    parser.add_argument('--large', action='store_true')
    parser.add_argument('--busy', action='store_true')
    parser.add_argument('--kills', type=int, default=200)
    parser.add_argument('--seed', type=int, default=1)
    options = parser.parse_args()
    peers.RUMOR = os.path.abspath(options.rumor)
    if options.busy:
        half = LARGE['mbit'] * 125_000 // 2
        # A step takes 1 to 1.5 s of a core here; three peers share the cores, so each leaves some.
        run = Run(LARGE, 2, f'compress.bytes_per_second={half // 2}', 'exchange.period_ms=2500', 'run.samples=10000000',
                  'network.log_mib=4096')
    else:
        run = Run(LARGE if options.large else SMALL, 2 if options.large else 3)
    with run.swarm:
        if options.busy:
            busy(run)
        elif options.large:
            large(run)
        else:
            small(run, options.kills, random.Random(options.seed))
    print('ok')


if __name__ == '__main__':
    main()
