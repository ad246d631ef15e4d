"""Peers fine-tune adapters of a frozen Llama: equal digests, PEFT's files, merged weights, and who is refused.

usage: lora.py RUMOR
"""
import json
import os
import shutil
import struct
import subprocess
import sys
import tempfile

import peers
from peers import Swarm, run

BASE_TEXT = 'the cat sat on the mat and the dog sat on the log. ' * 400
NEW_TEXT = 'a bird flew over the sea while fish swam under it. ' * 400
SIZES = ['model.layers=2', 'model.embedding=32', 'model.feed_forward=64', 'model.context=32', 'optimizer.batch=8']
LORA = ['model.adapter=lora', 'model.adapter_rank=4', 'model.adapter_alpha=16', 'optimizer.kind=adamw',
        'optimizer.rate=0.02', 'compress.density=0.2', 'exchange.local_steps=2', 'exchange.period_ms=0',
        'model.context=32', 'optimizer.batch=8']


def sets(*assignments):
    return [part for one in assignments for part in ('--set', one)]


def header_of(path):
    with open(path, 'rb') as file:
        return json.loads(file.read(struct.unpack('<Q', file.read(8))[0]))


def base_of(tmp, name, text, seed):
    """A folder of a small Llama that has seen a text for a moment."""
    state, folder = os.path.join(tmp, f'{name}-state'), os.path.join(tmp, name)
    done = run('peer', 'llama-tiny', '--state', state, '--until-samples', '1600', '--quiet',
               *sets(f'data.path={text}', 'run.samples=1600', f'run.seed={seed}', 'compress.density=0.2', *SIZES))
    assert done.returncode == 0, done.stderr
    assert run('export', state, '--to', folder).returncode == 0
    return folder


def fine_tuned(tmp, text, base, other):
    """Two peers end alike; one with another base is refused by name, and so is a restart with it."""
    with Swarm(3, 8000, f'data.path={text}', *LORA, run_name='llama-tiny') as swarm:
        one, two, stranger = swarm.peers
        one.seeds, two.seeds = [two.listen], [one.listen]  # a seed of another run would refuse them
        for peer in (one, two):
            peer.start('--weights', base)
        refused = stranger.start('--weights', other)
        assert refused.process.wait(30 * peers.SLOW) == 3, refused.said()
        assert 'the frozen base of model.adapter' in refused.said(), refused.said()
        followed_to, follower = followed(tmp, swarm, text, base)
        finals = swarm.finish([one, two])
        said = follower.communicate(timeout=60 * peers.SLOW)[1].decode()
        assert follower.returncode == 0, said
        assert sorted(os.listdir(followed_to)) == ['adapter_config.json', 'adapter_model.safetensors'], said
        assert f'{2 * 4 * (32 + 32 + 32 + 16)} parameters' in one.said(), one.said()
        again = run('peer', 'llama-tiny', '--state', one.state, '--weights', other,
                    *sets(f'data.path={text}', 'run.samples=8000', *LORA))
        assert again.returncode == 3 and 'the frozen base of model.adapter' in again.stderr, again
        os.rename(one.state, os.path.join(tmp, 'state'))
        print('ok      equal adapters, and no other base')
        return os.path.join(tmp, 'state'), finals[0]['loss']


def followed(tmp, swarm, text, base):
    """`rumor follow --export` until the run is over. -> the folder"""
    folder = os.path.join(tmp, 'followed')
    return folder, subprocess.Popen(
        [peers.RUMOR, 'follow', 'llama-tiny', '--seed', ','.join(peer.listen for peer in swarm.peers[:2]), '--export',
         folder, '--every', '1s', '--until-done', '--quiet', '--weights', base,
         *sets(f'data.path={text}', 'run.samples=8000', *LORA)], stdin=subprocess.DEVNULL, stderr=subprocess.PIPE)


def exported(tmp, state, text, base, loss):
    """PEFT's two files; merged weights have the loss of the run."""
    folder, whole = os.path.join(tmp, 'adapters'), os.path.join(tmp, 'whole')
    done = run('export', state, '--to', folder)
    assert done.returncode == 0, done.stderr
    assert sorted(os.listdir(folder)) == ['adapter_config.json', 'adapter_model.safetensors'], os.listdir(folder)
    with open(os.path.join(folder, 'adapter_config.json'), encoding='utf-8') as file:
        config = json.load(file)
    wanted = {'peft_type': 'LORA', 'r': 4, 'lora_alpha': 16, 'target_modules': ['q_proj', 'v_proj'],
              'base_model_name_or_path': base, 'fan_in_fan_out': False}
    assert {key: config[key] for key in wanted} == wanted, config
    assert 'base_sha256' not in config, config  # PEFT knows no such member
    header = header_of(os.path.join(folder, 'adapter_model.safetensors'))
    name = 'base_model.model.model.layers.1.self_attn.v_proj.lora_B.weight'
    assert header[name]['shape'] == [16, 4] and len(header['__metadata__']['base_sha256']) == 64, header
    done = run('export', state, '--to', whole, '--merged')
    assert done.returncode == 0, done.stderr
    begun = run('peer', 'llama-tiny', '--weights', whole, '--until-samples', '0', '--quiet', '--json', '-',
                *sets(f'data.path={text}', 'model.context=32', 'optimizer.batch=8'))
    assert begun.returncode == 0, begun.stderr
    assert abs(json.loads(begun.stdout)['loss'] - loss) < 1e-4, (begun.stdout, loss)
    assert tensors_of(os.path.join(tmp, 'followed')) == tensors_of(folder), 'those of rumor follow are others'
    print('ok      adapters and merged weights')
    return whole


