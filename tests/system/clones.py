"""Two real peers with one identity: a copied state directory, a copied key, and two that cannot reach each other.
usage: clones.py RUMOR"""
import os
import shutil
import sys

import peers
from peers import Swarm, wait_for


def status(peer, member):
    return (peer.status() or {}).get(member, '')


def trains(peer):
    wait_for(f'peer {peer.index} to train with a neighbour', lambda: status(peer, 'links') and status(peer, 'steps'))


def ends_as_the_copy(copy, first):
    """The copy says both addresses and the remedy, and ends; the first reports it, and trains on."""
    wait_for('the end of the copy', lambda: copy.process.poll() is not None)
    assert copy.process.returncode == 3, copy.process.returncode
    for words in (f'another process runs at {first.listen} with the key of this peer', f'at {copy.listen}',
                  'began before it: this one ends', 'delete identity.pem'):
        assert words in copy.said(), words
    assert copy.final()['phase'] == 'ended'
    words = f'another process runs at {copy.listen} with the key of this peer'
    wait_for('the trouble in /status', lambda: words in status(first, 'identity_trouble'))
    assert f'{words}, ' in first.said() and 'It began later and has to end' in first.said()
    trains(first)


def restarted(peer, honest):
    """Killed and started again at once, with its state: nobody is accused."""
    peer.kill()
    peer.start()
    trains(peer)
    for one in (peer, honest):
        assert status(one, 'identity_trouble') == '', status(one, 'identity_trouble')


def main():
    with Swarm(5, 0, 'run.samples=100000000') as swarm:
        honest, first, copy, key, far = swarm.peers
        honest.seeds = []
        for peer in (first, copy, key, far):
            peer.seeds = [honest.listen]
        honest.start()
        first.start()
        trains(first)
        restarted(first, honest)
        assert first.stop() == 0
        for peer in (key, far):
            os.mkdir(peer.state)
            shutil.copy(os.path.join(first.state, 'identity.pem'), peer.state)
        shutil.copytree(first.state, copy.state)
        first.start()
        trains(first)

        copy.start()
        ends_as_the_copy(copy, first)
        os.remove(os.path.join(copy.state, 'identity.pem'))  # the remedy
        copy.start()
        trains(copy)
        key.start()
        ends_as_the_copy(key, first)

        # Neither can dial the other, as behind two routers: a neighbour tells both.
        assert first.stop() == 0
        first.start('--set', 'network.advertise=["127.0.0.1:1"]')
        trains(first)
        far.start('--set', 'network.advertise=["127.0.0.1:2"]')
        third = wait_for('a third party to notice', lambda: '127.0.0.1:2' in status(honest, 'identity_trouble')
                         and status(honest, 'identity_trouble'))
        assert 'two processes run with the key of peer' in third and 'delete identity.pem' in third, third
        assert 'at 127.0.0.1:1' in third, third
        for peer in (first, far):
            wait_for(f'peer {peer.index} to hear of it',
                     lambda p=peer: 'says: two processes run' in status(p, 'identity_trouble'))
            assert 'says: two processes run' in peer.said()
        assert all(one.process.poll() is None for one in (honest, first, copy, far))


if __name__ == '__main__':
    peers.RUMOR = os.path.abspath(sys.argv[1])
    main()
    print('ok')
