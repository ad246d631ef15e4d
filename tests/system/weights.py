"""Weights out of a state directory and back into a run, by real processes. usage: weights.py RUMOR"""
import json
import os
import struct
import sys
import tempfile

import peers
from peers import Swarm, run, wait_for


def read_safetensors(path):
    """Names with their shapes and bytes, and the metadata."""
    with open(path, 'rb') as file:
        size = struct.unpack('<Q', file.read(8))[0]
        header = json.loads(file.read(size))
        data = file.read()
    metadata = header.pop('__metadata__')
    return {name: (entry['shape'], data[slice(*entry['data_offsets'])]) for name, entry in header.items()}, metadata


def trained(folder):
    state = os.path.join(folder, 'state')
    run_ended = run('peer', 'synthetic', '--state', state, '--until-samples', '1600', '--quiet', '--json', '-')
    assert run_ended.returncode == 0, run_ended.stderr
    return state, json.loads(run_ended.stdout)


def exported(folder, state):
    """A file and a folder hold the same; the names are those of PyTorch's nn.Sequential."""
    file, as_folder = os.path.join(folder, 'w.safetensors'), os.path.join(folder, 'model')
    for target in (file, as_folder):
        done = run('export', state, '--to', target)
        assert done.returncode == 0 and '4810 parameters' in done.stderr, done.stderr
    tensors, metadata = read_safetensors(file)
    shapes = {name: shape for name, (shape, _) in tensors.items()}
    assert shapes == {'0.weight': [64, 64], '0.bias': [64], '2.weight': [10, 64], '2.bias': [10]}, shapes
    assert metadata['format'] == 'pt' and int(metadata['samples']) >= 1600, metadata
    with open(os.path.join(as_folder, 'model.safetensors'), 'rb') as other, open(file, 'rb') as one:
        assert other.read() == one.read()
    with open(os.path.join(as_folder, 'config.json'), encoding='utf-8') as config:
        assert json.load(config)['model_type'] == 'mlp'
    print('ok      export')
    return file


def rounded(state, file, folder):
    """bf16 and f16 are the nearest values, shards hold the same tensors, and a run starts from either alike."""
    tensors, metadata = read_safetensors(file)
    target = os.path.join(folder, 'shards')
    done = run('export', state, '--to', target, '--dtype', 'bf16', '--shard-size', '1410')
    assert done.returncode == 0, done.stderr
    with open(os.path.join(target, 'model.safetensors.index.json'), encoding='utf-8') as text:
        index = json.load(text)
    assert index['metadata']['total_size'] == 2 * 4810 and len(set(index['weight_map'].values())) == 3, index
    assert sorted(os.listdir(target)) == sorted({*index['weight_map'].values(), 'config.json',
                                                 'model.safetensors.index.json'}), os.listdir(target)
    for name, shard in index['weight_map'].items():
        shape, data = read_safetensors(os.path.join(target, shard))[0][name]
        bits = struct.unpack(f'<{len(tensors[name][1]) // 4}I', tensors[name][1])
        nearest = struct.pack(f'<{len(bits)}H', *((b + 0x7fff + (b >> 16 & 1)) >> 16 for b in bits))
        assert (shape, data) == (tensors[name][0], nearest), name
    whole = os.path.join(folder, 'bf16.safetensors')
    assert run('export', state, '--to', whole, '--dtype', 'bf16').returncode == 0
    ids = [json.loads(run('sim', 'synthetic', '--nodes', '1', '--set', 'run.samples=160', '--json', '-',
                          '--weights', source).stdout)['run_id'] for source in (target, whole, file)]
    assert ids[0] == ids[1] != ids[2], ids
    os.remove(os.path.join(target, sorted(set(index['weight_map'].values()))[1]))
    done = run('sim', 'synthetic', '--weights', target)
    assert done.returncode == 1 and 'names the shard model-00002-of-00003' in done.stderr, done.stderr
    done = run('export', state, '--to', file, '--shard-size', '1kB')
    assert done.returncode == 2 and 'export to a folder' in done.stderr, done.stderr
    print('ok      types and shards')


