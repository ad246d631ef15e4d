#!/usr/bin/env python3
"""Tokens of a megabyte of mixed Unicode beside those of Hugging Face's tokenizers: they must be equal.

usage: token_ids.py BUILD [SEED] [--tokenizer FILE]...
       (needs tokenizers from PyPI, and ninja -C BUILD tests/soak/token_ids)

Tokenizers are made, laid out like those of GPT-2, Llama 3, Qwen2, DeepSeek and SmolLM, with 20,000 tokens learned from
one text. Another text is encoded: words of many scripts, code, numbers, white space, special tokens, and characters at
random. --tokenizer takes the tokenizer.json of a model instead, and half of the text is of its own tokens at random, so
that merges of every depth take part.
"""

import argparse
import pathlib
import random
import subprocess
import sys
import tempfile
import time
import unicodedata

import usage

usage.check(__doc__, 1)
usage.needs('tokenizers')

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / 'unit/models/tokenizer'))
import golden_tokenizer  # noqa: E402
import tokenizers  # noqa: E402

BLOCKS = [(0x20, 0x7e), (0xa0, 0x24f), (0x300, 0x36f), (0x370, 0x52f), (0x590, 0x6ff), (0x900, 0xdff), (0xe00, 0xfff),
          (0x1100, 0x11ff), (0x1e00, 0x20cf), (0x2100, 0x2bff), (0x3000, 0x30ff), (0x4e00, 0x9fff), (0xac00, 0xd7a3),
          (0x1f300, 0x1faff), (0x20000, 0x2a6df)]
PIECES = ['<|endoftext|>', '<|end|>', "it's", "THEY'LL", '  ', '\n\n', '\r\n', '\t', ' \n ', '12345', '3.14', '!?...',
          'int main() {', '0x1F', '\u00a0', '\u3000', '\u2028', '\u180e', '\u200b', '\u212b', '\u1e9b\u0323', 'e\u0301']


def is_old(letter):
    """Whether every version of Unicode in use knows it. tokenizers 0.23 normalizes by tables without the newest
    combining marks, and leaves them in another order."""
    known = unicodedata.ucd_3_2_0 if unicodedata.combining(letter) else unicodedata
    return known.category(letter) not in ('Cn', 'Cs')


def mixed(draw, size):
    """About `size` bytes of text."""
    parts, length = [], 0
    while length < size:
        kind = draw.random()
        if kind < 0.15:
            part = draw.choice(PIECES)
        elif kind < 0.25:
            part = ''.join(chr(draw.randint(*draw.choice(BLOCKS))) for _ in range(draw.randint(1, 6)))
        else:
            block = draw.choice(BLOCKS)
            letters = draw.choices(range(block[0], min(block[1], block[0] + 60) + 1), k=draw.randint(1, 9))
            part = ''.join(map(chr, letters)) + draw.choice([' ', ' ', ' ', ', ', '. ', '\n'])
        part = ''.join(filter(is_old, part))
        parts.append(part)
        length += len(part.encode())
    return ''.join(parts)


def of_tokens(draw, tokenizer, size):
    """About `size` bytes of text out of the tokens of a tokenizer, each by itself, in any order."""
    parts, length, numbers = [], 0, sorted(tokenizer.get_vocab().values())
    while length < size:
        part = tokenizer.decode([draw.choice(numbers)], skip_special_tokens=False)
        part = ''.join(letter for letter in part if letter != '\ufffd' and is_old(letter))
        parts.append(part)
        length += len(part.encode())
    return ''.join(parts)


def compare(build, name, path, tokenizer, text):
    """Encodes the text with both, and ends the test where tokens differ."""
    begin = time.monotonic()
    theirs = tokenizer.encode(text, add_special_tokens=False).ids
    took = time.monotonic() - begin
    with tempfile.NamedTemporaryFile(prefix='rumor-text-') as file:
        file.write(text.encode())
        file.flush()
        done = subprocess.run([f'{build}/tests/soak/token_ids', path, file.name], capture_output=True, text=True)
    assert done.returncode == 0, f'{name}: {done.stderr}'
    ours = list(map(int, done.stdout.split()))
    unlike = next((i for i, (a, b) in enumerate(zip(ours, theirs)) if a != b), min(len(ours), len(theirs)))
    near = tokenizer.decode(theirs[max(0, unlike - 3):unlike + 3], skip_special_tokens=False)
    assert ours == theirs, f'{name}: token {unlike} of {len(theirs)} differs, near {near!r}'
    known = tokenizer.get_vocab_size()
    print(f'{name}: equal, of {known} tokens; {done.stderr.strip()} beside {took:.3f} s of tokenizers')


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('build')
    parser.add_argument('seed', nargs='?', type=int, default=1)
    parser.add_argument('--tokenizer', action='append', default=[])
    options = parser.parse_args()
    draw = random.Random(options.seed)
    learned, text = mixed(draw, 2_000_000), mixed(draw, 1_000_000)
    for path in options.tokenizer:
        tokenizer = tokenizers.Tokenizer.from_file(path)
        compare(options.build, path, path, tokenizer, text[:len(text) // 2] + of_tokens(draw, tokenizer, 500_000))
    with tempfile.TemporaryDirectory(prefix='rumor-tokens-') as folder:
        for kind in () if options.tokenizer else golden_tokenizer.KINDS:
            tokenizer = golden_tokenizer.trained(kind, learned, 20_000)
            path = f'{folder}/{kind}'
            tokenizer.save(path)
            compare(options.build, kind, path, tokenizer, text)
    print('ok')


if __name__ == '__main__':
    main()