def tensors_of(folder):
    """Names, shapes, bytes and base of the adapters in a folder."""
    path = os.path.join(folder, 'adapter_model.safetensors')
    header = header_of(path)
    with open(path, 'rb') as file:
        data = file.read()[-max(entry['data_offsets'][1] for entry in header.values() if 'shape' in entry):]
    with open(os.path.join(folder, 'adapter_config.json'), encoding='utf-8') as file:
        return header.pop('__metadata__')['base_sha256'], header, data, json.load(file)


def goes_on(tmp, text, base, other, loss):
    """A run begins with the exported adapters, and a peer with others is refused."""
    folder, unlike = os.path.join(tmp, 'adapters'), shutil.copytree(os.path.join(tmp, 'adapters'), f'{tmp}/unlike')
    with open(f'{unlike}/adapter_model.safetensors', 'r+b') as file:
        file.seek(-4, os.SEEK_END)
        file.write(struct.pack('<f', 0.5))
    begin = ['peer', 'llama-tiny', *sets(f'data.path={text}', *LORA)]
    begun = run(*begin, '--weights', base, '--adapters', folder, '--until-samples', '0', '--quiet', '--json', '-')
    assert begun.returncode == 0, begun.stderr
    assert abs(json.loads(begun.stdout)['loss'] - loss) < 1e-6, (begun.stdout, loss)
    slower = [key.replace('rate=0.02', 'rate=0.002') for key in LORA]
    with Swarm(3, 1600, f'data.path={text}', *slower, run_name='llama-tiny') as swarm:
        one, two, stranger = swarm.peers
        one.seeds, two.seeds = [two.listen], [one.listen]
        for peer in (one, two):
            peer.start('--weights', base, '--adapters', folder)
        refused = stranger.start('--weights', base, '--adapters', unlike)
        assert refused.process.wait(30 * peers.SLOW) == 3, refused.said()
        assert 'the initial weights' in refused.said(), refused.said()
        finals = swarm.finish([one, two])
        assert finals[0]['loss'] < loss, (finals[0]['loss'], loss)
    for (weights, adapters, *more), status, words in (
            ((base, folder, 'model.adapter_rank=8'), 3, 'r = 4, and this run has model.adapter_rank = 8; set'),
            ((base, folder, 'model.adapter_alpha=8'), 3, 'lora_alpha = 16, and this run has model.adapter_alpha = 8;'),
            ((base, folder, 'model.adapter_targets=["k_proj"]'), 3,
             'target_modules = ["q_proj", "v_proj"], and this run has model.adapter_targets = ["k_proj"]; set'),
            ((other, folder), 3, 'belongs to a base with the SHA-256'),
            ((folder, folder), 2, 'name it with --adapters'),
            ((base, base), 1, 'there is no ' + base + '/adapter_config.json'),
            ((base, folder, 'model.adapter=none'), 2, 'this run trains none')):
        done = run(*begin, '--weights', weights, '--adapters', adapters, *sets(*more))
        assert done.returncode == status and words in done.stderr, (more, done.returncode, done.stderr)
    print('ok      from adapters that exist')


def sampled(state, whole, base, other):
    ask = lambda *source: run('sample', *source, '--prompt', 'a bird ', '--length', '40', '--seed', '3')
    merged, adapters = ask(whole), ask(state)
    assert merged.returncode == 0 and adapters.returncode == 0, (merged.stderr, adapters.stderr)
    assert merged.stdout == adapters.stdout != ask(base).stdout, (merged.stdout, adapters.stdout)
    os.rename(base, base + '-moved')
    moved = ask(state)
    assert moved.returncode == 1 and 'if it has moved, name it with --weights FOLDER' in moved.stderr, moved
    assert ask(state, '--weights', base + '-moved').stdout == merged.stdout
    wrong = ask(state, '--weights', other)
    assert wrong.returncode == 3 and 'belong to a base with the SHA-256' in wrong.stderr, wrong
    os.rename(base + '-moved', base)
    print('ok      sampling')


def what_is_wrong(text, state, whole, base):
    lora = sets('model.adapter=lora', f'data.path={text}', 'model.context=32')
    for arguments, status, words in (
            (['peer', 'llama-tiny', *lora], 2, 'name their folder with --weights FOLDER'),
            (['peer', 'synthetic', '--set', 'model.adapter=lora', '--weights', base + '/model.safetensors'], 2,
             'family gpt and llama'),
            (['peer', 'llama-tiny', *lora, '--weights', base, '--set', 'model.adapter_targets=["q"]'], 2,
             'no projection q; it has q_proj'),
            (['sim', 'llama-tiny', *lora, '--weights', base, '--stages', '2'], 2, 'leave one of them out'),
            (['export', state, '--to', 'x', '--shard-size', '1kB'], 2, 'add --merged'),
            (['export', state, '--to', 'x', '--merged', '--weights', whole], 3, 'belong to a base')):
        done = run(*arguments)
        assert done.returncode == status and words in done.stderr, (arguments, done.returncode, done.stderr)
    print('ok      refusals')


def main():
    peers.RUMOR = sys.argv[1]
    with tempfile.TemporaryDirectory(prefix='rumor-lora-') as tmp:
        texts = []
        for name, content in (('old', BASE_TEXT), ('new', NEW_TEXT)):
            texts.append(os.path.join(tmp, name))
            with open(texts[-1], 'w', encoding='utf-8') as file:
                file.write(content)
        base, other = base_of(tmp, 'base', texts[0], 1), base_of(tmp, 'other', texts[0], 2)
        state, loss = fine_tuned(tmp, texts[1], base, other)
        whole = exported(tmp, state, texts[1], base, loss)
        goes_on(tmp, texts[1], base, other, loss)
        sampled(state, whole, base, other)
        what_is_wrong(texts[1], state, whole, base)


main()
