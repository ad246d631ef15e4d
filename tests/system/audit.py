"""Audits of real peers: honest ones agree to the last byte, through a kill; a cheat is found, put out, and taken back,
by the owner or by peers that audit each other.

usage: audit.py RUMOR CHEATING_PEER"""
import json
import os
import subprocess
import sys

import peers
from peers import Swarm, run, wait_for

SAMPLES = 24_000


def key(*args):
    done = run('key', *args)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def audit(swarm, peer, *more):
    """Exit status and findings of an audit of the peer's state."""
    settings = [word for assignment in swarm.assignments for word in ('--set', assignment)]
    done = run('audit', 'synthetic', peer.state, '--json', '-', *settings, *more, timeout=100)
    assert done.stdout, done.stderr
    return done.returncode, json.loads(done.stdout)


def honest():
    """A peer is killed and comes back; the whole run can be made again, from either side."""
    with Swarm(2, SAMPLES, 'audit.record=true') as swarm:
        for peer in swarm.peers:
            peer.start('--checkpoint-every', '0.2')
        swarm.await_progress(SAMPLES // 4)
        swarm.peers[1].kill()
        swarm.await_progress(SAMPLES // 2)
        swarm.peers[1].start('--checkpoint-every', '0.2')
        finals = swarm.finish()
        status, found = audit(swarm, swarm.peers[0])
        assert status == 0, found
        assert found['agree'] == found['updates'] == finals[0]['updates'] and len(found['streams']) == 3, found
        settings = [word for assignment in swarm.assignments for word in ('--set', assignment)]
        replayed = run('replay', 'synthetic', swarm.peers[0].state, *settings)
        assert replayed.returncode == 0 and 'equal to the last bit' in replayed.stdout, replayed
        # The other may have taken a snapshot when it came back: its log lacks what was before, which accuses nobody.
        status, other = audit(swarm, swarm.peers[1])
        assert status == 0 and other['differ'] == 0, other
        at = f"{found['streams'][0]['stream'][:8]}:10"
        shown = run('replay', 'synthetic', *settings, swarm.peers[0].state, '--at', at)
        assert shown.returncode == 0 and 'rows of the training data' in shown.stdout, shown
        unlike = run('audit', 'synthetic', swarm.peers[0].state, *settings, '--set', 'optimizer.rate=0.1')
        assert unlike.returncode == 3 and 'is of run' in unlike.stderr, unlike


def cheat(program):
    """Four honest peers and one that turns its rate up by a tenth after forty steps."""
    with Swarm(4, 2 * SAMPLES) as swarm:
        boss = os.path.join(swarm.directory, 'boss')
        swarm.assignments += ['audit.record=true', f'run.owner={key("new", "--state", boss)}']
        words = os.path.join(swarm.directory, 'revoked.txt')
        with open(words, 'w', encoding='utf-8') as file:
            file.write('# nothing yet\n')
        state = os.path.join(swarm.directory, 'cheat')
        bad = key('new', '--state', state)
        allowed = os.path.join(swarm.directory, 'allowed.txt')
        for one in [bad, *(key('new', '--state', peer.state) for peer in swarm.peers)]:
            key('allow', allowed, one)
        for peer in swarm.peers:
            peer.start('--allow', allowed, '--checkpoint-every', '0.2', '--set', f'network.revoke={words}')
        port = peers.free_ports(1)[0]
        with open(os.path.join(swarm.directory, 'cheat.log'), 'w', encoding='utf-8') as log, subprocess.Popen(
                [program, f'127.0.0.1:{port}', swarm.peers[0].listen, state, '1/5', '40', '1.1', 'hears',
                 f'network.allow="{allowed}"', *swarm.assignments], stdout=log, stderr=log) as process:
            try:
                def seen():
                    status, found = audit(swarm, swarm.peers[0], '--peer', bad[:12], '--steps', '..60')
                    return (status, found) if found.get('updates', 0) > 45 else None
                swarm.await_progress(SAMPLES // 10)
                status, found = wait_for('fifty updates of the cheat', lambda: key_known(swarm, bad) and seen())
                assert status == 1, found
                stream, = found['streams']
                assert stream['node_id'] == bad and stream['first_doubt']['seq'] == 41, stream
                line = key('revoke', 'synthetic', bad, '--owner', boss,
                           *[word for assignment in swarm.assignments for word in ('--set', assignment)])
                with open(words, 'a', encoding='utf-8') as file:
                    file.write(line + '\n')
                assert process.wait(20 * peers.SLOW) == 3
            finally:
                process.kill()
        finals = swarm.finish()
        # A peer's own log has all that was in its views, taken back or not. The rest is the sum of what the four made.
        updates = 0
        for peer in swarm.peers:
            status, found = audit(swarm, peer, '--peer', key('show', '--state', peer.state))
            assert status == 0 and found['agree'] == found['updates'], found
            updates += found['updates']
        assert updates == finals[0]['updates'], (updates, finals[0])


def among_auditors(program):
    """Three honest peers audit each other and one that turns its rate up: charged, it finds the error and withdraws."""
    with Swarm(3, 2 * SAMPLES, 'audit.record=true', 'audit.segment=8', 'audit.share=0.3',
               'exchange.period_ms=10') as swarm:
        state = os.path.join(swarm.directory, 'cheat')
        bad = key('new', '--state', state)
        for peer in swarm.peers:
            peer.start('--checkpoint-every', '0.2')
        port = peers.free_ports(1)[0]
        with open(os.path.join(swarm.directory, 'cheat.log'), 'w+', encoding='utf-8') as log, subprocess.Popen(
                [program, f'127.0.0.1:{port}', swarm.peers[0].listen, state, '1/3', '40', '1.1', 'hears',
                 *swarm.assignments], stdout=log, stderr=log) as process:
            try:
                status = process.wait(20 * peers.SLOW)
            finally:
                process.kill()
            log.seek(0)
            said = log.read()
        assert status == 3 and 'was computed wrongly' in said, (status, said)
        finals = swarm.finish()
        rows = [{row['node_id']: row for row in final['contributions']} for final in finals]
        assert any(row[bad]['segments_differ'] > 0 for row in rows), rows
        # From the update that was found on: audits are samples, and an earlier one may have been missed.
        assert len({row[bad]['updates'] for row in rows}) == 1 and rows[0][bad]['taken_back'] > 0, rows
        honest_ones = [one for row in rows for node, one in row.items() if node != bad]
        assert sum(one['segments_agreed'] for one in honest_ones) > 0, rows
        assert not any(one['segments_differ'] or one['taken_back'] for one in honest_ones), rows


def live():
    """An auditor that joins in the middle makes segments of all peers again, at the end their last ones."""
    with Swarm(3, SAMPLES, 'audit.record=true', 'audit.share=0.2', 'exchange.period_ms=10') as swarm:
        for peer in swarm.peers:
            peer.start()
        swarm.await_progress(SAMPLES // 4)
        settings = [word for assignment in swarm.assignments for word in ('--set', assignment)]
        report = os.path.join(swarm.directory, 'auditor.json')
        done = run('audit', 'synthetic', *settings, '--json', report, swarm.peers[0].listen)
        finals = swarm.finish()
        assert done.returncode == 0, done
        assert 'last segments of other peers again' in done.stderr, done.stderr
        with open(report, encoding='utf-8') as file:
            seen = json.load(file)['contributions']
        assert len(seen) == 3 and len(finals) == 3, seen
        for row in seen:
            assert row['segments_agreed'] >= 4 and row['segments_differ'] == row['segments_withheld'] == 0, seen


def key_known(swarm, bad):
    """Whether the first peer's checkpoint and log have come so far that an audit of the cheat can begin."""
    done = run('audit', 'synthetic', swarm.peers[0].state, '--peer', bad[:12], '--steps', '1..1',
               *[word for assignment in swarm.assignments for word in ('--set', assignment)])
    return done.returncode == 0


if __name__ == '__main__':
    peers.RUMOR = sys.argv[1]
    honest()
    cheat(sys.argv[2])
    among_auditors(sys.argv[2])
    live()
    print('ok')
