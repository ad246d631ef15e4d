"""A training loop of its own around librumor, without PyTorch: a vector that is drawn towards a target, with noise.

usage: bridge_peer.py PACKAGE JSON   JSON: number, port, status, state, seeds, samples, first (value of all weights),
                                     count (of steps, to begin with)
Prints one line of JSON at the end: digest, samples, updates, lost, error (root mean square against the target).
"""
import array
import json
import random
import sys
import time

PARAMS = 400


def main(package, told):
    sys.path.insert(0, package)
    from rumor.peer import Peer
    from rumor import MismatchError
    weights = array.array('f', [told.get('first', 0.0)] * PARAMS)
    count = array.array('I', [told.get('count', 0)])
    target = [random.Random(i).uniform(-1, 1) for i in range(PARAMS)]
    noise = random.Random(told['number'])
    peer = Peer('bridge-test')
    options = {'listen': f'127.0.0.1:{told["port"]}', 'compress.density': 0.02, 'quiet': 1, 'state': told['state'],
               'checkpoint_seconds': 0.5, 'until_samples': told['samples'], 'overhead': 1,
               'status': f'127.0.0.1:{told["status"]}'}
    for name, value in options.items():
        peer.option(name, value)
    for seed in told['seeds']:
        peer.option('seed', seed)
    peer.parameter('w', [20, 20], weights.buffer_info()[0])
    peer.local('count', 4, count.buffer_info()[0])
    try:
        peer.start(20)
        while peer.step(1, 0.5):
            count[0] += 1
            for i in range(PARAMS):
                weights[i] -= 0.05 * (weights[i] - target[i] + noise.uniform(-0.2, 0.2))
            time.sleep(0.001)
        peer.leave(30)
    except MismatchError as error:
        print(json.dumps({'refused': str(error)}))
        return
    status = peer.status()
    error = (sum((w - t) ** 2 for w, t in zip(weights, target)) / PARAMS) ** 0.5
    print(json.dumps({'digest': status['digest'], 'samples': status['samples'], 'updates': status['updates'],
                      'lost': status['traffic']['updates_lost'], 'error': error, 'count': count[0],
                      'threshold': status['compression']['threshold']}))


if __name__ == '__main__':
    main(sys.argv[1], json.loads(sys.argv[2]))
