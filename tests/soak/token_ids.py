#!/usr/bin/env python3
"""Tokens of a megabyte of mixed Unicode beside those of Hugging Face's tokenizers: they must be equal.

usage: token_ids.py BUILD [SEED]      (needs tokenizers from PyPI, and ninja -C BUILD tests/soak/token_ids)

Three tokenizers are made, laid out like those of GPT-2, Llama 3 and Qwen2, with 20,000 tokens learned from one text.
Another text is encoded: words of many scripts, code, numbers, white space, special tokens, and characters at random.
"""

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


def main():
    build, seed = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 1
    draw = random.Random(seed)
    learned, text = mixed(draw, 2_000_000), mixed(draw, 1_000_000)
    with tempfile.TemporaryDirectory(prefix='rumor-tokens-') as folder:
        path = pathlib.Path(folder)
        (path / 'text').write_bytes(text.encode())
        for kind in ('gpt2', 'llama3', 'qwen2'):
            tokenizer = golden_tokenizer.trained(kind, learned, 20_000)
            tokenizer.save(str(path / kind))
            begin = time.monotonic()
            theirs = tokenizer.encode(text, add_special_tokens=False).ids
            took = time.monotonic() - begin
            done = subprocess.run([f'{build}/tests/soak/token_ids', path / kind, path / 'text'], capture_output=True,
                                  check=True, text=True)
            ours = list(map(int, done.stdout.split()))
            unlike = next((i for i, (a, b) in enumerate(zip(ours, theirs)) if a != b), min(len(ours), len(theirs)))
            near = tokenizer.decode(theirs[max(0, unlike - 3):unlike + 3], skip_special_tokens=False)
            assert ours == theirs, f'{kind}: token {unlike} of {len(theirs)} differs, near {near!r}'
            print(f'{kind}: equal; {done.stderr.strip()} beside {took:.3f} s of tokenizers')
    print('ok')


if __name__ == '__main__':
    main()
