"""Tiers of inference: a model is trained in three stages with exits, joined and reported on; three tiers answer over
HTTP as the report says. The top tiers are killed, and those below go on. usage: tiers.py RUMOR"""
import array
import gzip
import http.client
import json
import os
import random
import signal
import subprocess
import sys

import peers
from peers import SLOW, Swarm, free_ports, run, wait_for
from stages import evaluated

SIDE, CLASSES, TEST = 28, 10, 300
NOISE = bytes(value * 90 // 255 for value in range(256))


def write_pictures(directory):
    """A bright square in one of ten places, over noise; the fainter, the harder. Returns test pictures, labels."""
    chance, written = random.Random(4), {}
    for part, count in (('train', 2_000), ('t10k', TEST)):
        pictures, labels = [], bytes(chance.randrange(CLASSES) for _ in range(count))
        for label in labels:
            picture = bytearray(chance.randbytes(SIDE * SIDE).translate(NOISE))
            bright = chance.randrange(5, 58)
            for row in range(label // 5 * 14 + 3, label // 5 * 14 + 9):
                for column in range(label % 5 * 5 + 1, label % 5 * 5 + 6):
                    picture[row * SIDE + column] = min(255, picture[row * SIDE + column] + bright)
            pictures.append(bytes(picture))
        sizes = b''.join(number.to_bytes(4, 'big') for number in (count, SIDE, SIDE))
        for name, body in ((f'{part}-images-idx3-ubyte.gz', b'\0\0\x08\x03' + sizes + b''.join(pictures)),
                           (f'{part}-labels-idx1-ubyte.gz', b'\0\0\x08\x01' + sizes[:4] + labels)):
            with gzip.open(os.path.join(directory, name), 'wb', 1) as file:
                file.write(body)
        written[part] = pictures, labels
    return written['t10k']


class Tier:
    """A `rumor serve` process."""

    def __init__(self, swarm, model, stage, *more):
        self.address = f'127.0.0.1:{free_ports(1)[0]}'
        self.log = os.path.join(swarm.directory, f'tier-{stage}')
        with open(self.log, 'w', encoding='utf-8') as log:
            self.process = subprocess.Popen(
                [peers.RUMOR, 'serve', swarm.run_name, model, '--stage', f'{stage}/3', '--listen', self.address,
                 *settings(swarm), *more], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=log, text=True)
        wait_for(f'tier {stage}', lambda: peers.ask(self.address, '/status') or self.process.poll() is not None)
        assert self.process.poll() is None, self.said()

    def said(self):
        with open(self.log, encoding='utf-8') as file:
            return file.read()

    def post(self, path, body, kind='application/octet-stream'):
        connection = http.client.HTTPConnection(self.address, timeout=10 * SLOW)
        connection.request('POST', path, body, {'Content-Type': kind})
        response = connection.getresponse()
        return response.status, response.read()

    def ask(self, body, query='', kind='application/octet-stream'):
        status, answer = self.post(f'/classify{query}', body, kind)
        assert status == 200, (status, answer)
        return json.loads(answer)

    def status(self):
        return peers.ask(self.address, '/status')

    def kill(self):
        self.process.kill()
        self.process.communicate()


def settings(swarm):
    return [word for assignment in swarm.assignments for word in ('--set', assignment)]


def trained(swarm):
    """Three peers, one a stage; the joined model."""
    for peer in swarm.peers:
        peer.seeds = [swarm.peers[2 if peer.index == 0 else 0].listen]
        peer.start('--stage', f'{peer.index + 1}/3', '--checkpoint-every', '1', '--threads', '1')
    for peer in swarm.peers:
        wait_for(f'the end of peer {peer.index}', lambda p=peer: p.process.poll() is not None, 40, swarm.progress)
        assert peer.process.returncode == 0, peer.said()
    model = os.path.join(swarm.directory, 'joined.safetensors')
    done = run('export', *[peer.state for peer in reversed(swarm.peers)], '--to', model)
    assert done.returncode == 0, done.stderr
    with open(model, 'rb') as file:
        header = json.loads(file.read(int.from_bytes(file.read(8), 'little')))
    assert header['exit.1.weight']['shape'] == [CLASSES, 32] and header['exit.2.bias']['shape'] == [CLASSES], header
    assert not any(name.startswith('exit.3') for name in header)
    return model


def reported(swarm, model, below):
    done = run('serve', swarm.run_name, model, '--report', '--exit-below', str(below), '--json', '-', *settings(swarm))
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found['samples'] == TEST and abs(sum(tier['leaves'] for tier in found['tiers']) - 1) < 1e-9, found
    first, second, third = (tier['leaves'] for tier in found['tiers'])
    assert first > 0.2 and second > 0.01 and third > 0.05, found
    assert found['accuracy'] > 0.65 and all(tier['accuracy_alone'] > 0.5 for tier in found['tiers']), found
    first, second = (tier['feature_bytes'] for tier in found['tiers'][:2])
    sent = (1 - found['tiers'][0]['leaves']) * first + found['tiers'][2]['leaves'] * second
    assert abs(found['bytes_per_sample'] - sent) < 1e-6, found
    text = run('serve', swarm.run_name, model, '--report', '--exit-below', str(below), *settings(swarm)).stdout
    assert f'together {100 * found["accuracy"]:.2f} % right' in text and '784 B as bytes' in text, text
    whole = evaluated(swarm, model, *[one for one in swarm.assignments if not one.startswith('pipeline.')])
    assert abs(whole['accuracy'] - found['tiers'][2]['accuracy_alone']) < 0.02, whole  # borders are f32 there
    return found


def answers_are_as_reported(tiers, found, requests, labels):
    right, left = 0, [0, 0, 0]
    for body, label in zip(requests, labels):
        answer = tiers[0].ask(body, f'?label={label}')
        assert len(answer['probabilities']) == CLASSES and abs(sum(answer['probabilities']) - 1) < 1e-4, answer
        assert answer['why'] == ('the last tier' if answer['tier'] == 3 else 'sure'), answer
        right += answer['class'] == label
        left[answer['tier'] - 1] += 1
    assert abs(right / TEST - found['accuracy']) <= 2 / TEST, (right, found)
    asked = TEST
    for tier, count, expected in zip(tiers, left, found['tiers']):
        status = tier.status()
        assert abs(count / TEST - expected['leaves']) <= 2 / TEST, (left, found)
        assert status['requests'] == asked and status['answered'] == status['labelled'] == count, status
        assert abs((status['accuracy'] or 0) - expected['accuracy']) < 0.05, (status, expected)
        asked -= count
        assert status['passed_on'] == asked and status['next_failed'] == 0, status
        assert status['passed_on_bytes'] == asked * expected['feature_bytes'], status
    print(f'ok      {left} left at the tiers, {right} of {TEST} right; {found["bytes_per_sample"]:.0f} B a picture')


def other_requests(tiers, pixels, request):
    """JSON, pixels, features that a sensor sends itself, and several views; then refusals."""
    first, second, third = tiers
    expected = first.ask(request)
    assert first.ask(json.dumps(list(array.array('f', request))), kind='application/json') == expected
    twice = first.ask(request * 2)
    assert twice['class'] == expected['class'] and twice['tier'] == expected['tier'], (twice, expected)
    status, features = first.post('/features', request)
    assert status == 200 and len(features) == first.status()['features'] + 4, (status, len(features))
    alone, both = second.ask(features), second.ask(features * 2)
    assert both['class'] == alone['class'] and abs(both['entropy'] - alone['entropy']) < 1e-5, (alone, both)
    for tier, path, body, code, words in (
            (first, '/classify', pixels, 400, 'a body of 784 bytes; a view has 3136 bytes'),
            (first, '/classify', request * 65, 400, 'more than 64 views'),
            (first, '/classify', b'\xff' * 3136, 400, 'not finite'),
            (first, '/classify', b'\xff\xff\x7f\x7f' * 784, 400, 'computes no number'),
            (first, '/classify', b'1' * 2_000_000, 413, 'larger than 64 views'),
            (first, '/classify?label=10', request, 400, 'label wants a class from 0 to 9'),
            (first, '/classify?label=', request, 400, 'label wants a class from 0 to 9'),
            (first, '/else', request, 404, 'POST /classify'),
            (second, '/classify?tier=2', features, 409, 'features of tier 2, and this is tier 2'),
            (second, '/classify?tier=%ff', features, 409, 'features of tier'),
            (second, '/classify?pipeline=00', features, 409, 'another run file'),
            (third, '/features', features, 400, 'a view has'),
            (third, '/classify', b'\0' * 40, 400, 'start this tier with --sensors')):
        status, answer = tier.post(path, body)
        assert status == code and words in json.loads(answer)['error'], (path, status, answer)
    for body, words in (('[1, 2]', 'a view of 2 numbers'), ('{', 'no JSON list')):
        status, answer = first.post('/classify', body, 'application/json')
        assert status == 400 and words in json.loads(answer)['error'], answer
    status, answer = first.post('/classify', b'1' * 20_000, 'application/x-www-form-urlencoded')
    assert status == 413 and 'as a form' in json.loads(answer)['error'], answer
    assert first.status()['refused'] >= 7, first.status()


def upper_tiers_go(tiers, requests):
    first, second, third = tiers
    unsure = next(body for body in requests if first.ask(body)['tier'] == 3)
    third.kill()
    answer = first.ask(unsure)
    assert answer['tier'] == 2 and f'the next tier {third.address} is missing' in answer['why'], answer
    second.kill()
    answer = first.ask(unsure)
    assert answer['tier'] == 1 and 'is missing: nobody answers' in answer['why'], answer
    assert all(first.ask(body)['tier'] == 1 for body in requests[:20])
    assert first.status()['next_failed'] > 0
    first.process.send_signal(signal.SIGINT)
    said, _ = first.process.communicate(timeout=20 * SLOW)
    assert first.process.returncode == 0 and json.loads(said)['next_failed'] > 0, said
    print('ok      tiers whose next one is missing go on')


def refused(swarm, model):
    for words, *args in (('pipeline.exits', model, '--report', '--set', 'pipeline.exits=[]'),
                         ('tensor 0.weight is not', model, '--report', '--set', 'model.hidden=[24,16]'),
                         ('tensors are not those of this stage', swarm.peers[0].state, '--stage', '2/3'),
                         ('--next is for tiers below', model, '--stage', '3', '--next', '127.0.0.1:1'),
                         ('pipeline.stages = 3', model, '--stage', '1/2'), ('wants K or K/S', model, '--stage', 'x'),
                         ('either --stage', model), ('no checkpoint', swarm.directory, '--stage', '1')):
        done = run('serve', swarm.run_name, *args[:1], *settings(swarm), *args[1:])
        assert done.returncode != 0 and words in done.stderr, (words, done)
    done = run('sim', 'text-gpt', '--set', 'pipeline.stages=2', '--set', 'pipeline.exits=[0.3]')
    assert done.returncode == 2 and 'pipeline.exits are for models that classify' in done.stderr, done
    # Whatever order the command line has them in.
    done = run('sim', 'synthetic', '--set', 'pipeline.exits=[0.3]', '--set', 'run.samples=500', '--stages', '2',
               '--nodes', '2')
    assert done.returncode == 0, done


def tiers_answer():
    with Swarm(3, 12_000, 'model.hidden=[32,16]', 'pipeline.stages=3', 'pipeline.exits=[0.5,0.5]',
               'pipeline.border=int8', 'data.kind=idx', 'compress.density=0.02') as swarm:
        pictures, labels = write_pictures(swarm.directory)
        swarm.assignments.append(f'data.path={swarm.directory}')
        model = trained(swarm)
        found = reported(swarm, model, 0.3)
        requests = [array.array('f', [(value - found['mean']) * found['scale'] for value in picture]).tobytes()
                    for picture in pictures]
        tiers = []
        try:
            sure, sensors = ('--exit-below', '0.3'), ('--sensors', 'mean')
            tiers.insert(0, Tier(swarm, model, 3))
            tiers.insert(0, Tier(swarm, model, 2, *sure, *sensors, '--next', tiers[0].address))
            tiers.insert(0, Tier(swarm, swarm.peers[0].state, 1, *sure, *sensors, '--next', tiers[0].address))
            answers_are_as_reported(tiers, found, requests, labels)
            other_requests(tiers, pictures[0], requests[0])
            upper_tiers_go(tiers, requests)
            refused(swarm, model)
        finally:
            for tier in tiers:
                if tier.process.poll() is None:
                    tier.kill()


if __name__ == '__main__':
    peers.RUMOR = sys.argv[1]
    tiers_answer()
