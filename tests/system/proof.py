"""Peers that audit each other: a cheat is found, proven and put out by the others alone, and its part taken back.

usage: proof.py RUMOR CHEATING_PEER"""
import os
import subprocess
import sys

import peers
from peers import Swarm, run, wait_for

HONEST = 40  # steps that the cheat takes honestly; segments have 16


def key(*args):
    done = run('key', *args)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def row(peer, node):
    """The peer's row about a node in its table of contributions."""
    status = peer.status()
    return next((one for one in status['contributions'] if one['node_id'] == node), None) if status else None


def found(program, ear):
    """Four honest peers and one that turns its rate up by a tenth. Returns its last words."""
    # Slow enough that the proof comes long before the end.
    with Swarm(4, 10**9, 'audit.record=true', 'audit.share=0.3', 'exchange.period_ms=40') as swarm:
        for peer in swarm.peers:
            peer.start('--checkpoint-every', '0.5')
        state, log_path = os.path.join(swarm.directory, 'cheat'), os.path.join(swarm.directory, 'cheat.log')
        bad = key('new', '--state', state)
        with open(log_path, 'w', encoding='utf-8') as log, subprocess.Popen(
                [program, f'127.0.0.1:{peers.free_ports(1)[0]}', swarm.peers[0].listen, state, '1/5', str(HONEST),
                 '1.1', ear, *swarm.assignments], stdout=log, stderr=log) as process:
            try:
                assert process.wait(60 * peers.SLOW) == 3
            finally:
                process.kill()
        # How much each had taken before it heard of the proof is another matter.
        wait_for('that all hold the same updates of the cheat',
                 lambda: len({(row(peer, bad) or {'updates': 0})['updates'] for peer in swarm.peers}) == 1)
        one = row(swarm.peers[0], bad)
        assert one['taken_back'] > 0 and one['updates'] >= HONEST, one
        assert sum(row(peer, bad)['segments_differ'] for peer in swarm.peers) > 0, one
        for peer in swarm.peers:
            assert peer.stop() == 0
        replay_all(swarm)
        with open(log_path, encoding='utf-8') as log:
            return log.read()


def replay_all(swarm):
    """What is left in each replica is the sum of updates that anybody can make again: nothing of the cheat's lies."""
    settings = [word for assignment in swarm.assignments for word in ('--set', assignment)]
    for peer in swarm.peers:
        replayed = run('replay', 'synthetic', peer.state, *settings, timeout=100)
        assert replayed.returncode == 0 and 'equal to the last bit' in replayed.stdout, replayed


if __name__ == '__main__':
    peers.RUMOR = sys.argv[1]
    said = found(sys.argv[2], 'deaf')
    assert 'the others have proven that update' in said, said
    # The machine of one that makes its update again and finds the error has erred: it may come back.
    said = found(sys.argv[2], 'hears')
    assert 'memory or disk of this machine has made an error' in said, said
    print('ok')
