"""A small GPT is trained on a text, stopped, and sampled; then what a user may get wrong. usage: sample.py RUMOR"""
import json
import os
import struct
import subprocess
import sys
import tempfile
import time

import peers
from peers import run

TEXT = 'the cat sat on the mat and the dog sat on the log. ' * 400


def settings_of(tmp, more):
    text = os.path.join(tmp, 'text.txt')
    with open(text, 'w', encoding='utf-8') as file:
        file.write(TEXT)
    settings = {'data.path': text, 'model.layers': 1, 'model.heads': 2, 'model.embedding': 32, 'model.context': 32,
                'run.samples': 24000, 'optimizer.batch': 8, 'optimizer.rate': 0.01, 'compress.density': 0.05,
                'exchange.period_ms': 0, **more}
    return [part for key, value in settings.items() for part in ('--set', f'{key}={value}')]


def train(tmp, name='state', more=None):
    state, sets = os.path.join(tmp, name), settings_of(tmp, more or {})
    trained = run('peer', 'text-gpt', '--state', state, '--until-samples', '24000', '--quiet', *sets, timeout=120)
    assert trained.returncode == 0, trained.stderr
    return state


def samples(state):
    """The same seed writes the same text; it has learned the words; other choices write other text."""
    ask = ['sample', state, '--prompt', 'the cat ', '--length', '120', '--seed', '3']
    first, again = run(*ask), run(*ask)
    assert first.returncode == 0, first.stderr
    assert first.stdout == again.stdout and first.stdout.startswith('the cat ') and len(first.stdout) == 129
    known = set(TEXT.split())
    words = first.stdout.split()[:-1]  # the last may be cut off
    assert sum(word in known for word in words) > 0.6 * len(words), first.stdout
    assert run(*ask[:-1], '4', '--temperature', '20', '--top-k', '8').stdout != first.stdout
    likeliest = [run('sample', state, '--length', '60', '--seed', seed, '--temperature', '0').stdout for seed in '12']
    assert likeliest[0] == likeliest[1]
    narrow = run(*ask, '--top-k', '1')
    assert narrow.stdout == run(*ask[:-1], '9', '--top-k', '1').stdout
    print('ok      sampling')


def with_a_tokenizer(tmp):
    """Tokens of a tokenizer.json: the peer keeps the file, sample writes text, and another tokenizer is another run."""
    golden = os.path.join(os.path.dirname(__file__), '..', 'unit', 'models', 'tokenizer', 'golden')
    state = train(tmp, 'tokens', {'data.tokens': os.path.join(golden, 'gpt2.json')})
    assert os.path.exists(os.path.join(state, 'tokenizer.json')), os.listdir(state)
    done = run('sample', state, '--prompt', 'the cat ', '--length', '40', '--temperature', '0.3')
    assert done.returncode == 0 and done.stdout.startswith('the cat '), done
    words = done.stdout.split()[:-1]
    assert sum(word in set(TEXT.split()) for word in words) > 0.6 * len(words), done.stdout
    folder = os.path.join(tmp, 'exported')
    assert run('export', state, '--to', folder, '--dtype', 'bf16', '--shard-size', '20kB').returncode == 0
    assert 'tokenizer.json' in os.listdir(folder) and 'model.safetensors.index.json' in os.listdir(folder)
    assert run('sample', folder, '--length', '9', '--prompt', 'on ').returncode == 0
    refuse('a tokenizer that is larger than the model', 3, ['333 tokens and the model 256'],
           os.path.join(tmp, 'state'), '--tokens', os.path.join(golden, 'gpt2.json'))
    sets = settings_of(tmp, {'data.tokens': os.path.join(golden, 'qwen2.json')})
    other = run('peer', 'text-gpt', '--state', state, '--until-samples', '9', '--quiet', *sets)
    assert other.returncode == 3 and 'data.tokens = this tokenizer' in other.stderr, other
    print('ok      a tokenizer.json')


