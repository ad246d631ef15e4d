"""Peers that audit each other: a cheat is found, proven and put out by the others alone, and its part taken back.

usage: proof.py RUMOR CHEATING_PEER"""
import os
import subprocess
import sys

import peers
from peers import Swarm, run, wait_for

HONEST = 40  # steps that the cheat takes honestly; segments have 16
SAMPLES = 48_000  # half a minute; the proof comes after a third of it


def key(*args):
    done = run('key', *args)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def row(peer, node):
    """The peer's row about a node in its table of contributions."""
    status = peer.status()
    return next((one for one in status['contributions'] if one['node_id'] == node), None) if status else None


def found(program):
    """Four honest peers and a deaf one that turns its rate up by a tenth. Returns its last words."""
    # Slow enough that the proof comes long before the end.
    with Swarm(4, SAMPLES, 'audit.record=true', 'audit.share=0.5', 'exchange.period_ms=40') as swarm:
        for peer in swarm.peers:
            peer.start('--checkpoint-every', '0.5')
        state, log_path = os.path.join(swarm.directory, 'cheat'), os.path.join(swarm.directory, 'cheat.log')
        bad = key('new', '--state', state)
        with open(log_path, 'w', encoding='utf-8') as log, subprocess.Popen(
                [program, f'127.0.0.1:{peers.free_ports(1)[0]}', swarm.peers[0].listen, state, '1/5', str(HONEST),
                 '1.1', 'deaf', *swarm.assignments], stdout=log, stderr=log) as process:
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
        finals = swarm.finish()
        # The weights are the sum of what the four made, and of what the cheat had made before the proven update.
        rows = {one['node_id']: one for one in finals[0]['contributions']}
        assert len(rows) == 5 and rows[bad]['updates'] == one['updates'], rows
        assert sum(each['updates'] for each in rows.values()) == finals[0]['updates'], (rows, finals[0]['updates'])
        with open(log_path, encoding='utf-8') as log:
            return log.read()


if __name__ == '__main__':
    peers.RUMOR = sys.argv[1]
    said = found(sys.argv[2])
    assert 'the others have proven that update' in said, said
    print('ok')
