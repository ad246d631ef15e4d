"""Real peers behind the chaos proxy (chaos.py), and what must hold whatever was done to them.

A peer here trains until the run has its samples and then serves on, so that all of it can be read from /status while it
lives. Each update carries one batch: `samples` is counted as updates are applied and `updates` from the names of those
applied, so samples == batch * updates on every replica says that none was applied twice or named without being applied.
"""
import shutil
import signal
import time

from chaos import Chaos
from peers import SLOW, Swarm, wait_for

BATCH = 16  # of the preset `synthetic`


class ChaosSwarm(Swarm):
    """proxied: False leaves the proxy out; peers reach each other directly."""

    def __init__(self, count, samples, seed, period_ms=20, proxied=True):
        super().__init__(count, 0, f'run.samples={samples}', f'exchange.period_ms={period_ms}')
        self.goal = samples
        self.chaos = Chaos(seed)
        self.fronts = [peer.listen for peer in self.peers]
        for peer in self.peers if proxied else []:
            self.fronts[peer.index] = f'127.0.0.1:{self.chaos.front(peer.index, int(peer.listen.split(":")[1]))}'
        for peer in self.peers:
            peer.seeds = [front for k, front in enumerate(self.fronts) if k != peer.index]
        self.held_before = 0  # steps of killed processes without an update of their own

    def __exit__(self, kind, value, trace):
        if kind:
            print(f'chaos seed {self.chaos.seed}: {self.chaos.counts}')
        for peer in self.peers:
            if peer.process and peer.process.poll() is None:
                peer.process.send_signal(signal.SIGCONT)
        super().__exit__(kind, value, trace)
        self.chaos.close()

    def start(self, *indices, wrap=(), checkpoint_every=1):
        for index in indices or range(self.count):
            peer = self.peers[index]
            peer.start('--set', f'network.advertise=["{self.fronts[index]}"]', '--checkpoint-every',
                       str(checkpoint_every), wrap=wrap)
            self.chaos.know(index, peer.process.pid)
        return self

    def kill(self, index, lose_state=False):
        peer = self.peers[index]
        last = peer.status() if peer.process and peer.process.poll() is None else None
        self.held_before += last['steps_held'] if last else 0
        peer.kill()
        if lose_state:
            shutil.rmtree(peer.state, ignore_errors=True)

    def statuses(self):
        return [peer.status() for peer in self.peers]

    def await_links(self, seconds=20):
        """Everybody linked to everybody, and training."""
        def linked():
            self.all_alive()
            return all(s and len(s['peers']) == self.count - 1 and s['steps'] > 0 for s in self.statuses())
        wait_for('links between all', linked, seconds)

    def link_of(self, one, other):
        """How `one` sees its link to `other`: the entry of /status, or None."""
        status, there = self.peers[one].status(), self.peers[other].status()
        found = [p for p in (status or {}).get('peers', []) if there and p['node_id'] == there['node_id']]
        return found[0] if found else None

    def await_equal(self, seconds=60, done=True):
        """All replicas equal, nothing lost, doubled or invalid; the seconds it took. done: and trained to the end."""
        start, seen = time.monotonic(), []

        def equal():
            self.all_alive()
            seen[:] = self.statuses()
            return (all(seen) and len({s['digest'] for s in seen}) == 1
                    and (not done or all(s['phase'] == 'finished' for s in seen)))
        try:
            wait_for('equal digests', equal, seconds, self.progress if done else None)
        except AssertionError:
            for s in seen:
                print(s and {k: s[k] for k in ('phase', 'samples', 'updates', 'digest', 'waiting_for', 'live_peers')})
            raise
        took = time.monotonic() - start
        for index, s in enumerate(seen):
            assert s['updates'] == seen[0]['updates'], (index, s['updates'], seen[0]['updates'])
            assert s['samples'] == seen[0]['samples'], (index, s['samples'], seen[0]['samples'])
            # A step without an update of its own (ahead of the network) is counted with the next one.
            held = self.held_before + sum(other['steps_held'] for other in seen)
            assert BATCH * s['updates'] <= s['samples'] <= BATCH * (s['updates'] + held), (
                index, s['samples'], s['updates'], held)
            assert s['traffic']['updates_lost'] == 0, (index, s['traffic'])
            assert s['traffic']['updates_invalid'] == 0, (index, s['traffic'])
        return took

    def finish_equal(self, seconds=60):
        """The chaos is over: equal replicas, then clean ends of all."""
        self.chaos.heal()
        took = self.await_equal(seconds)
        for peer in self.peers:
            peer.process.send_signal(signal.SIGTERM)
        for peer in self.peers:
            assert peer.process.wait(20 * SLOW) == 0, f'peer {peer.index} ended with {peer.process.returncode}'
        for peer in self.peers:
            assert 'diverged' not in peer.said(), f'peer {peer.index} speaks of divergence'
        return took


class Replacement:
    """Times from now until both ends show a link to each other that has come up since."""

    def __init__(self, swarm, one, other):
        self.swarm, self.ends = swarm, ((one, other), (other, one))
        self.start, self.seconds = time.monotonic(), None

    def done(self):
        links = [self.swarm.link_of(*end) for end in self.ends]
        gone = time.monotonic() - self.start
        if self.seconds is None and all(link and link['age_s'] < gone for link in links):
            self.seconds = gone
        return self.seconds is not None
