#!/usr/bin/env python3
"""Training steps of Rumor beside those of whatever PyTorch is installed, in turns, on this machine.

A step is forward, backward and plain SGD, in floats, on random data. Both sides run bursts of steps in turns, so that a
machine that changes its speed changes it for both; the figure is the best step of all bursts, the ratio PyTorch's
time over Rumor's. GFLOP count what the model needs: two operations for each multiply-add, forward, for the gradient of
the weights, and for that of the inputs of all layers but the first. "of peak" compares with bare fused multiply-adds of
as many cores, measured in the same bursts.

PyTorch's threads wait passively (OMP_WAIT_POLICY): on a machine that does anything else, that is its best setting.

Usage: torch_speed.py [--rounds N] [--threads 1,2] [--models a,b] [--compile] [--json FILE]
                      build/tests/bench/bench_models
"""
import argparse
import ctypes
import json
import os
import subprocess
import sys
import time

os.environ.setdefault('OMP_WAIT_POLICY', 'passive')


def mlp(nn):
    return nn.Sequential(nn.Linear(784, 1024), nn.ReLU(), nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, 10))


def cnn(nn):
    return nn.Sequential(nn.Conv2d(1, 32, 3, padding=1), nn.ReLU(), nn.Conv2d(32, 64, 3, padding=1), nn.ReLU(),
                         nn.MaxPool2d(2), nn.Flatten(), nn.Linear(64 * 14 * 14, 128), nn.ReLU(), nn.Linear(128, 10))


