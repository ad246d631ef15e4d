"""Real daemons behind a network that misbehaves, on disks that are full, killed in storms.

usage: chaos_daemons.py RUMOR SCENARIO [LIBRARY] (bad_disk.cc, for the scenario of that name)

The proxy's chances follow from the seed in RUMOR_CHAOS_SEED (1); a failure prints it. What the daemons make of it
depends on the machine too.
"""
import os
import signal
import sys
import time

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir))

import peers  # noqa: E402
from chaos import PASS, REFUSE, SWALLOW  # noqa: E402
from chaos_swarm import ChaosSwarm, Replacement  # noqa: E402
from full_disk import LimitedFileSize, full_disk  # noqa: E402
from peers import wait_for  # noqa: E402

SEED = int(os.environ.get('RUMOR_CHAOS_SEED', '1'))
BAD_DISK = ''  # set below


def resets():
    """Links are reset at random while all train; some new ones are refused."""
    with ChaosSwarm(4, 14_000, SEED) as swarm:
        swarm.start().await_links()
        swarm.chaos.rule(lambda caller, callee: REFUSE if swarm.chaos.chance.random() < 0.2 else 'pass')
        while swarm.progress() < swarm.goal * 0.7:
            swarm.all_alive()
            if wire := swarm.chaos.pick():
                swarm.chaos.reset(wire)
            time.sleep(0.1)
        assert swarm.chaos.counts['resets'] >= 10, swarm.chaos.counts
        swarm.finish_equal()


def flips():
    """Single bits flip, in handshakes and in mid-link: that connection dies, no process does, nothing is applied."""
    with ChaosSwarm(3, 8_000, SEED) as swarm:
        swarm.start().await_links()
        chance = swarm.chaos.chance

        def damage(wire):  # one new connection in two is hit early: in the handshake or in the greeting
            if chance.random() < 0.5:
                wire.flip_at[chance.randrange(2)] = chance.randrange(3000)
        swarm.chaos.prepare(damage)
        hit = 0
        while swarm.progress() < swarm.goal * 0.7 or hit < 5:
            swarm.all_alive()
            if wire := swarm.chaos.pick():
                swarm.chaos.flip(wire, chance.randrange(2))
                wait_for('the flipped connection to die', lambda w=wire: w not in swarm.chaos.wires)
                hit += wire.flipped
        assert swarm.chaos.counts['flips'] >= hit >= 5, (swarm.chaos.counts, hit)
        swarm.finish_equal()


def slow_wires():
    """A wire that stalls and goes on, a throttled one, all others cut to segments of one byte: all go on and agree."""
    with ChaosSwarm(4, 30_000, SEED) as swarm:  # enough that training still goes on after the stall
        swarm.chaos.prepare(lambda wire: setattr(wire, 'segment', True))
        swarm.start().await_links()
        stalled, throttled = swarm.chaos.pick(), swarm.chaos.pick(lambda w: w.caller == 3 or w.callee == 3)
        throttled.bytes_per_second = 4000
        swarm.chaos.stall(stalled)
        at = swarm.progress()
        began = time.monotonic()
        wait_for('training beside a stalled link', lambda: swarm.progress() >= at + 3000)
        wait_for('3 s of stall', lambda: time.monotonic() > began + 3)
        swarm.chaos.resume(stalled)
        bytes_then = list(stalled.bytes)
        wait_for('the stalled link to go on', lambda: sum(stalled.bytes) > sum(bytes_then) + 1000)
        assert stalled in swarm.chaos.wires, 'a stall of 3 s ended the link'
        swarm.finish_equal()


