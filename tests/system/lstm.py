"""A small LSTM is trained, restarted, exported and sampled; its weights go to PyTorch's nn.LSTM and come back.

usage: lstm.py RUMOR      (without PyTorch, the losses are not compared)
"""
import array
import json
import os
import struct
import sys
import tempfile

import peers
from peers import run

TEXT = 'the cat sat on the mat and the dog sat on the log. ' * 400
CONTEXT, UNITS, LAYERS, EMBEDDING, HELD_OUT = 32, 24, 2, 12, 10


def settings(text, samples):
    keys = {'data.path': text, 'model.hidden': f'[{", ".join([str(UNITS)] * LAYERS)}]', 'model.embedding': EMBEDDING,
            'model.context': CONTEXT, 'run.samples': samples, 'optimizer.batch': 8, 'optimizer.rate': 0.02,
            'compress.density': 0.1, 'exchange.period_ms': 0}
    return [part for key, value in keys.items() for part in ('--set', f'{key}={value}')]


def train(tmp, text):
    """Two runs of one peer: the second goes on from the checkpoint of the first."""
    state = os.path.join(tmp, 'state')
    for samples in (12000, 24000):
        trained = run('peer', 'text-lstm', '--state', state, '--until-samples', str(samples), '--quiet', '--json', '-',
                      *settings(text, 24000), timeout=120)
        assert trained.returncode == 0, trained.stderr
    final = json.loads(trained.stdout)
    assert final['samples'] >= 24000 and final['loss'] < 0.5, final
    print('ok      training')
    return state, final['loss']


def samples(state):
    ask = ['sample', state, '--prompt', 'the cat ' * 20, '--length', '120', '--seed', '3']
    first, again = run(*ask), run(*ask)
    assert first.returncode == 0, first.stderr
    assert first.stdout == again.stdout and len(first.stdout) == 281, first.stdout
    words, known = first.stdout.split()[60:-1], set(TEXT.split())
    assert sum(word in known for word in words) > 0.6 * len(words), first.stdout
    headed = run(*ask, '--heads', '2')
    assert headed.returncode == 2 and 'leave out --heads' in headed.stderr, headed
    print('ok      sampling')


def refused(text):
    for key, words in (('model.hidden=[24,25]', 'make all numbers of model.hidden equal'),
                       ('model.hidden=[8,8,8,8]', '1 to 3 layers, not 4'),
                       ('optimizer.hogwild=2', 'set optimizer.hogwild = 0'), ('data.kind=synthetic', 'data.kind')):
        more = ['--set', 'optimizer.kind=rmsprop'] if 'hogwild' in key else []
        done = run('peer', 'text-lstm', *settings(text, 24000), '--set', key, *more)
        assert done.returncode == 2 and words in done.stderr, (key, done)
    print('ok      what does not fit')


def read_safetensors(path):
    """Names with shapes and floats, in the order of the file."""
    with open(path, 'rb') as file:
        header = json.loads(file.read(struct.unpack('<Q', file.read(8))[0]))
        data = file.read()
    header.pop('__metadata__', None)
    return {name: (entry['shape'], array.array('f', data[slice(*entry['data_offsets'])]))
            for name, entry in header.items()}


def write_safetensors(path, tensors):
    header, at = {}, 0
    for name, tensor in tensors.items():
        header[name] = {'dtype': 'F32', 'shape': list(tensor.shape), 'data_offsets': [at, at + 4 * tensor.numel()]}
        at += 4 * tensor.numel()
    text = json.dumps(header).encode()
    with open(path, 'wb') as file:
        file.write(struct.pack('<Q', len(text)) + text)
        for tensor in tensors.values():
            file.write(array.array('f', tensor.flatten().tolist()).tobytes())


def pytorch_model(torch):
    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.embedding = torch.nn.Embedding(256, EMBEDDING)
            self.lstm = torch.nn.LSTM(EMBEDDING, UNITS, LAYERS, batch_first=True)
            self.head = torch.nn.Linear(UNITS, 256)

        def forward(self, tokens, state=None):
            out, state = self.lstm(self.embedding(tokens), state)
            return self.head(out), state

    return Model()


def loss_of(torch, model):
    """On the rows that rumor evaluates: those of the last tenth, one after another, too few for a second lane. The
    state goes on from row to row."""
    text = TEXT.encode()
    held = torch.tensor(list(text[len(text) - len(text) // HELD_OUT:]))
    rows = torch.stack([held[at:at + CONTEXT + 1] for at in range(0, len(held) - CONTEXT, CONTEXT)])
    sum_of_losses, state = 0.0, None
    with torch.no_grad():
        for row in rows:
            logits, state = model(row[None, :-1], state)
            sum_of_losses += torch.nn.functional.cross_entropy(logits[0], row[1:]).item()
    return sum_of_losses / len(rows)


def out_and_in(torch, tmp, text, state, loss):
    folder, theirs = os.path.join(tmp, 'model'), os.path.join(tmp, 'theirs.safetensors')
    done = run('export', state, '--to', folder)
    assert done.returncode == 0, done.stderr
    with open(os.path.join(folder, 'config.json'), encoding='utf-8') as config:
        assert json.load(config)['hidden'] == [UNITS] * LAYERS
    sampled = run('sample', folder, '--prompt', 'the ', '--length', '9')
    assert sampled.returncode == 0 and sampled.stdout.startswith('the '), sampled
    if torch is None:
        return
    model = pytorch_model(torch)
    tensors = read_safetensors(os.path.join(folder, 'model.safetensors'))
    assert list(tensors) == list(model.state_dict()), list(tensors)
    model.load_state_dict({name: torch.tensor(values).reshape(shape) for name, (shape, values) in tensors.items()})
    there = loss_of(torch, model)
    assert abs(there - loss) < 1e-4, f'{loss} here, {there} there'
    torch.manual_seed(3)
    model = pytorch_model(torch)
    write_safetensors(theirs, model.state_dict())
    begun = run('sim', 'text-lstm', *settings(text, 16), '--set', 'exchange.mode=sync', '--nodes', '1', '--weights',
                theirs, '--json', '-')
    assert begun.returncode == 0, begun.stderr
    here, there = json.loads(begun.stdout)['curve'][0]['loss'], loss_of(torch, model)
    assert abs(there - here) < 1e-4, f'{here} here, {there} there'
    print('ok      weights to and from PyTorch')


def main():
    peers.RUMOR = sys.argv[1]
    try:
        import torch
    except ImportError:
        torch = None
    with tempfile.TemporaryDirectory() as tmp:
        text = os.path.join(tmp, 'text.txt')
        with open(text, 'w', encoding='utf-8') as file:
            file.write(TEXT)
        state, loss = train(tmp, text)
        samples(state)
        refused(text)
        out_and_in(torch, tmp, text, state, loss)


main()
