#!/usr/bin/env python3
"""Llamas of random weights from transformers, to Rumor and back.

usage: hugging_face.py BUILD       (BUILD/tools/rumor and BUILD/tests/soak/model_step; needs torch and transformers)

For LlamaForCausalLM (with the scaling of Llama 3), MistralForCausalLM and Qwen2ForCausalLM: one pass has the same loss,
the same logarithms of probability within 1e-4, and the same gradient within 1e-4 of the largest in its tensor. Then a
folder of bfloat16 in shards goes into `rumor peer`, which takes 100 steps, and `rumor export` writes a folder that
from_pretrained() opens: the loss in transformers is that of Rumor within 1e-3.
"""
import os
import subprocess
import sys
import tempfile

import usage

usage.check(__doc__, 1)
usage.needs('numpy', 'torch', 'transformers')

import numpy  # noqa: E402
import torch  # noqa: E402
from transformers import (AutoModelForCausalLM, LlamaConfig, LlamaForCausalLM, MistralConfig,  # noqa: E402
                          MistralForCausalLM, Qwen2Config, Qwen2ForCausalLM)

CONTEXT, ROWS = 96, 3
SIZES = dict(vocab_size=256, hidden_size=64, intermediate_size=96, num_hidden_layers=3, num_attention_heads=4,
             num_key_value_heads=2, max_position_embeddings=256, bos_token_id=None, eos_token_id=None)
LLAMA3 = {'rope_type': 'llama3', 'rope_theta': 5000.0, 'factor': 8.0, 'low_freq_factor': 1.0, 'high_freq_factor': 4.0,
          'original_max_position_embeddings': 64}


def models():
    torch.manual_seed(1)
    yield 'llama', LlamaForCausalLM(LlamaConfig(**SIZES, rope_parameters=LLAMA3, tie_word_embeddings=False))
    yield 'mistral', MistralForCausalLM(MistralConfig(**SIZES, sliding_window=None))
    yield 'qwen2', Qwen2ForCausalLM(Qwen2Config(**SIZES, tie_word_embeddings=True))


def mix64(x):
    x = x + numpy.uint64(0x9e3779b97f4a7c15)
    x = (x ^ (x >> numpy.uint64(30))) * numpy.uint64(0xbf58476d1ce4e5b9)
    x = (x ^ (x >> numpy.uint64(27))) * numpy.uint64(0x94d049bb133111eb)
    return x ^ (x >> numpy.uint64(31))


def tokens():
    numbers = numpy.arange(ROWS * (CONTEXT + 1), dtype=numpy.uint64) + numpy.uint64(1 << 40)
    return torch.from_numpy((mix64(numbers) % numpy.uint64(256)).astype(numpy.int64)).view(ROWS, CONTEXT + 1)


def theirs(model):
    """Loss, log probabilities and gradients by name."""
    model = model.float()
    model.zero_grad()
    logits = model(tokens()[:, :-1]).logits
    loss = torch.nn.functional.cross_entropy(logits.reshape(-1, 256), tokens()[:, 1:].reshape(-1))
    loss.backward()
    return float(loss.detach()), logits.detach().log_softmax(-1).reshape(-1), dict(model.named_parameters())


def ours(build, folder):
    with tempfile.TemporaryDirectory() as out:
        done = subprocess.run([f'{build}/tests/soak/model_step', folder, str(CONTEXT), str(ROWS), out],
                              capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        read = lambda name: torch.from_numpy(numpy.fromfile(f'{out}/{name}', numpy.float32))
        return float(done.stdout), read('probability').log(), read('gradient')


def compare(build, name, model, folder):
    model.save_pretrained(folder)
    loss, logs, parameters = theirs(model)
    our_loss, our_logs, gradient = ours(build, folder)
    at, worst = 0, 0
    for key in model.state_dict():
        if key not in parameters:  # the tied head
            continue
        want = parameters[key].grad.reshape(-1)
        have = gradient[at:at + want.numel()]
        at += want.numel()
        worst = max(worst, float((have - want).abs().max() / want.abs().max()))
    assert at == gradient.numel()
    far = float((our_logs - logs).abs().max())
    print(f'{name}: loss {our_loss:.6f}, in transformers {loss:.6f}; log probability within {far:.1e}, '
          f'gradient within {worst:.1e}')
    assert abs(loss - our_loss) < 1e-5 and far < 1e-4 and worst < 1e-4


def round_trip(build, model, folder):
    rumor, start, state, end = f'{build}/tools/rumor', f'{folder}/start', f'{folder}/state', f'{folder}/end'
    model.to(torch.bfloat16).save_pretrained(start, max_shard_size='200KB')
    assert os.path.exists(f'{start}/model.safetensors.index.json'), os.listdir(start)
    run = lambda *words: subprocess.run([rumor, *words], check=True)
    run('peer', 'llama-tiny', '--set', f'model.weights={start}', '--set', 'exchange.local_steps=1', '--state', state,
        '--until-samples', '400', '--quiet')
    run('export', state, '--to', end)
    trained = AutoModelForCausalLM.from_pretrained(end)
    begun, after, our_loss = theirs(model)[0], theirs(trained)[0], ours(build, end)[0]
    print(f'round trip: loss on random bytes {begun:.4f} before, {after:.4f} after, in Rumor {our_loss:.4f}')
    assert abs(after - our_loss) < 1e-3 and abs(after - begun) > 0.01
    assert trained.config.max_position_embeddings == 256


def main():
    build = sys.argv[1]
    with tempfile.TemporaryDirectory() as folder:
        for name, model in models():
            compare(build, name, model, f'{folder}/{name}')
        round_trip(build, next(models())[1], folder)
    print('ok')


main()
