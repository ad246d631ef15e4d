#!/usr/bin/env python3
"""Computes the constants of mlp_test.cc: one step of an MLP 5-4-3 on three rows, without a line of the code under test.

Every float operation is done in exact fractions and rounded once, as the fused multiply-add chains of
models/kernels/kernel_table.h promise, so the constants hold to the last bit. Usage: golden_mlp.py
"""
import math
import struct
from fractions import Fraction

INPUTS, HIDDEN, CLASSES = 5, 4, 3
LABELS = [0, 2, 1]


def to_float(x):
    """The nearest 32-bit float to a fraction, ties to even; normal range only."""
    if x == 0:
        return 0.0
    exponent = math.frexp(float(x))[1]
    for e in (exponent - 1, exponent, exponent + 1):
        scaled = abs(x) / Fraction(2) ** (e - 24)
        if Fraction(2) ** 23 <= scaled < Fraction(2) ** 24:
            break
    whole = round(scaled)  # Python rounds a fraction's ties to even
    result = math.ldexp(whole, e - 24) * (1 if x > 0 else -1)
    assert struct.unpack('f', struct.pack('f', result))[0] == result
    return result


def chain(start, pairs):
    """start + a * b + ..., one rounding per step."""
    total = start
    for a, b in pairs:
        total = to_float(Fraction(a) * Fraction(b) + Fraction(total))
    return total


def main():
    rows = len(LABELS)
    values = [((i * 37) % 101 - 50) / 64 for i in range(HIDDEN * INPUTS + HIDDEN + CLASSES * HIDDEN + CLASSES)]
    x = [[((j * 29) % 83 - 41) / 32 for j in range(r * INPUTS, (r + 1) * INPUTS)] for r in range(rows)]
    at = iter(values)
    w0 = [[next(at) for _ in range(INPUTS)] for _ in range(HIDDEN)]
    b0 = [next(at) for _ in range(HIDDEN)]
    w2 = [[next(at) for _ in range(HIDDEN)] for _ in range(CLASSES)]
    b2 = [next(at) for _ in range(CLASSES)]

    hidden = [[max(0.0, chain(b0[o], zip(w0[o], row))) for o in range(HIDDEN)] for row in x]
    outputs = [[chain(b2[o], zip(w2[o], row)) for o in range(CLASSES)] for row in hidden]
    loss, change = 0.0, []
    for z, label in zip(outputs, LABELS):
        exponentials = [math.exp(value - max(z)) for value in z]
        total = sum(exponentials)
        loss += math.log(total) - (z[label] - max(z))
        change.append([to_float(Fraction((e / total - (c == label)) / rows)) for c, e in enumerate(exponentials)])
    below = [[chain(0.0, ((change[r][o], w2[o][i]) for o in range(CLASSES))) if hidden[r][i] > 0 else 0.0
              for i in range(HIDDEN)] for r in range(rows)]

    gradient = [chain(0.0, ((below[r][o], x[r][i]) for r in range(rows))) for o in range(HIDDEN) for i in range(INPUTS)]
    gradient += [chain(0.0, ((1.0, below[r][o]) for r in range(rows))) for o in range(HIDDEN)]
    gradient += [chain(0.0, ((change[r][o], hidden[r][i]) for r in range(rows)))
                 for o in range(CLASSES) for i in range(HIDDEN)]
    gradient += [chain(0.0, ((1.0, change[r][o]) for r in range(rows))) for o in range(CLASSES)]
    right = sum(z.index(max(z)) == label for z, label in zip(outputs, LABELS))
    print('loss', loss / rows, 'right', right)
    for i in range(0, len(gradient), 4):
        print('    ' + ' '.join(hexadecimal(g) + ',' for g in gradient[i:i + 4]))


def hexadecimal(value):
    """As C++ writes it, without idle zeros."""
    if value == 0:
        return '0'
    mantissa, exponent = value.hex().split('p')
    return mantissa.rstrip('0').rstrip('.') + 'p' + exponent + 'f'


if __name__ == '__main__':
    main()
