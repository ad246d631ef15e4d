"""Four processes train a small Llama to equal digests; its folder goes out, into another run, and into `rumor sample`.

usage: llama.py RUMOR
"""
import json
import os
import shutil
import struct
import sys
import tempfile

import peers
from peers import Swarm, run

TOKENIZER = 'unit/models/tokenizer/golden/gpt2.json'
TEXT = 'the cat sat on the mat and the dog sat on the log. ' * 400


def settings(text):
    keys = {'data.path': text, 'model.layers': 2, 'model.embedding': 32, 'model.feed_forward': 64, 'model.context': 32,
            'optimizer.batch': 8, 'exchange.local_steps': 2, 'compress.density': 0.1, 'exchange.period_ms': 0}
    return [f'{key}={value}' for key, value in keys.items()]


def four_peers(tmp, text):
    """-> a copy of the state directory of the first."""
    with Swarm(4, 6000, *settings(text), run_name='llama-tiny') as swarm:
        for peer in swarm.peers:
            peer.start()
        swarm.finish()
        final = swarm.peers[0].final()
        assert final['loss'] < 1.5, final
        state = shutil.copytree(swarm.peers[0].state, os.path.join(tmp, 'state'))
    print('ok      four peers, equal digests')
    return state


def folder_goes_round(tmp, text, state):
    """The export has config.json of a LlamaForCausalLM; a run that begins with it needs no other keys of the model."""
    folder = os.path.join(tmp, 'folder')
    done = run('export', state, '--to', folder)
    assert done.returncode == 0, done.stderr
    with open(os.path.join(folder, 'config.json'), encoding='utf-8') as file:
        config = json.load(file)
    wanted = {'model_type': 'llama', 'hidden_size': 32, 'num_hidden_layers': 2, 'num_attention_heads': 4,
              'num_key_value_heads': 2, 'head_dim': 8, 'intermediate_size': 64, 'tie_word_embeddings': True}
    assert {key: config[key] for key in wanted} == wanted, config
    begin = ['peer', 'llama-tiny', '--set', f'data.path={text}', '--set', f'model.weights={folder}', '--set',
             'model.context=16', '--until-samples', '8', '--quiet', '--json', '-']
    begun = run(*begin)
    assert begun.returncode == 0, begun.stderr
    assert json.loads(begun.stdout)['loss'] < 1.5, begun.stdout
    longer = run(*begin, '--set', 'model.context=64')
    assert longer.returncode == 2 and 'were made for 32 tokens' in longer.stderr, longer.stderr
    print('ok      a folder out and in')
    return folder


def tokenizer_of_the_folder(tmp, text):
    """The folder's tokenizer.json is taken; without it, weights of tokens are no model of bytes."""
    tokenizer = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), TOKENIZER)
    state, folder = os.path.join(tmp, 'tokens'), os.path.join(tmp, 'tokens-folder')
    few = ['--until-samples', '8', '--quiet', '--json', '-', '--set', 'run.samples=8']
    small = [part for key in settings(text) for part in ('--set', key)]
    trained = run('peer', 'llama-tiny', *small, '--set', f'data.tokens={tokenizer}', '--state', state, *few)
    assert trained.returncode == 0, trained.stderr
    assert run('export', state, '--to', folder).returncode == 0
    begin = ['peer', 'llama-tiny', '--set', f'data.path={text}', '--weights', folder, '--set', 'model.context=32', *few]
    begun = run(*begin)
    assert begun.returncode == 0, begun.stderr
    os.remove(os.path.join(folder, 'tokenizer.json'))
    bytes_only = run(*begin)
    assert bytes_only.returncode == 2 and 'data.tokens' in bytes_only.stderr, bytes_only
    print('ok      the tokenizer of a folder')


def samples(state, folder):
    ask = lambda source: run('sample', source, '--prompt', 'the cat ', '--length', '60', '--seed', '3')
    first, of_folder = ask(state), ask(folder)
    assert first.returncode == 0, first.stderr
    assert first.stdout == of_folder.stdout and first.stdout.startswith('the cat '), (first.stdout, of_folder.stdout)
    assert 'sat on the' in first.stdout or 'the dog' in first.stdout, first.stdout
    print('ok      sampling')


