#!/usr/bin/env python3
"""Weights to and from PyTorch and Hugging Face's transformers: both must compute the same loss as `rumor`.

usage: interchange.py RUMOR      (needs torch, transformers and safetensors; about a minute)

Prints one JSON object with the losses of both sides, then `ok`.
"""

import json
import pathlib
import subprocess
import sys
import tempfile

import usage

usage.check(__doc__, 1)
usage.needs('safetensors', 'torch', 'transformers')

import safetensors.torch  # noqa: E402
import torch  # noqa: E402
import transformers  # noqa: E402

CONTEXT, HELD_OUT = 32, 10
GPT = ['model.family=gpt', f'model.context={CONTEXT}', 'model.layers=2', 'model.heads=2', 'model.embedding=32',
       'data.kind=text', 'optimizer.kind=rmsprop', 'optimizer.rate=0.01', 'run.samples=640', 'optimizer.batch=8']


def rumor(program, *arguments):
    run = subprocess.run([program, *arguments], capture_output=True, text=True, timeout=900, check=False)
    if run.returncode != 0:
        sys.exit(f'{" ".join(arguments)}: {run.stderr}')
    return run.stdout


def settings(assignments):
    return [part for assignment in assignments for part in ('--set', assignment)]


def held_out_rows(text):
    """The rows that rumor evaluates: of the last tenth, one after another."""
    held = torch.tensor(list(text[len(text) - len(text) // HELD_OUT:]))
    count = (len(held) - 1) // CONTEXT
    return torch.stack([held[row * CONTEXT:(row + 1) * CONTEXT + 1] for row in range(count)])


def loss_of(model, rows):
    with torch.no_grad():
        logits = model(rows[:, :-1]).logits
        return torch.nn.functional.cross_entropy(logits.flatten(0, 1), rows[:, 1:].flatten()).item()


def sample_text(folder):
    words = ['the', 'quick', 'brown', 'fox', 'jumps', 'over', 'a', 'lazy', 'dog', 'and', 'sleeps']
    text = ' '.join(words[(i * i + i // 7) % len(words)] for i in range(4000)).encode()
    path = folder / 'text.txt'
    path.write_bytes(text)
    return path, text


def gpt_out(program, folder, path, rows):
    """Trained here, computed there."""
    state = folder / 'state'
    status = json.loads(rumor(program, 'peer', 'synthetic', *settings(GPT + [f'data.path={path}']), '--state',
                              str(state), '--until-samples', '640', '--quiet', '--json', '-'))
    rumor(program, 'export', str(state), '--to', str(folder / 'gpt'))
    model = transformers.GPT2LMHeadModel.from_pretrained(folder / 'gpt').eval()
    return status['loss'], loss_of(model, rows)


def gpt_in(program, folder, path, rows):
    """Made there, computed here."""
    torch.manual_seed(3)
    config = transformers.GPT2Config(vocab_size=256, n_positions=CONTEXT, n_embd=32, n_layer=2, n_head=2,
                                     bos_token_id=None, eos_token_id=None, initializer_range=0.2)
    model = transformers.GPT2LMHeadModel(config).eval()
    model.save_pretrained(folder / 'theirs')
    result = json.loads(rumor(program, 'sim', 'synthetic', *settings(GPT + [f'data.path={path}', 'exchange.mode=sync']),
                              '--nodes', '1', '--weights', str(folder / 'theirs'), '--json', '-'))
    return result['curve'][0]['loss'], loss_of(model, rows)


def mlp_out(program, folder):
    """An MLP's file is a state_dict of nn.Sequential, and comes back as it went."""
    state = folder / 'mlp'
    rumor(program, 'peer', 'synthetic', '--state', str(state), '--until-samples', '2000', '--quiet')
    rumor(program, 'export', str(state), '--to', str(folder / 'mlp.safetensors'))
    model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 10))
    model.load_state_dict(safetensors.torch.load_file(folder / 'mlp.safetensors'))
    safetensors.torch.save_file(model.state_dict(), folder / 'back.safetensors')
    once, twice = (json.loads(rumor(program, 'sim', 'synthetic', '--nodes', '1', '--weights', str(folder / name),
                                    *settings(['run.samples=16', 'exchange.mode=sync']), '--json', '-'))
                   for name in ('mlp.safetensors', 'back.safetensors'))
    return once['curve'][0]['loss'], twice['curve'][0]['loss']


def main(program):
    with tempfile.TemporaryDirectory(prefix='rumor-interchange-') as name:
        folder = pathlib.Path(name)
        path, text = sample_text(folder)
        rows = held_out_rows(text)
        pairs = {'gpt_out': gpt_out(program, folder, path, rows), 'gpt_in': gpt_in(program, folder, path, rows),
                 'mlp_out': mlp_out(program, folder)}
    print(json.dumps(pairs))
    for what, (ours, theirs) in pairs.items():
        if abs(ours - theirs) > 1e-4:
            sys.exit(f'{what}: the losses differ')
    print('ok')


if __name__ == '__main__':
    main(sys.argv[1])
