"""Followers: an export that is whole whenever it is read, kill -9 and restart, trouble with the folder, the best loss,
and text from the weights of a running peer. usage: follow.py RUMOR SCENARIO"""
import json
import os
import signal
import struct
import subprocess
import sys

import peers
from peers import Swarm, run, wait_for

SAMPLES = 40_000


def read_export(folder):
    """(metadata, names with their bytes) of an export; None while there is none."""
    try:
        with open(os.path.join(folder, 'model.safetensors'), 'rb') as file:
            data = file.read()
    except FileNotFoundError:
        return None
    size, = struct.unpack('<Q', data[:8])
    header = json.loads(data[8:8 + size])
    metadata = header.pop('__metadata__')
    assert max(entry['data_offsets'][1] for entry in header.values()) == len(data) - 8 - size, 'cut off'
    return metadata, {name: data[8 + size:][slice(*entry['data_offsets'])] for name, entry in header.items()}


class Follower:
    """A `rumor follow` of a swarm, with a folder, a state directory and a log of its own."""

    def __init__(self, swarm, name, *options):
        self.swarm, self.options = swarm, options
        self.folder, self.state, self.log, self.result = (
            os.path.join(swarm.directory, f'{name}-{kind}') for kind in ('folder', 'state', 'log', 'result.json'))
        self.process = None

    def start(self, *extra):
        args = [peers.RUMOR, 'follow', self.swarm.run_name, '--seed', ','.join(p.listen for p in self.swarm.peers),
                '--export', self.folder, '--state', self.state, '--json', self.result, *self.options, *extra]
        for assignment in self.swarm.assignments:
            args += ['--set', assignment]
        with open(self.log, 'a', encoding='utf-8') as log:
            self.process = subprocess.Popen(args, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        return self

    def samples(self):
        export = read_export(self.folder)
        return int(export[0]['samples']) if export else 0

    def said(self):
        with open(self.log, encoding='utf-8') as file:
            return file.read()

    def end(self, signal_number=None):
        if signal_number:
            self.process.send_signal(signal_number)
        return self.process.wait(30 * peers.SLOW)


def check_contributions(metadata, nodes):
    """Both peers have trained; what is known adds up to the run's samples."""
    rows = {row['node_id']: row for row in json.loads(metadata['contributions'])}
    assert set(rows) == nodes and not any('first_seen_s' in row for row in rows.values()), (rows, nodes)
    assert sum(row['updates'] for row in rows.values()) == int(metadata['updates']), (rows, metadata)
    known = sum(row['samples'] for row in rows.values())
    if not any(row['updates_unknown'] for row in rows.values()):
        assert known == int(metadata['samples']), (known, metadata)
        assert abs(sum(row['share'] for row in rows.values()) - 1) < 1e-9, rows


def exports():
    """Two peers and a follower, which is killed and started again; at the end its export has the peers' digest."""
    with Swarm(2, SAMPLES) as swarm:
        for peer in swarm.peers:
            peer.start('--threads', '1')
        follower = Follower(swarm, 'follower', '--every', '1s', '--checkpoint-every', '1').start()
        wait_for('a first export', follower.samples, 30, swarm.progress)
        follower.end(signal.SIGKILL)
        before = follower.samples()
        assert read_export(follower.folder)[0]['run'] == swarm.peers[0].status()['run_id']
        follower.start('--until-done')
        wait_for('a later export', lambda: follower.samples() > before, 30, swarm.progress)
        finals = swarm.finish()
        assert follower.end() == 0, follower.said()[-2000:]
        metadata, tensors = read_export(follower.folder)
        assert metadata['digest'] == finals[0]['digest'] == follower_status(follower)['digest'], (metadata, finals)
        check_contributions(metadata, {final['node_id'] for final in finals})
        peer_export = os.path.join(swarm.directory, 'peer.safetensors')
        assert run('export', swarm.peers[0].state, '--to', peer_export).returncode == 0
        os.mkdir(os.path.join(swarm.directory, 'peer'))
        os.rename(peer_export, os.path.join(swarm.directory, 'peer', 'model.safetensors'))
        of_peer = read_export(os.path.join(swarm.directory, 'peer'))
        assert of_peer[1] == tensors and of_peer[0]['digest'] == metadata['digest'], of_peer[0]
        check_contributions(of_peer[0], {final['node_id'] for final in finals})
        assert [final['contributions'][0]['samples'] > 0 for final in finals] == [True, True]
        with open(os.path.join(follower.folder, 'config.json'), encoding='utf-8') as config:
            assert json.load(config)['rumor']['run'] == metadata['run']
        assert not [name for name in os.listdir(follower.folder) if name.endswith(('.part', '.tmp'))]


def follower_status(follower):
    with open(follower.result, encoding='utf-8') as file:
        return json.load(file)


def trouble():
    """What a follower says and does about a folder that it cannot use, a state that is not its own, the best loss."""
    with Swarm(2, 0, 'run.samples=10000000') as swarm:
        first = swarm.peers[0].start('--threads', '1')
        wait_for('samples', lambda: first.samples() > 1_000)
        blocked = os.path.join(swarm.directory, 'blocked')
        with open(blocked, 'w', encoding='utf-8') as file:
            file.write('a file where the folder should be\n')
        follower = Follower(swarm, 'blocked')
        follower.folder = os.path.join(blocked, 'export')
        follower.start()
        wait_for('a word about it', lambda: 'not exported' in follower.said())
        assert follower.process.poll() is None, follower.said()
        assert follower.end(signal.SIGINT) == 1, follower.said()

        best = Follower(swarm, 'best', '--best').start()
        wait_for('an export of the best', best.samples)
        assert best.end(signal.SIGINT) == 0, best.said()
        metadata, _ = read_export(best.folder)
        assert 0 < float(metadata['loss']) < 4, metadata

        other = run('follow', swarm.run_name, '--export', best.folder, '--seed', first.listen)  # another run.samples
        assert other.returncode == 2 and 'another folder' in other.stderr, other
        assert first.stop() == 0
        training = run('follow', swarm.run_name, '--state', first.state, '--seed', first.listen, '--set',
                       swarm.assignments[0])
        assert training.returncode == 3 and 'a peer that trains' in training.stderr, training


def live():
    """Text with the weights that a running peer has now."""
    sets = ['model.layers=1', 'model.embedding=16', 'model.heads=2', 'model.context=16', 'optimizer.batch=4',
            'run.samples=10000000']
    with Swarm(1, 0, *sets, run_name='text-gpt') as swarm:
        text = os.path.join(swarm.directory, 'text')
        with open(text, 'w', encoding='utf-8') as file:
            file.write('the cat sat on the mat. ' * 400)
        swarm.assignments.append(f"data.path='{text}'")
        peer = swarm.peers[0].start('--threads', '1')
        wait_for('samples', lambda: peer.samples() > 400)
        options = [option for assignment in sets for option in ('--set', assignment)]
        sampled = run('sample', 'text-gpt', '--live', peer.listen, '--length', '20', '--prompt', 'the ', *options)
        assert sampled.returncode == 0 and sampled.stdout.startswith('the ') and len(sampled.stdout) > 20, sampled
        assert 'weights after' in sampled.stderr, sampled.stderr
        stranger = run('sample', 'text-gpt', '--live', peer.listen)  # another run
        assert stranger.returncode == 3 and 'trains run' in stranger.stderr, stranger
        peer.kill()
        alone = run('sample', 'text-gpt', '--live', peer.listen, *options)
        assert alone.returncode == 1 and 'no peer has answered' in alone.stderr and not alone.stdout, alone
        wordless = run('sample', 'synthetic', '--live', peer.listen)
        assert wordless.returncode == 2 and 'no text' in wordless.stderr, wordless


if __name__ == '__main__':
    peers.RUMOR = sys.argv[1]
    {'exports': exports, 'trouble': trouble, 'live': live}[sys.argv[2]]()
