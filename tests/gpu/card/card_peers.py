#!/usr/bin/env python3
"""Peers on this machine's GPU and peers on its processor train one model together: equal digests, through a kill.

usage: card_peers.py RUMOR      the environment names the plugin (RUMOR_CUDA)

Prints one JSON object: for each run of `mlp` (AdamW, a kill of the peer on the GPU) and `gpt` (Muon, mini-batches as
many as the delay wants, bfloat16 on the GPU): `seconds`, `steps` of the peer on the GPU and of the others, `loss`.
"""
import json
import os
import pathlib
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
if not (HERE / 'peers.py').is_file():
    sys.path.insert(0, str(HERE.parents[1] / 'system'))

import peers  # noqa: E402


def outcome(swarm, began):
    finals = [peer.final() for peer in swarm.peers]
    said = swarm.peers[0].said()
    assert ', on GPU ' in said, said[-2000:]
    return {'seconds': round(time.monotonic() - began, 2), 'steps': [final['steps'] for final in finals],
            'loss': [final['loss'] for final in finals], 'digest': finals[0]['digest']}


def start(swarm, index, *more):
    chosen = ['--device', 'cuda', *more] if index == 0 else []
    swarm.peers[index].start('--checkpoint-every', '1', '--threads', '1', *chosen)


def mlp():
    samples, began = 60_000, time.monotonic()
    settings = ['model.hidden=[256, 256]', 'optimizer.kind=adamw', 'optimizer.rate=0.001', 'exchange.period_ms=5']
    with peers.Swarm(3, samples, *settings) as swarm:
        for index in range(3):
            start(swarm, index)
        swarm.await_progress(samples // 3)
        swarm.peers[0].kill()
        start(swarm, 0)
        swarm.finish(seconds=90)
        return outcome(swarm, began)


def gpt():
    samples, began = 6_000, time.monotonic()
    with tempfile.NamedTemporaryFile('w', suffix='.txt') as text:
        text.write('of the making of many updates there is no end, and much studying is for a machine\n' * 2000)
        text.flush()
        with peers.Swarm(2, samples, f'data.path={text.name}', 'model.context=64', run_name='text-gpt') as swarm:
            start(swarm, 0, '--set', 'model.precision=bf16')
            start(swarm, 1)
            swarm.finish(seconds=90)
            return outcome(swarm, began)


peers.RUMOR = sys.argv[1]
os.environ.setdefault('CUDA_MODULE_LOADING', 'LAZY')
print(json.dumps({'mlp': mlp(), 'gpt': gpt()}))