def averaged(folder, state, file):
    """The mean over one sample is the last weights; that over half of the run is others, and says what it is."""
    tensors, _ = read_safetensors(file)
    mean = os.path.join(folder, 'mean.safetensors')
    for share, same in (('0.0001', True), ('0.5', False)):
        done = run('export', state, '--to', mean, '--average', share)
        assert done.returncode == 0 and 'warning' not in done.stderr, done.stderr
        assert 'mean over the last' in done.stderr, done.stderr
        others, metadata = read_safetensors(mean)
        assert (others == tensors) == same
        assert int(metadata['averaged_samples']) == max(1, round(float(share) * int(metadata['samples']))), metadata
    os.rename(os.path.join(state, 'kept'), os.path.join(state, 'elsewhere'))
    done = run('export', state, '--to', mean, '--average', '0.5')
    assert done.returncode == 1 and 'no log of updates' in done.stderr, done.stderr
    os.rename(os.path.join(state, 'elsewhere'), os.path.join(state, 'kept'))
    print('ok      mean of the last weights')


def started_from(file, status):
    """The run begins with the loss that the other ended with, and is a run of another name."""
    results = []
    for weights in ([], ['--weights', file]):
        for mode in ('sync', 'broadcast'):
            done = run('sim', 'synthetic', '--nodes', '1', '--set', 'run.samples=160', '--set', f'exchange.mode={mode}',
                       '--json', '-', *weights)
            assert done.returncode == 0, done.stderr
            results.append(json.loads(done.stdout))
    dense, sparse, dense_from, sparse_from = results
    assert abs(dense_from['curve'][0]['loss'] - status['loss']) < 1e-6, (dense_from['curve'][0], status['loss'])
    for alone, begun in ((dense, dense_from), (sparse, sparse_from)):
        assert alone['final']['loss'] > 1.2 * begun['final']['loss'], (alone['final'], begun['final'])
        assert alone['run_id'] != begun['run_id']
    print('ok      start')


def peers_with_other_weights(file):
    """Two that start alike train together; one that starts elsewhere is refused, with exit status 3."""
    with Swarm(3, 0) as swarm:
        for peer in swarm.peers[:2]:
            peer.start('--weights', file)
        wait_for('two peers', lambda: all(len((p.status() or {'peers': []})['peers']) == 1 for p in swarm.peers[:2]))
        other = swarm.peers[2].start()
        assert other.process.wait(20 * peers.SLOW) == 3, other.said()
        assert swarm.peers[0].process.poll() is None
    print('ok      other weights')


def what_is_wrong(folder, state, file):
    for arguments, status, text in (
            (['export', folder, '--to', file], 1, 'is it the --state directory of a peer?'),
            (['export', state, '--to', os.path.join(folder, 'none', 'x.safetensors')], 1, 'cannot write'),
            (['sim', 'synthetic', '--weights', os.path.join(folder, 'none')], 1, 'there is no file'),
            (['sim', 'synthetic', '--weights', file, '--set', 'model.hidden=[32]'], 3,
             'tensor 0.weight is [64, 64], the model wants [32, 64]')):
        done = run(*arguments)
        assert done.returncode == status and text in done.stderr, (arguments, done.returncode, done.stderr)
    print('ok      refusals')


def main():
    peers.RUMOR = sys.argv[1]
    with tempfile.TemporaryDirectory(prefix='rumor-weights-') as folder:
        state, status = trained(folder)
        file = exported(folder, state)
        rounded(state, file, folder)
        averaged(folder, state, file)
        started_from(file, status)
        peers_with_other_weights(file)
        what_is_wrong(folder, state, file)


if __name__ == '__main__':
    main()
