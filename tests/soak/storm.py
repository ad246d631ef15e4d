"""What the long tests share: a swarm that is counted while it is ill-treated, and the figures at the end."""
import argparse
import json
import os
import sys
import time

SYSTEM = os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, 'system')
sys.path[:0] = [SYSTEM, os.path.join(SYSTEM, 'chaos')]

import peers  # noqa: E402
from chaos import PASS, REFUSE, SWALLOW  # noqa: E402, F401
from chaos_swarm import BATCH, ChaosSwarm, Replacement  # noqa: E402, F401


def arguments(description, minutes, count, **more):
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument('rumor', help='the program, such as build/tools/rumor')
    parser.add_argument('--minutes', type=float, default=minutes, help=f'about how long (default {minutes})')
    parser.add_argument('--peers', type=int, default=count, help=f'how many daemons (default {count})')
    parser.add_argument('--seed', type=int, default=1, help='of the chances of the harness (default 1)')
    parser.add_argument('--period-ms', type=float, default=50, help='between two updates of a peer (default 50)')
    for name, (default, text) in more.items():
        parser.add_argument('--' + name.replace('_', '-'), type=float, default=default, help=f'{text} ({default})')
    options = parser.parse_args()
    peers.RUMOR = os.path.abspath(options.rumor)
    return options


class Storm(ChaosSwarm):
    """Training lasts about as long as the storm, so that it is never over before, and ends soon after.

    Updates are counted from outside: what a process had published when it was last looked at, 0.1 s before it was
    killed, must be in every replica at the end. So a loss is seen even by who does not trust the peers' own counters.
    """
    TAIL_S = 10
    SHARE = 0.9  # of the rate of undisturbed peers, as a guess: the storm ends when the samples near the goal

    def __init__(self, options, proxied):
        self.rate = options.peers * BATCH * 1000 / options.period_ms
        samples = int(self.rate * (self.SHARE * options.minutes * 60 + self.TAIL_S))
        super().__init__(options.peers, samples, options.seed, options.period_ms, proxied)
        self.limit_s = options.minutes * 60 * 1.3
        self.published = 0   # by processes that are gone, as last seen
        self.lost_seen = 0   # the peers' own counters, the same way
        self.kills = self.lost_states = 0
        self.started = time.monotonic()

    @property
    def killed(self):
        """Indices of the peers that are dead at present."""
        return {peer.index for peer in self.peers if peer.killed}

    def rages(self):
        self.all_alive()
        return (time.monotonic() - self.started < self.limit_s
                and self.progress() < self.goal - self.rate * self.TAIL_S)

    def strike(self, index, lose_state):
        status = self.peers[index].status()
        if status:
            self.published += status['steps']
            self.lost_seen += status['traffic']['updates_lost']
        time.sleep(0.1)
        self.kill(index, lose_state)
        self.kills += 1
        self.lost_states += lose_state

    def verdict(self, within_s, all_shared=True):
        """Ends the storm, waits for equal replicas, prints the figures; fails when a promise is broken.

        all_shared: nobody was cut off when it was killed, so all that was published had reached another peer."""
        lasted = time.monotonic() - self.started
        self.chaos.heal()
        for index in sorted(self.killed):
            self.start(index)
        began = time.monotonic()
        self.await_equal(within_s)
        took = time.monotonic() - began
        finals = self.statuses()
        self.finish_equal()
        held = self.held_before + sum(s['steps_held'] for s in finals)
        published = self.published + sum(s['steps'] for s in finals)
        figures = {
            'seed': self.chaos.seed, 'peers': self.count, 'storm_s': round(lasted, 1), 'kills': self.kills,
            'with_lost_state': self.lost_states, 'equal_after_s': round(took, 1), 'updates': finals[0]['updates'],
            'samples': finals[0]['samples'], 'published_at_least': published,
            'lost': max(0, published - finals[0]['updates']),
            'lost_as_counted_by_peers': self.lost_seen + sum(s['traffic']['updates_lost'] for s in finals),
            # A step without an update of its own is counted with the next one.
            'doubled': max(0, finals[0]['samples'] // BATCH - finals[0]['updates'] - held),
            'digest': finals[0]['digest'],
            'snapshots_installed': sum(s['traffic']['snapshots_installed'] for s in finals), **self.chaos.counts}
        print(json.dumps(figures, indent=2))
        assert figures['lost_as_counted_by_peers'] == 0 and figures['doubled'] == 0, figures
        assert figures['lost'] == 0 or not all_shared, figures
        print('ok')