def dead_links():
    """A closed link is replaced within 2 s, a silent one within 20 s; a half-open address harms nobody meanwhile.

    Longer than the others: a silent link is only known to be dead after 15 s.
    """
    with ChaosSwarm(3, 10_000_000, SEED) as swarm:
        chaos = swarm.chaos
        swarm.start().await_links()
        wait_for('some traffic', lambda: all(s and s['samples'] > 8000 for s in swarm.statuses()))
        silent = Replacement(swarm, 1, 2)
        for wire in chaos.all_between(1, 2):
            chaos.swallow(wire)
        chaos.rule(lambda a, b: SWALLOW if time.monotonic() < silent.start + 4 and {a, b} == {1, 2} else 'pass')
        closed = []
        for _ in range(4):
            time.sleep(1)  # so that /status speaks of the link to be closed
            closed.append(Replacement(swarm, 0, 1))
            for wire in chaos.all_between(0, 1):
                chaos.reset(wire)
            wait_for('a new link between 0 and 1', closed[-1].done, 5)
        wait_for('a new link between 1 and 2', silent.done, 25)
        print(f'a closed link was replaced after {max(c.seconds for c in closed):.2f} s at most, '
              f'a silent one after {silent.seconds:.1f} s')
        assert max(c.seconds for c in closed) < 2 * peers.SLOW
        assert 10 < silent.seconds < 20 * peers.SLOW, 'not silence ended that link, or it ended late'
        swarm.all_alive()
        chaos.heal()
        for peer in swarm.peers:
            assert peer.stop() == 0


def partition():
    """Two halves train on without each other, links cut the hard way; healed, all are equal and nothing is lost."""
    with ChaosSwarm(4, 14_000, SEED) as swarm:
        swarm.start().await_links()
        swarm.chaos.partition({0, 1})
        before = [s['updates'] for s in swarm.statuses()]

        def apart():
            now = swarm.statuses()
            return (all(now) and all(len(s['peers']) == 1 for s in now)
                    and all(s['updates'] > b + 150 for s, b in zip(now, before)))
        wait_for('both halves to train on by themselves', apart)
        assert len({s['digest'] for s in swarm.statuses()}) >= 2
        swarm.finish_equal()


def invited():
    """Nobody can dial peer 2, nor can it dial 1, which has 0 tell it that a link is wanted; then there is a way."""
    with ChaosSwarm(3, 30_000, SEED) as swarm:
        ways = {(1, 0), (2, 0), (0, 1)}
        swarm.chaos.rule(lambda caller, callee: PASS if (caller, callee) in ways else REFUSE)
        swarm.start()
        wait_for('the invitation', lambda: 'cannot dial us and asks for it' in swarm.peers[2].said())
        assert not swarm.link_of(1, 2)
        ways.add((2, 1))
        wait_for('a link that 2 has dialled', lambda: (link := swarm.link_of(2, 1)) and link['dialled_by_us'])
        swarm.finish_equal()


def kill_storm():
    """Four daemons, a kill -9 twice a second; they come back with their state directories, or without."""
    with ChaosSwarm(4, 14_000, SEED) as swarm:
        swarm.start().await_links()
        kills = 0
        while swarm.progress() < swarm.goal * 0.7 or kills < 8:
            victim = swarm.chaos.chance.randrange(4)
            swarm.kill(victim, lose_state=swarm.chaos.chance.random() < 0.3)
            kills += 1
            time.sleep(swarm.chaos.chance.uniform(0, 0.3))
            swarm.start(victim)
            time.sleep(0.5)
            swarm.all_alive()
        swarm.finish_equal()


def stopped():
    """SIGSTOP for some seconds, one after another: no link is given up for it, and all end equal."""
    with ChaosSwarm(3, 16_000, SEED) as swarm:
        swarm.start().await_links()
        for peer in swarm.peers:
            others = [p for p in swarm.peers if p is not peer]
            peer.process.send_signal(signal.SIGSTOP)
            at = max(p.samples() for p in others)
            stopped_at = time.monotonic()
            wait_for('the others to train on', lambda o=others, a=at: max(p.samples() for p in o) > a + 1000)
            wait_for('1.5 s', lambda t=stopped_at: time.monotonic() > t + 1.5)
            peer.process.send_signal(signal.SIGCONT)
        swarm.await_links()
        for peer in swarm.peers:
            assert 'is down: silent' not in peer.said(), f'peer {peer.index} gave a paused link up'
        swarm.finish_equal()


