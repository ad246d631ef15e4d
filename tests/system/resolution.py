"""Two real peers whose pictures grow: one is killed in the middle phase and goes on from its checkpoint. A third joins
with nothing in the last phase. All end with equal bits, and an auditor makes every update again.

usage: resolution.py RUMOR"""
import json
import sys
import urllib.request

import peers
from peers import Swarm, run

SAMPLES = 24_000
SIZES = ('model.family=cnn', 'model.channels=[8]', 'model.groups=2', 'data.resolution=[[0, 2], [0.3, 4], [0.7, 8]]')


def shown(peer):
    """The size that a peer's status, its metrics and `rumor status` agree on."""
    side = peer.status()['picture_side']
    with urllib.request.urlopen(f'http://{peer.status_address}/metrics', timeout=5) as answer:
        metrics = answer.read().decode()
    assert f'\nrumor_picture_side_pixels {side}\n' in metrics, metrics
    text = run('status', peer.status_address).stdout
    assert f'pixels a side {side}' in ' '.join(text.split()), text
    return side


def grows():
    with Swarm(3, SAMPLES, *SIZES, 'audit.record=true') as swarm:
        first, second, third = swarm.peers
        for peer in (first, second):
            peer.start('--checkpoint-every', '0.2')
        swarm.await_progress(int(SAMPLES * 0.35))
        second.kill()
        swarm.await_progress(int(SAMPLES * 0.5))
        assert shown(first) == 4
        second.start('--checkpoint-every', '0.2')
        swarm.await_progress(int(SAMPLES * 0.75))
        third.start()
        finals = swarm.finish()
        assert [final['picture_side'] for final in finals] == [8, 8, 8], finals
        accuracies = [final['accuracy'] for final in finals]
        assert min(accuracies) > 0.2, accuracies
        settings = [word for assignment in swarm.assignments for word in ('--set', assignment)]
        done = run('audit', 'synthetic', first.state, '--json', '-', *settings, timeout=100)
        found = json.loads(done.stdout)
        assert done.returncode == 0 and found['agree'] == found['updates'] == finals[0]['updates'], (done, found)
        other = [word.replace('[0.3, 4]', '[0.4, 4]') for word in settings]
        unlike = run('audit', 'synthetic', first.state, *other)
        assert unlike.returncode == 3 and 'is of run' in unlike.stderr, unlike
    print('ok      pictures grow')


def refused():
    for words, *assignments in (('model.family = "cnn"', 'data.resolution=[[0, 4], [0.5, 8]]'),
                                ('the pictures have 8', *SIZES, 'data.resolution=[[0, 4], [0.5, 28]]'),
                                ('pipeline.stages = 2', *SIZES, 'pipeline.stages=2')):
        settings = [word for assignment in assignments for word in ('--set', assignment)]
        for command in ('peer', 'sim'):
            done = run(command, 'synthetic', *settings)
            assert done.returncode == 2 and words in done.stderr, (command, assignments, done)
    print('ok      what does not fit')


if __name__ == '__main__':
    peers.RUMOR = sys.argv[1]
    refused()
    grows()
