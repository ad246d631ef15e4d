"""A follower audits a swarm: a cheat is found, proven to the others, put out by them, and its part taken back.

usage: proof.py RUMOR CHEATING_PEER"""
import json
import os
import subprocess
import sys

import peers
from peers import Swarm, run, wait_for

HONEST = 5  # steps that the cheat takes honestly: the first segment of its stream, which is always audited, has 16
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
    with Swarm(4, SAMPLES, 'audit.record=true', 'exchange.period_ms=40') as swarm:
        for peer in swarm.peers:
            peer.start('--checkpoint-every', '0.5')
        state, log_path = os.path.join(swarm.directory, 'cheat'), os.path.join(swarm.directory, 'cheat.log')
        bad = key('new', '--state', state)
        settings = [word for assignment in swarm.assignments for word in ('--set', assignment)]
        report = os.path.join(swarm.directory, 'auditor.json')
        auditor = [peers.RUMOR, 'follow', 'synthetic', '--seed', swarm.peers[1].listen, '--audit', '--until-done',
                   '--json', report, *settings]
        with open(log_path, 'w', encoding='utf-8') as log, subprocess.Popen(
                [program, f'127.0.0.1:{peers.free_ports(1)[0]}', swarm.peers[0].listen, state, '1/5', str(HONEST),
                 '1.1', 'deaf', *swarm.assignments], stdout=log, stderr=log) as process, subprocess.Popen(
                     auditor, stderr=subprocess.PIPE, text=True) as follower:
            try:
                assert process.wait(60 * peers.SLOW) == 3
                check(swarm, bad)
                said = follower.communicate(timeout=60 * peers.SLOW)[1]
            finally:
                process.kill()
                follower.kill()
        with open(report, encoding='utf-8') as file:
            seen = {one['node_id']: one for one in json.load(file)['contributions']}
        assert seen[bad]['segments_differ'] > 0 and 'is not what its record says' in said, (seen, said)
        assert not any(one['segments_differ'] for node, one in seen.items() if node != bad), seen
        with open(log_path, encoding='utf-8') as log:
            return log.read()


def check(swarm, bad):
    """All four go on without the cheat, to the end and with equal digests."""
    wait_for('that all have taken back what is false',
             lambda: all((row(peer, bad) or {}).get('updates') == HONEST for peer in swarm.peers))
    assert all(row(peer, bad)['taken_back'] > 0 for peer in swarm.peers)
    finals = swarm.finish()
    # The weights are the sum of what the four made, and of what the cheat had made before the proven update.
    rows = {each['node_id']: each for each in finals[0]['contributions']}
    assert len(rows) == 5 and rows[bad]['updates'] == HONEST, rows
    assert sum(each['updates'] for each in rows.values()) == finals[0]['updates'], (rows, finals[0]['updates'])


if __name__ == '__main__':
    peers.RUMOR = sys.argv[1]
    said = found(sys.argv[2])
    assert f'the others have proven that update {HONEST + 1} of this peer' in said, said
    print('ok')
