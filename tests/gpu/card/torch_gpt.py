#!/usr/bin/env python3
"""GPT-2 by PyTorch, as fast as PyTorch is and as exact: what tests/gpu/visit compares with.

usage: torch_gpt.py FILE [--rows N] [--seconds S] [--only-speed]
                                                        exit status: 77 where there is no PyTorch

FILE is what bench_gpu --losses wrote: a model's first weights and, as metadata, its first losses in float32 with AdamW
on one batch that a formula gives. First the same steps are taken here, in float32; then steps are timed as people take
them: torch.compile, bfloat16 by autocast, flash attention, fused AdamW. On a machine without a GPU the latter are
plain, and say nothing of speed.

Prints one JSON object: `torch` (its version), `device`, `losses`, `largest_difference` (of a loss, as a share of it),
`step_s` and `tokens_per_second` (the best of some rounds).
"""
import argparse
import contextlib
import json
import struct
import sys
import time

try:
    import torch
    from torch import nn
    from torch.nn import functional
except ImportError as absent:
    print(absent)
    sys.exit(77)


def read(path):
    """A safetensors file of floats: its tensors and its metadata."""
    with open(path, 'rb') as file:
        head = json.loads(file.read(struct.unpack('<Q', file.read(8))[0]))
        data = bytearray(file.read())
    metadata = head.pop('__metadata__')
    tensors = {}
    for name, entry in head.items():
        begin, end = entry['data_offsets']
        tensors[name] = torch.frombuffer(data, dtype=torch.float32, count=(end - begin) // 4,
                                         offset=begin).reshape(entry['shape'])
    return tensors, metadata


class Layer(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.ln_1, self.ln_2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.c_attn, self.attn_proj = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.c_fc, self.mlp_proj = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def attend(self, x):
        rows, places, width = x.shape
        q, k, v = (part.view(rows, places, self.heads, -1).transpose(1, 2)
                   for part in self.c_attn(x).split(width, dim=2))
        if hasattr(functional, 'scaled_dot_product_attention'):
            y = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        else:  # before PyTorch 2
            above = torch.ones(places, places, dtype=torch.bool, device=x.device).triu(1)
            looks = q @ k.transpose(2, 3) / (width // self.heads) ** 0.5
            y = looks.masked_fill(above, float('-inf')).softmax(dim=3) @ v
        return y.transpose(1, 2).reshape(rows, places, width)

    def forward(self, x):
        x = x + self.attn_proj(self.attend(self.ln_1(x)))
        return x + self.mlp_proj(functional.gelu(self.c_fc(self.ln_2(x)), approximate='tanh'))


class Gpt(nn.Module):
    """With the weights of such a file, whose layers lie inputs first."""

    def __init__(self, tensors, heads):
        super().__init__()
        named = {name.removeprefix('transformer.'): value for name, value in tensors.items()}
        vocabulary, width = named['wte.weight'].shape
        layers = sum(name.endswith('.ln_1.weight') for name in named)
        self.wte, self.wpe = nn.Embedding(vocabulary, width), nn.Embedding(named['wpe.weight'].shape[0], width)
        self.h, self.ln_f = nn.ModuleList(Layer(width, heads) for _ in range(layers)), nn.LayerNorm(width)
        state = {}
        for name, value in named.items():
            own = name.replace('attn.c_proj', 'attn_proj').replace('mlp.c_proj', 'mlp_proj')
            own = own.replace('attn.c_attn', 'c_attn').replace('mlp.c_fc', 'c_fc')
            turned = name.startswith('h.') and value.dim() == 2
            state[own] = value.t().contiguous() if turned else value.clone()
        self.load_state_dict(state)

    def forward(self, tokens, targets):
        x = self.wte(tokens) + self.wpe.weight
        for layer in self.h:
            x = layer(x)
        logits = self.ln_f(x) @ self.wte.weight.t()
        return functional.cross_entropy(logits.reshape(-1, logits.shape[-1]), targets.reshape(-1))


def batch_of(net, rows, device):
    i = torch.arange(rows * (net.wpe.num_embeddings + 1), dtype=torch.int64)
    tokens = ((31 * i * i + 17 * i) % net.wte.num_embeddings).view(rows, -1).to(device)
    return tokens[:, :-1].contiguous(), tokens[:, 1:].contiguous()


def losses_of(net, batch, rate, steps):
    optimizer = torch.optim.AdamW(net.parameters(), lr=rate, weight_decay=0.01)
    losses = []
    for _ in range(steps):
        loss = net(*batch)
        losses.append(loss.item())
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
    return losses


def step_seconds(net, batch, device, seconds):
    """Of a training step, the best round of some."""
    gpu = device == 'cuda'
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-5, **({'fused': True} if gpu else {}))
    compute = torch.compile(net) if gpu else net
    context = torch.autocast('cuda', dtype=torch.bfloat16) if gpu else contextlib.nullcontext()

    def steps(count):
        for _ in range(count):
            with context:
                loss = compute(*batch)
            loss.backward()
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
        if gpu:
            torch.cuda.synchronize()

    count = 10 if gpu else 1
    steps(count)  # compiles
    best, end = float('inf'), time.monotonic() + seconds
    for turn in range(8):
        if turn > 1 and time.monotonic() > end:
            break
        began = time.monotonic()
        steps(count)
        best = min(best, (time.monotonic() - began) / count)
    return best


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('file')
    parser.add_argument('--rows', type=int, default=8, help='of the steps that are timed')
    parser.add_argument('--seconds', type=float, default=10, help='that are timed at most, once they are compiled')
    parser.add_argument('--only-speed', action='store_true', help='no losses')
    asked = parser.parse_args()
    device = 'cuda' if torch.cuda.is_available() else 'cpu'
    tensors, metadata = read(asked.file)
    net = Gpt(tensors, int(metadata['heads'])).to(device)
    wanted = [float(loss) for loss in metadata['losses'].split()]
    steps = 0 if asked.only_speed else len(wanted)
    losses = losses_of(net, batch_of(net, int(metadata['rows']), device), float(metadata['rate']), steps)
    seconds = step_seconds(net, batch_of(net, asked.rows, device), device, asked.seconds)
    print(json.dumps({
        'torch': torch.__version__, 'device': torch.cuda.get_device_name() if device == 'cuda' else device,
        'losses': losses, 'largest_difference': max((abs(a - b) / b for a, b in zip(losses, wanted)), default=None),
        'step_s': seconds, 'tokens_per_second': asked.rows * net.wpe.num_embeddings / seconds}))


if __name__ == '__main__':
    main()