def export_as_gpt2(state, tmp):
    """The names of a Hugging Face file, without heads: they must be said. It is another model: all zero."""
    directory = os.path.join(tmp, 'zero')
    os.mkdir(directory)
    with open(os.path.join(state, 'config.json'), encoding='utf-8') as file:
        config = json.load(file)
    assert config['model_type'] == 'gpt2' and config['n_head'] == 2 and config['n_positions'] == 32, config
    d, shapes = 4, {'wte.weight': [300, 4], 'wpe.weight': [5, 4], 'ln_f.weight': [4], 'ln_f.bias': [4]}
    for name, shape in (('ln_1.weight', [d]), ('ln_1.bias', [d]), ('attn.c_attn.weight', [d, 3 * d]),
                        ('attn.c_attn.bias', [3 * d]), ('attn.c_proj.weight', [d, d]), ('attn.c_proj.bias', [d]),
                        ('ln_2.weight', [d]), ('ln_2.bias', [d]), ('mlp.c_fc.weight', [d, 4 * d]),
                        ('mlp.c_fc.bias', [4 * d]), ('mlp.c_proj.weight', [4 * d, d]), ('mlp.c_proj.bias', [d]),
                        ('attn.bias', [1, 1, 5, 5])):
        shapes['h.0.' + name] = shape
    header, at = {}, 0
    for name, shape in shapes.items():
        size = 4
        for extent in shape:
            size *= extent
        header[name] = {'dtype': 'F32', 'shape': shape, 'data_offsets': [at, at + size]}
        at += size
    text = json.dumps(header).encode()
    path = os.path.join(directory, 'model.safetensors')
    with open(path, 'wb') as file:
        file.write(struct.pack('<Q', len(text)) + text + bytes(at))
    return directory, path


def refuse(what, status, words, *args):
    result = run('sample', *args)
    assert result.returncode == status, f'{what}: {result.returncode} {result.stderr}'
    assert all(word in result.stderr for word in words), f'{what}: {result.stderr}'
    print('ok      ' + what)


def wrong(state, tmp):
    refuse('no such file', 1, ['nothing-here'], os.path.join(tmp, 'nothing-here'))
    refuse('an empty directory', 1, ['no checkpoint', '--state'], tmp)
    refuse('a prompt that is too long', 2, ['40 tokens', '32'], state, '--prompt', 'x' * 40)
    refuse('a temperature below zero', 2, ['--temperature'], state, '--temperature', '-1')
    refuse('heads that do not fit', 3, ['3 heads'], state, '--heads', '3')
    mlp = os.path.join(tmp, 'mlp')
    assert run('peer', 'synthetic', '--state', mlp, '--until-samples', '2000', '--quiet').returncode == 0
    refuse('a model that is no GPT', 3, ['model_type "mlp"', 'gpt2, llama'], mlp)
    directory, path = export_as_gpt2(state, tmp)
    refuse('nothing says the heads', 2, ['config.json', '--heads'], path)
    refuse('text for a model of numbers', 2, ['15496 995'], directory, '--heads', '2', '--prompt', 'hello')
    numbers = run('sample', directory, '--heads', '2', '--prompt', '7 8', '--length', '9')
    assert numbers.returncode == 0 and numbers.stdout.startswith('7 8 '), numbers
    assert all(0 <= int(token) < 300 for token in numbers.stdout.split()) and len(numbers.stdout.split()) == 11
    with open(os.path.join(directory, 'vocab.json'), 'w', encoding='utf-8') as file:
        tokens = ['a', 'b', 'c', 'd', 'e', '\u0120', 'ab', '\u0120c']
        json.dump({token: number for number, token in enumerate(tokens)}, file)
    worded = run('sample', directory, '--heads', '2', '--prompt', 'ab cde', '--length', '3')
    assert worded.returncode == 0 and worded.stdout.startswith('ab cde'), worded
    refuse('what vocab.json cannot spell', 2, ['vocab.json'], directory, '--heads', '2', '--prompt', 'zzz')
    with open(os.path.join(directory, 'vocab.json'), 'w', encoding='utf-8') as file:
        file.write('{')
    refuse('a damaged vocab.json', 1, ['vocab.json'], directory, '--heads', '2')


def interrupt(state):
    process = subprocess.Popen([peers.RUMOR, 'sample', state, '--length', '1000000000'], stdout=subprocess.PIPE)
    assert process.stdout.read(100), 'nothing was written'
    process.send_signal(2)
    process.stdout.read()
    assert process.wait(timeout=20) == 0
    print('ok      Ctrl-C')


def main():
    peers.RUMOR = sys.argv[1]
    begin = time.monotonic()
    with tempfile.TemporaryDirectory() as tmp:
        state = train(tmp)
        samples(state)
        with_a_tokenizer(tmp)
        wrong(state, tmp)
        interrupt(state)
    print(f'{time.monotonic() - begin:.1f} s')


main()
