#!/usr/bin/env python3
"""Prints the constants of byte_pairs_test.cc: GPT-2's byte-pair encoding by Hugging Face's tokenizers.

usage: golden_byte_pairs.py      (needs tokenizers)
"""
import json
import os
import tempfile

from tokenizers import ByteLevelBPETokenizer

CORPUS = ['the cat sat on the mat and the dog sat on the log, and they said: the others are there. ' * 3,
          "it's theirs; we're here, they'll say: 'the 1984 and 1999 theses' don't end... " * 3,
          'caf\u00e9 na\u00efve \u2014 \u2014 ' * 4]
TEXTS = ['the others said', "they'll don't 's 'sat", ' the  cat\n\n  sat \t on', '19841999 a1b2c3',
         'caf\u00e9s na\u00efve\u2014the \u20ac5', '...,.;  ', '\n', "THE Cat'S", '\u65e5\u672c\u8a9e the', ' ' * 5]


def c_string(text):
    """Bytes in C; a hexadecimal escape ends where no digit follows, or at a quote."""
    out = ''
    for byte in text:
        is_plain = 32 <= byte < 127 and byte not in b'"\\'
        ends = out[-4:-2] == '\\x' and chr(byte) in '0123456789abcdefABCDEF'
        out += ('" "' if ends and is_plain else '') + (chr(byte) if is_plain else f'\\x{byte:02x}')
    return f'"{out}"'


def main():
    tokenizer = ByteLevelBPETokenizer(add_prefix_space=False)
    tokenizer.train_from_iterator(CORPUS, vocab_size=256 + 70, min_frequency=2, show_progress=False)
    with tempfile.TemporaryDirectory() as directory:
        tokenizer.save_model(directory)
        with open(os.path.join(directory, 'vocab.json'), encoding='utf-8') as file:
            vocabulary = json.load(file)
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [b for b in range(256) if b not in printable]
    letters = {chr(b): b for b in printable} | {chr(256 + i): b for i, b in enumerate(others)}

    def spelled(token):
        return c_string(bytes(letters[letter] for letter in token))

    by_number = sorted(vocabulary, key=vocabulary.get)
    print('merges:', ', '.join(spelled(token) for token in by_number[256:]))
    for text in TEXTS:
        pieces = ', '.join(spelled(token) for token in tokenizer.encode(text).tokens)
        print(f'    {{{c_string(text.encode())}, {{{pieces}}}}},')


if __name__ == '__main__':
    main()