def gpt(layers, heads, width, context, tokens=256):
    """GPT-2's architecture, written as PyTorch is fastest with: nn.Linear and its own causal attention."""
    def make(nn):
        import torch

        class Layer(nn.Module):
            def __init__(self):
                super().__init__()
                self.norm_1, self.norm_2 = nn.LayerNorm(width), nn.LayerNorm(width)
                self.attention, self.output = nn.Linear(width, 3 * width), nn.Linear(width, width)
                self.wide, self.narrow = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

            def forward(self, x):
                batch, places, _ = x.shape
                q, k, v = (part.view(batch, places, heads, -1).transpose(1, 2)
                           for part in self.attention(self.norm_1(x)).split(width, dim=2))
                if hasattr(nn.functional, 'scaled_dot_product_attention'):
                    y = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
                else:  # before PyTorch 2
                    above = torch.ones(places, places, dtype=torch.bool).triu(1)
                    looks = q @ k.transpose(2, 3) / (width // heads) ** 0.5
                    y = looks.masked_fill(above, float('-inf')).softmax(dim=3) @ v
                x = x + self.output(y.transpose(1, 2).reshape(batch, places, width))
                return x + self.narrow(nn.functional.gelu(self.wide(self.norm_2(x)), approximate='tanh'))

        class Gpt(nn.Module):
            def __init__(self):
                super().__init__()
                self.table, self.position = nn.Embedding(tokens, width), nn.Embedding(context, width)
                self.layers, self.norm = nn.Sequential(*(Layer() for _ in range(layers))), nn.LayerNorm(width)

            def forward(self, rows):
                x = self.table(rows) + self.position.weight
                return self.norm(self.layers(x)) @ self.table.weight.T

        return Gpt()
    return make


def llama(layers, heads, groups, width, wide, context, tokens=256):
    """Llama's architecture, as PyTorch is fastest with; needs PyTorch 2."""
    def make(nn):
        import torch
        size = width // heads

        class Norm(nn.Module):
            def __init__(self):
                super().__init__()
                self.gain = nn.Parameter(torch.ones(width))

            def forward(self, x):
                if hasattr(nn.functional, 'rms_norm'):
                    return nn.functional.rms_norm(x, (width,), self.gain, 1e-5)
                return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-5) * self.gain

        class Layer(nn.Module):
            def __init__(self):
                super().__init__()
                self.norm_1, self.norm_2 = Norm(), Norm()
                self.qkv = nn.Linear(width, (heads + 2 * groups) * size, bias=False)
                self.output = nn.Linear(width, width, bias=False)
                self.gate_up, self.down = nn.Linear(width, 2 * wide, bias=False), nn.Linear(wide, width, bias=False)
                angle = torch.outer(torch.arange(context), 10000.0 ** (-torch.arange(0, size, 2) / size))
                self.register_buffer('cos', torch.cat([angle.cos()] * 2, -1))
                self.register_buffer('sin', torch.cat([-angle.sin(), angle.sin()], -1))

            def forward(self, x):
                batch, places, _ = x.shape
                heads_of = self.qkv(self.norm_1(x)).view(batch, places, -1, size).transpose(1, 2)
                turned = heads_of[:, :heads + groups]
                turned = turned * self.cos + turned.roll(size // 2, -1) * self.sin
                k, v = (part.repeat_interleave(heads // groups, 1)
                        for part in (turned[:, heads:], heads_of[:, heads + groups:]))
                y = nn.functional.scaled_dot_product_attention(turned[:, :heads], k, v, is_causal=True)
                x = x + self.output(y.transpose(1, 2).reshape(batch, places, width))
                gate, up = self.gate_up(self.norm_2(x)).chunk(2, -1)
                return x + self.down(nn.functional.silu(gate) * up)

        class Llama(nn.Module):
            def __init__(self):
                super().__init__()
                self.table = nn.Embedding(tokens, width)
                self.layers, self.norm = nn.Sequential(*(Layer() for _ in range(layers))), Norm()

            def forward(self, rows):
                return self.norm(self.layers(self.table(rows))) @ self.table.weight.T

        return Llama()
    return make


def llama_uses(layers, heads, groups, width, wide, context, rows):
    weights = width * width * (2 + 2 * groups / heads) + 3 * width * wide
    return rows * context * 3 * (layers * weights + 256 * width + layers * context * width)


def lstm(layers, embedding, width, tokens=256):
    def make(nn):
        class Lstm(nn.Module):
            def __init__(self):
                super().__init__()
                self.embedding, self.head = nn.Embedding(tokens, embedding), nn.Linear(width, tokens)
                self.lstm = nn.LSTM(embedding, width, layers, batch_first=True)

            def forward(self, rows):
                return self.head(self.lstm(self.embedding(rows))[0])

        return Lstm()
    return make


def lstm_uses(layers, embedding, width, places):
    return places * 3 * (4 * width * (embedding + width + (layers - 1) * 2 * width) + 256 * width)


def gpt_uses(layers, width, context, rows):
    """Weights three times, and attention's two products, half a square each, forward once and backward twice."""
    return rows * context * 3 * (12 * layers * width ** 2 + 256 * width + layers * context * width)


def text(torch, rows, context):
    tokens = torch.randint(0, 256, (rows, context + 1))
    return tokens[:, :-1].contiguous(), tokens[:, 1:].reshape(-1)


def token_loss(torch, net, batch):
    return torch.nn.functional.cross_entropy(net(batch[0]).flatten(0, 1), batch[1])


def pictures(torch, rows, shape):
    return torch.randn(rows, *shape), torch.randint(0, 10, (rows,))


def cross_entropy(torch, net, batch):
    return torch.nn.functional.cross_entropy(net(batch[0]), batch[1])


MLP_USES = 784 * 1024 * 2 + (1024 * 1024 + 1024 * 10) * 3
CNN_USES = 784 * 9 * 32 * 2 + (784 * 9 * 32 * 64 + 12544 * 128 + 128 * 10) * 3

# One row a model; bench_models.cc knows the same names. uses: multiply-adds a sample, forward and backward.
# net(nn) -> module; batch(torch) -> data; loss(torch, module, batch) -> scalar tensor.
MODELS = {
    'mlp-64': dict(text='MLP 784-1024-1024-10, batch 64', uses=64 * MLP_USES, net=mlp,
                   batch=lambda torch: pictures(torch, 64, (784,)), loss=cross_entropy),
    'mlp-128': dict(text='MLP 784-1024-1024-10, batch 128', uses=128 * MLP_USES, net=mlp,
                    batch=lambda torch: pictures(torch, 128, (784,)), loss=cross_entropy),
    'cnn-64': dict(text='CNN 32-64-pool-128, batch 64', uses=64 * CNN_USES, net=cnn,
                   batch=lambda torch: pictures(torch, 64, (1, 28, 28)), loss=cross_entropy),
    'gpt-4x128': dict(text='GPT 4 x 128, 16 rows of 128', uses=gpt_uses(4, 128, 128, 16), net=gpt(4, 4, 128, 128),
                      batch=lambda torch: text(torch, 16, 128), loss=token_loss),
    'gpt-6x384': dict(text='GPT 6 x 384, 8 rows of 256', uses=gpt_uses(6, 384, 256, 8), net=gpt(6, 6, 384, 256),
                      batch=lambda torch: text(torch, 8, 256), loss=token_loss),
    'llama-5x128': dict(text='Llama 5 x 128, 16 rows of 128', uses=llama_uses(5, 4, 2, 128, 384, 128, 16),
                        net=llama(5, 4, 2, 128, 384, 128), batch=lambda torch: text(torch, 16, 128), loss=token_loss),
    'llama-8x384': dict(text='Llama 8 x 384, 8 rows of 256', uses=llama_uses(8, 6, 2, 384, 1024, 256, 8),
                        net=llama(8, 6, 2, 384, 1024, 256), batch=lambda torch: text(torch, 8, 256), loss=token_loss),
    'lstm-2x256': dict(text='LSTM 2 x 256, 16 rows of 128', uses=lstm_uses(2, 128, 256, 2048), net=lstm(2, 128, 256),
                       batch=lambda torch: text(torch, 16, 128), loss=token_loss),
    'lstm-1x512': dict(text='LSTM 1 x 512, 32 rows of 64', uses=lstm_uses(1, 128, 512, 2048), net=lstm(1, 128, 512),
                       batch=lambda torch: text(torch, 32, 64), loss=token_loss),
}


class Rumor:
    def __init__(self, program):
        self.process = subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.names = self.ask('list').split()

    def ask(self, line):
        print(line, file=self.process.stdin, flush=True)
        answer = self.process.stdout.readline()
        if not answer:
            sys.exit(f'bench_models gave no answer to "{line}"')
        return answer

    def burst(self, name, threads, seconds):
        """Best step in seconds, and multiply-adds of one core, operations a second."""
        best, _, peak, _ = (float(word) for word in self.ask(f'{name} {threads} {seconds}').split())
        return best * 1e-3, peak * 1e9


def blas_threads():
    """Sets the threads of an OpenBLAS under PyTorch (Debian's): torch.set_num_threads does not reach its pool."""
    try:
        return ctypes.CDLL('libblas.so.3', mode=os.RTLD_NOLOAD).openblas_set_num_threads
    except (OSError, AttributeError):
        return lambda threads: None


class Torch:
    def __init__(self, torch, compiled):
        self.torch, self.compiled = torch, compiled
        self.made = {}
        self.set_blas_threads = blas_threads()

    def burst(self, name, threads, seconds):
        torch, model = self.torch, MODELS[name]
        torch.set_num_threads(threads)
        self.set_blas_threads(threads)
        if (name, threads) not in self.made:  # compiled code is made for a number of threads
            net = model['net'](torch.nn)
            if self.compiled:
                net = torch.compile(net)
            self.made[name, threads] = net, model['batch'](torch), torch.optim.SGD(net.parameters(), lr=0.01)
        net, batch, optimizer = self.made[name, threads]
        best, spent, steps = 1e9, 0.0, 0
        while spent < seconds or steps < 3:
            begin = time.perf_counter()
            optimizer.zero_grad()
            model['loss'](torch, net, batch).backward()
            optimizer.step()
            took = time.perf_counter() - begin
            best, spent, steps = min(best, took), spent + took, steps + 1
        return best


def compare(rumor, torch, name, threads, rounds, seconds):
    ours, theirs, peak = 1e9, 1e9, 0.0
    for _ in range(rounds):
        best, rate = rumor.burst(name, threads, seconds)
        ours, peak = min(ours, best), max(peak, rate)
        theirs = min(theirs, torch.burst(name, threads, seconds))
    work = 2 * MODELS[name]['uses'] / 1e9
    return dict(model=name, threads=threads, ratio=theirs / ours, rumor_ms=ours * 1e3, torch_ms=theirs * 1e3,
                rumor_gflops=work / ours, torch_gflops=work / theirs, peak_gflops=peak * threads / 1e9)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    parser.add_argument('program', help='bench_models of a build with optimisation')
    parser.add_argument('--rounds', type=int, default=12)
    parser.add_argument('--seconds', type=float, default=0.5, help='length of a burst')
    parser.add_argument('--threads', default='1,2')
    parser.add_argument('--compile', action='store_true', help='PyTorch models through torch.compile()')
    parser.add_argument('--models', default=','.join(MODELS))
    parser.add_argument('--json', help='file for the figures')
    options = parser.parse_args()
    try:
        import torch
    except ImportError:
        print('no PyTorch for this python3: nothing to compare with', file=sys.stderr)
        return 77
    rumor, other = Rumor(options.program), Torch(torch, options.compile)
    print(f'PyTorch {torch.__version__}, {torch.backends.cpu.get_cpu_capability()}' if
          hasattr(torch.backends, 'cpu') else f'PyTorch {torch.__version__}')
    print(f'{"model":34} {"threads":>7} {"ratio":>6} | {"Rumor ms":>9} {"GFLOP/s":>8} {"of peak":>7} | '
          f'{"PyTorch ms":>10} {"GFLOP/s":>8} {"of peak":>7}')
    rows = []
    for name in options.models.split(','):
        if name not in MODELS or name not in rumor.names:
            sys.exit(f'no model {name}; there are: {" ".join(MODELS)}')
        for threads in (int(word) for word in options.threads.split(',')):
            row = compare(rumor, other, name, threads, options.rounds, options.seconds)
            rows.append(row)
            print(f'{MODELS[name]["text"]:34} {threads:7} {row["ratio"]:6.2f} | {row["rumor_ms"]:9.2f} '
                  f'{row["rumor_gflops"]:8.1f} {row["rumor_gflops"] / row["peak_gflops"]:7.0%} | '
                  f'{row["torch_ms"]:10.2f} {row["torch_gflops"]:8.1f} '
                  f'{row["torch_gflops"] / row["peak_gflops"]:7.0%}', flush=True)
    if options.json:
        with open(options.json, 'w', encoding='utf-8') as out:
            json.dump({'torch': torch.__version__, 'rows': rows}, out, indent=1)
    return 0


if __name__ == '__main__':
    sys.exit(main())
