"""Who may join, with real daemons and `rumor key`. usage: admission.py RUMOR SCENARIO"""
import os
import stat
import sys

import peers
from peers import Swarm, run, wait_for


def key(*args, status=0):
    result = run('key', *args)
    assert result.returncode == status, f'rumor key {args}: exit {result.returncode}: {result.stderr}'
    return result.stdout.strip() if status == 0 else result.stderr.strip()


def mode(path):
    return stat.S_IMODE(os.stat(path).st_mode)


def ends(peer, seconds=20):
    wait_for(f'the end of peer {peer.index}', lambda: peer.process.poll() is not None, seconds)
    return peer.process.returncode


def links(peer):
    return len((peer.status() or {'peers': []})['peers'])


def allowlist():
    """Three peers on a list train together; a fourth that is not on it ends with status 3 and is told why. Put on the
    list, it joins at once."""
    with Swarm(4, 60_000) as swarm:
        names = [key('new', '--state', peer.state) for peer in swarm.peers]
        assert len(set(names)) == 4 and all(len(name) == 64 for name in names)
        assert [key('show', '--state', peer.state) for peer in swarm.peers] == names
        assert mode(os.path.join(swarm.peers[0].state, 'identity.pem')) == 0o600
        assert 'already' in key('new', '--state', swarm.peers[0].state, status=2)
        allowed = os.path.join(swarm.directory, 'allowed.txt')
        for name in names[:3]:
            key('allow', allowed, name, '--remark', 'one of us')
        stranger = swarm.peers[3]
        stranger.seeds = [swarm.peers[0].listen]
        for peer in swarm.peers[:3]:
            peer.start('--allow', allowed)
        swarm.await_progress(5_000)
        stranger.start()
        assert ends(stranger) == 3, stranger.said()
        assert f'does not admit this peer: key {names[3]} is not on its list' in stranger.said(), stranger.said()
        key('allow', allowed, names[3])
        stranger.start('--allow', allowed)
        swarm.finish()


def removal():
    """A key that is taken off the list while all run loses its links; the others go on and end equal."""
    with Swarm(3, 0) as swarm:
        allowed = os.path.join(swarm.directory, 'allowed.txt')
        for peer in swarm.peers:
            key('allow', allowed, key('new', '--state', peer.state))
        for peer in swarm.peers:
            peer.start('--allow', allowed)
        wait_for('a full mesh', lambda: all(links(peer) == 2 for peer in swarm.peers))
        gone = swarm.peers[2]
        key('allow', allowed, key('show', '--state', gone.state), '--remove')
        wait_for('its links to close', lambda: [links(p) for p in swarm.peers[:2]] == [1, 1])
        with open(allowed, 'a', encoding='utf-8') as file:
            file.write('not a key\n')
        wait_for('a word about the damaged list', lambda: 'line 4' in swarm.peers[0].said())
        assert links(swarm.peers[0]) == 1
        for peer in swarm.peers:
            if peer.process.poll() is None:
                peer.stop()


def token():
    """A token for one lets one peer join a closed run; the next one is told that it is used up."""
    with Swarm(4, 60_000) as swarm:
        boss = os.path.join(swarm.directory, 'boss')
        owner = key('new', '--state', boss)
        swarm.assignments.append(f'run.owner={owner}')
        settings = [word for assignment in swarm.assignments for word in ('--set', assignment)]
        file = os.path.join(swarm.directory, 'join.token')
        key('token', 'synthetic', *settings, '--owner', boss, '--out', file)
        assert mode(file) == 0o600
        assert 'no owner' in key('token', 'synthetic', '--owner', boss, status=2)
        allowed = os.path.join(swarm.directory, 'allowed.txt')
        for peer in swarm.peers[:2]:
            key('allow', allowed, key('new', '--state', peer.state))
        for peer in swarm.peers[:2]:
            peer.start('--allow', allowed)
        swarm.await_progress(3_000)
        joiner, late = swarm.peers[2:]
        joiner.seeds = late.seeds = [swarm.peers[0].listen]
        joiner.start('--token', file, '--allow', allowed)
        wait_for('the joiner to link to all', lambda: links(joiner) == 2)
        late.start('--token', file, '--allow', allowed)
        assert ends(late) == 3, late.said()
        assert 'used up' in late.said(), late.said()
        wait_for('the confirmation on disk', lambda: os.path.exists(os.path.join(joiner.state, 'admit')))
        swarm.finish(swarm.peers[:3])


def revoke():
    """The owner puts a peer out: it ends with status 3, its updates are gone everywhere, and the rest are equal."""
    with Swarm(3, 60_000) as swarm:
        boss = os.path.join(swarm.directory, 'boss')
        swarm.assignments.append(f'run.owner={key("new", "--state", boss)}')
        settings = [word for assignment in swarm.assignments for word in ('--set', assignment)]
        allowed = os.path.join(swarm.directory, 'allowed.txt')
        words = os.path.join(swarm.directory, 'revoked.txt')
        with open(words, 'w', encoding='utf-8') as file:
            file.write('# nothing yet\n')
        for peer in swarm.peers:
            key('allow', allowed, key('new', '--state', peer.state))
        for peer in swarm.peers:
            peer.start('--allow', allowed, '--set', f'network.revoke={words}')
        swarm.await_progress(10_000)
        bad = swarm.peers[2]
        line = key('revoke', 'synthetic', key('show', '--state', bad.state), *settings, '--owner', boss)
        with open(words, 'a', encoding='utf-8') as file:
            file.write(line + '\n')
        assert ends(bad) == 3, bad.said()
        assert 'has put this peer out' in bad.said(), bad.said()
        for final in swarm.finish(swarm.peers[:2]):
            rows = {row['node_id']: row for row in final['contributions']}
            of_bad = rows.pop(key('show', '--state', bad.state))
            assert of_bad['updates'] == of_bad['samples'] == 0 < of_bad['taken_back'], of_bad
            known = sum(row['samples'] for row in rows.values())
            assert known + final['samples_unknown'] == final['samples'], (rows, final['samples'])
        assert 'the run\'s owner has taken back all updates of' in swarm.peers[0].said()


if __name__ == '__main__':
    peers.RUMOR = sys.argv[1]
    {'allowlist': allowlist, 'removal': removal, 'token': token, 'revoke': revoke}[sys.argv[2]]()
    print('ok')
