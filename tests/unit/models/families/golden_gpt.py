#!/usr/bin/env python3
"""Writes golden_gpt.h: losses and gradients of a transformer's layers and of a whole small GPT, by PyTorch in double.

usage: golden_gpt.py > golden_gpt.h        (any PyTorch 2; it shares no code with models/)

Inputs are simple functions of the index, so that the C++ side makes the same: see `values`.
"""
import torch
import torch.nn.functional as F

torch.set_default_dtype(torch.float64)
VOCABULARY, CONTEXT, LAYERS, HEADS, WIDTH, BATCH = 11, 6, 2, 2, 4, 2


def values(count, step, modulus, divisor):
    """Exact in float32."""
    return torch.tensor([(i * step % modulus - modulus // 2) / divisor for i in range(count)])


def show(name, tensor):
    flat = [float(x) for x in tensor.detach().flatten()]
    lines, line = [], ''
    for text in (f'{x:.9g}' for x in flat):
        text = text if any(c in text for c in '.en') else text + '.0'
        if len(line) + len(text) > 108:
            lines.append(line)
            line = ''
        line += ('' if not line else ' ') + text + ','
    lines.append(line)
    print(f'inline constexpr double {name}[] = {{')
    for one in lines:
        print('    ' + one)
    print('};')


def parameters():
    """Names and tensors, in the order of GPT2LMHeadModel's state_dict."""
    d, tensors = WIDTH, []
    tensors += [('wte.weight', (VOCABULARY, d)), ('wpe.weight', (CONTEXT, d))]
    for i in range(LAYERS):
        tensors += [(f'h.{i}.ln_1.weight', (d,)), (f'h.{i}.ln_1.bias', (d,)),
                    (f'h.{i}.attn.c_attn.weight', (d, 3 * d)), (f'h.{i}.attn.c_attn.bias', (3 * d,)),
                    (f'h.{i}.attn.c_proj.weight', (d, d)), (f'h.{i}.attn.c_proj.bias', (d,)),
                    (f'h.{i}.ln_2.weight', (d,)), (f'h.{i}.ln_2.bias', (d,)),
                    (f'h.{i}.mlp.c_fc.weight', (d, 4 * d)), (f'h.{i}.mlp.c_fc.bias', (4 * d,)),
                    (f'h.{i}.mlp.c_proj.weight', (4 * d, d)), (f'h.{i}.mlp.c_proj.bias', (d,))]
    tensors += [('ln_f.weight', (d,)), ('ln_f.bias', (d,))]
    total = sum(torch.Size(shape).numel() for _, shape in tensors)
    flat, at, out = values(total, 37, 101, 64), 0, {}
    for name, shape in tensors:
        size = torch.Size(shape).numel()
        out[name] = flat[at:at + size].reshape(shape).clone()
        at += size
        if '.ln_' in '.' + name and name.endswith('weight'):
            out[name] += 1
        out[name].requires_grad_()
    return out


def attention(qkv, heads):
    """qkv: [batch, context, 3 d] -> [batch, context, d]."""
    batch, context, wide = qkv.shape
    split = [t.view(batch, context, heads, wide // 3 // heads).transpose(1, 2) for t in qkv.split(wide // 3, dim=2)]
    y = F.scaled_dot_product_attention(*split, is_causal=True)
    return y.transpose(1, 2).reshape(batch, context, wide // 3)


def gpt_loss(p, tokens):
    inputs, targets = tokens[:, :-1], tokens[:, 1:]
    norm = lambda x, name: F.layer_norm(x, (WIDTH,), p[name + '.weight'], p[name + '.bias'], 1e-5)
    linear = lambda x, name: x @ p[name + '.weight'] + p[name + '.bias']
    x = p['wte.weight'][inputs] + p['wpe.weight'][torch.arange(CONTEXT)]
    for i in range(LAYERS):
        x = x + linear(attention(linear(norm(x, f'h.{i}.ln_1'), f'h.{i}.attn.c_attn'), HEADS), f'h.{i}.attn.c_proj')
        wide = F.gelu(linear(norm(x, f'h.{i}.ln_2'), f'h.{i}.mlp.c_fc'), approximate='tanh')
        x = x + linear(wide, f'h.{i}.mlp.c_proj')
    logits = norm(x, 'ln_f') @ p['wte.weight'].T
    return F.cross_entropy(logits.reshape(-1, VOCABULARY), targets.reshape(-1))


def main():
    print("// Made by golden_gpt.py; do not edit. Layers and a whole GPT, computed by PyTorch in double.")
    print("#pragma once\n")
    print('namespace rumor::models::golden {\n')

    x = values(24, 13, 47, 4).requires_grad_()
    y = F.gelu(x, approximate='tanh')
    (y * values(24, 7, 31, 8)).sum().backward()
    show('gelu', y), show('gelu_gradient', x.grad)

    x, gain, bias = values(21, 13, 47, 8).reshape(3, 7).requires_grad_(), values(7, 5, 17, 4), values(7, 3, 11, 4)
    gain.requires_grad_(), bias.requires_grad_()
    y = F.layer_norm(x, (7,), gain, bias, 1e-5)
    (y * values(21, 7, 31, 8).reshape(3, 7)).sum().backward()
    show('norm', y), show('norm_x_gradient', x.grad)
    show('norm_gain_gradient', gain.grad), show('norm_bias_gradient', bias.grad)

    qkv = values(2 * 5 * 18, 13, 47, 8).reshape(2, 5, 18).requires_grad_()
    y = attention(qkv, 2)
    (y * values(2 * 5 * 6, 7, 31, 8).reshape(2, 5, 6)).sum().backward()
    show('attention', y), show('attention_gradient', qkv.grad)

    p = parameters()
    tokens = torch.tensor([i * 7 % VOCABULARY for i in range(BATCH * (CONTEXT + 1))]).reshape(BATCH, CONTEXT + 1)
    loss = gpt_loss(p, tokens)
    loss.backward()
    print(f'inline constexpr double gpt_loss = {float(loss):.12g};')
    show('gpt_gradient', torch.cat([t.grad.flatten() for t in p.values()]))
    print('\n}  // namespace rumor::models::golden')


if __name__ == '__main__':
    main()
