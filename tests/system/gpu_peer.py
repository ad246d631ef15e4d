#!/usr/bin/env python3
"""A peer that computes on GPUs and one that does not train one model: equal digests, through a kill of either.

usage: gpu_peer.py RUMOR PLUGIN      PLUGIN: the emulation of four GPUs, as a plugin
       gpu_peer.py RUMOR             on the GPU of this machine; the environment names the plugin (RUMOR_CUDA)
"""
import os
import sys
import tempfile

import peers

SAMPLES = 12000
SETTINGS = ['model.hidden=[16]', 'optimizer.kind=adamw', 'optimizer.rate=0.002', 'exchange.period_ms=5']
TEXT = ['data.kind=text', 'optimizer.kind=adamw', 'optimizer.rate=0.01', 'optimizer.batch=4', 'compress.density=0.05',
        'exchange.period_ms=10', 'model.layers=1', 'model.heads=2']
EMULATED = len(sys.argv) > 2


def start(swarm, index, device, *more):
    """Peer 0 on the device; a machine has one GPU, the emulation four."""
    chosen = ['--device', device if EMULATED else 'cuda', *more] if index == 0 else []
    return swarm.peers[index].start('--checkpoint-every', '1', '--threads', '1', *chosen)


def began_on(swarm, name):
    """How often peer 0 began on GPUs of this name."""
    return swarm.peers[0].said().count(f', on GPU {name}' if EMULATED else ', on GPU ')


def train_together():
    """On one GPU; killed, on two."""
    with peers.Swarm(2, SAMPLES, *SETTINGS) as swarm:
        for index in range(2):
            start(swarm, index, 'cuda')
        for index, samples in ((0, SAMPLES // 3), (1, SAMPLES * 2 // 3)):
            swarm.await_progress(samples)
            swarm.peers[index].kill()
            start(swarm, index, 'cuda:1,3')
        swarm.finish()
        for peer in swarm.peers:
            assert peer.final()['steps'] > 20, 'it was hardly there'
        if EMULATED:
            assert began_on(swarm, 'emulation') == began_on(swarm, '2 x emulation') == 1, 'it began elsewhere'
        else:
            assert began_on(swarm, '') == 2, swarm.peers[0].said()
        assert 'GPU' not in swarm.peers[1].said()


def train_on_text(line, samples, loss_max, device, name, model, *more):
    """The loss begins at log 256, which is 5.5. An emulated GPU is slow on a busy machine."""
    with tempfile.NamedTemporaryFile('w', suffix='.txt') as text:
        text.write(line * 100)
        text.flush()
        with peers.Swarm(2, samples, *TEXT, f'data.path={text.name}', *model) as swarm:
            for index in range(2):
                start(swarm, index, device, *more)
            swarm.finish()
            final = swarm.peers[0].final()
            assert final['steps'] > 5 and final['loss'] < loss_max, final
            assert began_on(swarm, name) == 1, swarm.peers[0].said()


def train_a_gpt():
    """With products of bfloat16 on the GPU, of float32 on the other peer."""
    train_on_text('of the making of many updates there is no end, and much studying is for a machine\n', 1600, 4,
                  'cuda:0,1,2', '3 x emulation', ['model.family=gpt', 'model.context=16', 'model.embedding=16'],
                  '--set', 'model.precision=bf16')


def train_a_llama():
    """With all that the family may have: grouped heads, biases, a head of its own."""
    train_on_text('all things come to one that waits, and more of them to two that wait for each other\n', 1200, 5,
                  'cuda', 'emulation',
                  ['model.family=llama', 'model.context=12', 'model.kv_heads=1', 'model.embedding=12',
                   'model.feed_forward=20', 'model.qkv_bias=true', 'model.tied_head=false'])


def train_in_rounds():
    """With Muon, in rounds of as many mini-batches as the delay wants, as the preset text-gpt."""
    rounds = ['model.hidden=[16, 16]', 'optimizer.kind=muon', 'optimizer.rate=0.02', 'exchange.local_steps=auto',
              'exchange.period_ms=20']
    with peers.Swarm(2, SAMPLES, *rounds) as swarm:
        for index in range(2):
            start(swarm, index, 'cuda:1,3')
        swarm.finish()
        final = swarm.peers[0].final()
        assert final['steps'] > 5, final
        assert final['compression']['staleness']['batches_per_update'] >= 4, final
        assert began_on(swarm, '2 x emulation') == 1, swarm.peers[0].said()


def refused():
    for device, words in (('cuda:0,1,0', 'GPU 0 is named twice'),
                          ('cuda:1,9', 'there is no GPU 9; this machine has 4')):
        done = peers.run('peer', 'synthetic', '--device', device)
        assert done.returncode == 2 and '--device cuda' in done.stderr and words in done.stderr, done


def a_family_without_kernels():
    with tempfile.NamedTemporaryFile('w', suffix='.txt') as text:
        text.write('a text of some words\n' * 500)
        text.flush()
        done = peers.run('peer', 'text-lstm', '--set', f'data.path={text.name}', '--device', 'cuda')
    assert done.returncode == 2 and '"lstm" does not train on a GPU; use --device cpu' in done.stderr, done


def told_by_doctor():
    healthy = peers.run('doctor').stdout
    assert 'ok    GPU' in healthy and 'emulation, ' in healthy, healthy
    os.environ['RUMOR_CUDA'] = '/nowhere/librumor_cuda.so'
    without = peers.run('doctor').stdout
    assert 'warn  GPU' in without and 'no /nowhere/librumor_cuda.so' in without, without


peers.RUMOR = sys.argv[1]
if EMULATED:
    os.environ['RUMOR_CUDA'] = sys.argv[2]
for run in (train_together, train_a_gpt, train_a_llama, train_in_rounds):
    run()
if EMULATED:
    refused()
    a_family_without_kernels()
    told_by_doctor()
print('ok')