def refused(text, folder):
    """What is not computed here is named with its file, and nothing is written."""
    path = os.path.join(folder, 'config.json')
    with open(path, encoding='utf-8') as file:
        config = json.load(file)
    for member, value, words in (('sliding_window', 4096, 'sliding_window = 4096'),
                                 ('quantization_config', {'bits': 4}, 'quantization_config'),
                                 ('model_type', 'mixtral', 'model_type "mixtral"'),
                                 ('intermediate_size', 96, 'mlp.gate_proj.weight')):
        with open(path, 'w', encoding='utf-8') as file:
            json.dump({**config, member: value}, file)
        state = os.path.join(folder, 'never')
        done = run('peer', 'llama-tiny', '--set', f'data.path={text}', '--set', f'model.weights={folder}', '--set',
                   'model.context=16', '--state', state)
        assert done.returncode in (2, 3) and words in done.stderr and folder in done.stderr, (member, done)
        assert not os.path.exists(os.path.join(state, 'checkpoint')), member
    print('ok      what is not computed here')


def with_index(folder, shard):
    with open(os.path.join(folder, 'model.safetensors.index.json'), 'w', encoding='utf-8') as file:
        json.dump({'weight_map': {'model.norm.weight': shard}}, file)
    os.remove(os.path.join(folder, 'model.safetensors'))


def with_bytes(folder, change):
    """Changes the bytes of the weights: change(header, data) returns the data."""
    path = os.path.join(folder, 'model.safetensors')
    with open(path, 'rb') as file:
        content = file.read()
    size = 8 + struct.unpack('<Q', content[:8])[0]
    with open(path, 'wb') as file:
        file.write(content[:size] + change(json.loads(content[8:size]), content[size:]))


def with_nan(header, data):
    at = header['model.norm.weight']['data_offsets'][0] + 4 * 5
    return data[:at] + struct.pack('<f', float('nan')) + data[at + 4:]


def with_config(folder, **members):
    path = os.path.join(folder, 'config.json')
    with open(path, encoding='utf-8') as file:
        config = json.load(file)
    with open(path, 'w', encoding='utf-8') as file:
        json.dump({**config, **members}, file)


def damaged(tmp, text, folder):
    """The error names file and tensor, and no checkpoint is written."""
    gpt = {'model_type': 'gpt2', 'vocab_size': 256, 'n_positions': 32, 'n_embd': 32, 'n_layer': 2, 'n_head': 4}
    for name, spoil, status, words in (
            ('cut short', lambda at: with_bytes(at, lambda header, data: data[:-4]), 1, 'cut short'),
            ('missing shard', lambda at: with_index(at, 'gone.safetensors'), 1, 'names the shard gone.safetensors'),
            ('other family', lambda at: with_config(at, **gpt), 3, 'wte.weight is missing'),
            ('other shape', lambda at: with_config(at, intermediate_size=96), 3, 'gate_proj.weight is [64, 32], the'),
            ('not a number', lambda at: with_bytes(at, with_nan), 1, 'model.norm.weight holds nan at position 5')):
        spoilt, state = os.path.join(tmp, name), os.path.join(tmp, f'{name} state')
        shutil.copytree(folder, spoilt)
        spoil(spoilt)
        done = run('peer', 'llama-tiny', '--set', f'data.path={text}', '--weights', spoilt, '--set', 'model.context=16',
                   '--state', state)
        assert done.returncode == status and words in done.stderr and spoilt in done.stderr, (name, done)
        left = os.listdir(state) if os.path.exists(state) else []
        assert set(left) <= {'identity.pem', 'lock', 'kept'}, (name, left)
        assert not left or not os.listdir(os.path.join(state, 'kept')), name
    print('ok      damaged folders')


def main():
    peers.RUMOR = sys.argv[1]
    with tempfile.TemporaryDirectory() as tmp:
        text = os.path.join(tmp, 'text')
        with open(text, 'w', encoding='utf-8') as file:
            file.write(TEXT)
        state = four_peers(tmp, text)
        folder = folder_goes_round(tmp, text, state)
        tokenizer_of_the_folder(tmp, text)
        samples(state, folder)
        damaged(tmp, text, folder)
        refused(text, folder)


main()