def disk_full():
    """A full disk under a state directory, then a limit on the size of files there: training and spreading go on."""
    with ChaosSwarm(2, 30_000, SEED) as swarm, full_disk(swarm.peers[0].state) as disk:
        peer, limited = swarm.peers[0], LimitedFileSize()
        checkpoint = os.path.join(disk.visible(peer.state), 'checkpoint.1')
        disk.start(swarm)
        swarm.start(1).await_links()
        wait_for('a first checkpoint', lambda: os.path.exists(checkpoint))
        disk.fill(peer)
        wait_for('the trouble in /status', lambda: 'cannot write' in (peer.status() or {}).get('storage_trouble', ''))
        assert 'checkpoint not written' in peer.said() and 'make room' in peer.said(), peer.said()
        wait_for('a word about the log', lambda: 'updates are not kept on disk' in peer.said())
        at = peer.status()
        wait_for('training and spreading on',
                 lambda: all(s and s['updates'] > at['updates'] + 100 for s in swarm.statuses()))
        assert peer.status()['steps'] > at['steps'], 'the peer with the full disk stopped training'
        swarm.kill(0)
        disk.start(swarm)  # the old checkpoint is whole, and what it lacks comes from the other
        wait_for('the restarted peer to train',
                 lambda: (s := peer.status()) and (s['steps'] > 0 or s['phase'] == 'finished'))
        assert 'going on from the' in peer.said() and 'is of no use' not in peer.said(), peer.said()
        disk.free(peer)
        limited.fill(peer)
        wait_for('the trouble once more', lambda: 'large' in (peer.status() or {}).get('storage_trouble', ''))
        limited.free(peer)
        wait_for('a checkpoint again', lambda: (peer.status() or {'storage_trouble': '?'})['storage_trouble'] == '')
        assert 'checkpoints are written again' in peer.said(), peer.said()
        wait_for('the log to go on', lambda: 'updates are kept on disk again' in peer.said())
        swarm.finish_equal()


def bad_disk():
    """fsync takes 0.3 s, checkpoints are made every 0.1 s: none pile up. Then fsync fails: said, and gone on."""
    with ChaosSwarm(2, 4_000, SEED) as swarm:
        peer, orders = swarm.peers[0], os.path.join(swarm.directory, 'orders')

        def order(text):
            with open(orders, 'w', encoding='ascii') as file:
                file.write(text)
        order('300')
        wrap = ['env', f'LD_PRELOAD={os.path.abspath(BAD_DISK)}', f'BAD_DISK={orders}']
        swarm.start(0, wrap=wrap, checkpoint_every=0.1).start(1).await_links()
        swarm.await_equal()
        order('0 fail')
        wait_for('the trouble in /status', lambda: 'cannot write' in (peer.status() or {}).get('storage_trouble', ''))
        order('300')
        wait_for('a checkpoint again', lambda: (peer.status() or {'storage_trouble': '?'})['storage_trouble'] == '')
        asked = time.monotonic()
        swarm.finish_equal()
        # Two checkpoints of some four fsyncs each, at most; a queue of them would take a minute.
        assert time.monotonic() - asked < 8 * peers.SLOW, 'checkpoints had piled up'
        assert os.path.exists(os.path.join(peer.state, 'checkpoint.1'))


SCENARIOS = {f.__name__: f for f in (resets, flips, slow_wires, dead_links, partition, invited, kill_storm, stopped,
                                     disk_full, bad_disk)}

if __name__ == '__main__':
    peers.RUMOR = os.path.abspath(sys.argv[1])
    BAD_DISK = sys.argv[3] if len(sys.argv) > 3 else ''
    SCENARIOS[sys.argv[2]]()
    print('ok')
