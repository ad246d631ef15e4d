#!/usr/bin/env python3
"""Writes golden_lstm.h: loss, gradient and state of a small LSTM after each of two windows, by PyTorch in double.

usage: golden_lstm.py > golden_lstm.h        (any PyTorch; it shares no code with models/)

Inputs are simple functions of the index, so that the C++ side makes the same: see `values`.
"""
import torch

from golden_gpt import show, values

torch.set_default_dtype(torch.float64)
VOCABULARY, CONTEXT, EMBEDDING, UNITS, LAYERS, BATCH, WINDOWS = 11, 6, 3, 5, 2, 2, 2


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = torch.nn.Embedding(VOCABULARY, EMBEDDING)
        self.lstm = torch.nn.LSTM(EMBEDDING, UNITS, LAYERS, batch_first=True)
        self.head = torch.nn.Linear(UNITS, VOCABULARY)

    def forward(self, tokens, state):
        out, state = self.lstm(self.embedding(tokens), state)
        return self.head(out), state


def main():
    print('// Made by golden_lstm.py; do not edit. Two windows of a small LSTM, computed by PyTorch in double.')
    print('#pragma once\n\nnamespace rumor::models::golden {\n')
    model, at = Model(), 0
    all_values = values(sum(p.numel() for p in model.parameters()), 37, 101, 64)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(all_values[at:at + parameter.numel()].reshape(parameter.shape))
            at += parameter.numel()
    tokens = torch.tensor([i * i * 7 % VOCABULARY for i in range(WINDOWS * BATCH * (CONTEXT + 1))])
    state = tuple(values(LAYERS * BATCH * UNITS, step, 31, 16).reshape(LAYERS, BATCH, UNITS) for step in (7, 11))
    for window, rows in enumerate(tokens.reshape(WINDOWS, BATCH, CONTEXT + 1)):
        model.zero_grad()
        logits, state = model(rows[:, :-1], tuple(part.detach() for part in state))
        loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), rows[:, 1:].flatten())
        loss.backward()
        print(f'inline constexpr double lstm_loss_{window} = {float(loss):.12g};')
        show(f'lstm_gradient_{window}', torch.cat([p.grad.flatten() for p in model.parameters()]))
        # [batch][layers][out, cell][units]
        show(f'lstm_state_{window}', torch.stack(state).permute(2, 1, 0, 3))
    print('\n}  // namespace rumor::models::golden')


main()
