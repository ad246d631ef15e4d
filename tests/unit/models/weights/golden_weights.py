#!/usr/bin/env python3
"""Writes the files of golden/: a tiny GPT-2 as Hugging Face's transformers saves it, and as others do.

usage: golden_weights.py FOLDER      (needs torch, transformers, safetensors)

Every value says where it stands: parameter i of tensor t is ((7 i + 13 t) mod 97 - 48) / 64, tensors counted in the
order of the state_dict, parameters as GPT-2's Conv1D has them.
"""

import pathlib
import sys

import safetensors.torch
import torch
import transformers

PROJECTIONS = ('c_attn.weight', 'c_proj.weight', 'c_fc.weight')


def tiny():
    config = transformers.GPT2Config(vocab_size=7, n_positions=4, n_embd=4, n_layer=1, n_head=2, bos_token_id=None,
                                     eos_token_id=None)
    model = transformers.GPT2LMHeadModel(config)
    with torch.no_grad():
        for t, (_, tensor) in enumerate(model.named_parameters()):
            values = [((7 * i + 13 * t) % 97 - 48) / 64 for i in range(tensor.numel())]
            tensor.copy_(torch.tensor(values).reshape(tensor.shape))
    return model


def main(folder):
    folder.mkdir(exist_ok=True)
    model = tiny()
    model.save_pretrained(folder)  # model.safetensors and config.json
    (folder / 'generation_config.json').unlink(missing_ok=True)
    bare = {name.removeprefix('transformer.'): tensor.half().clone() for name, tensor in model.named_parameters()}
    bare['lm_head.weight'] = bare['wte.weight'].clone()
    bare['h.0.attn.bias'] = torch.ones(1, 1, 4, 4)
    safetensors.torch.save_file(bare, folder / 'bare_f16.safetensors')
    turned = {name: (tensor.t() if name.endswith(PROJECTIONS) else tensor).bfloat16().contiguous()
              for name, tensor in model.named_parameters()}
    safetensors.torch.save_file(turned, folder / 'turned_bf16.safetensors')


if __name__ == '__main__':
    main(pathlib.Path(sys.argv[1]))
