#!/usr/bin/env python3
"""Writes the files of golden/: small tokenizers laid out like those of GPT-2, Llama 3, Qwen2, DeepSeek (several
patterns) and SmolLM (digits; here with NFKC), and the tokens that Hugging Face's tokenizers give to some texts.

usage: golden_tokenizer.py FOLDER      (needs tokenizers)
"""

import json
import pathlib
import sys

import tokenizers
from tokenizers import AddedToken, Regex, decoders, models, normalizers, pre_tokenizers, trainers

SAMPLE = ("the quick brown fox, it's the other's; we'll've they're I'd 'twas THE END'S 12 345 6789 the the\n\n"
          "  int main() { return 0; }\n\tthere\r\n\r\nthis is that and the other thing \u00e9t\u00e9 na\u00efve "
          "\u043f\u0440\u0438\u0432\u0435\u0442 \u4f60\u597d\u4e16\u754c \u0939\u093f\u0928\u094d\u0926\u0940 ") * 20
TEXTS = [
    '', ' ', '  ', '\n', "it's IT'S they'RE we'll've 'twas I'D ", 'the  quick   brown\n\n\nfox \n x',
    'a1b22c333d4444 12345678901234567890', 'tabs\tand\r\nlines\r\r\n end ', '<|endoftext|>the<|endoftext|><|end|>',
    '<|endoftext', 'caf\u00e9 cafe\u0301 \u212b \u1e9b\u0323 \uac00 \u1100\u1161',
    '\u4f60\u597d\uff0c\u4e16\u754c\uff01',
    '\u0645\u0631\u062d\u0628\u0627 \u0661\u0662\u0663 \u0967\u0968\u0969 \u00bd\u00b2 \u2167',
    '\U0001f600\U0001f468\u200d\U0001f469\u200d\U0001f467 \u00a0\u3000\u2028\u2029\u0085\u180e\u200b\ufeff x',
    "\u017ft '\u017f 'S 'K '\u212a", '0' * 50 + 'x' * 70 + ' ' * 50 + '!' * 40, '=\u0338\n\u0338 <|e\u0301|>',
    '\x00\x01\x7f', 'a1b22\u4e00\u9fa5\u30a2 12345\u4f60\u597d67 \u2460\uff11\uff21 \ufb01ne .x ?! \u2167',
]
PATTERN = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
           r"|\s*[\r\n]+|\s+(?!\S)|\s+")
SPLITS = [r"\p{N}{1,3}", '[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+',
          '[!"#$%&\'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\r\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+'
          r'| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+']
KINDS = ('gpt2', 'llama3', 'qwen2', 'deepseek', 'smollm')


def trained(kind, sample, size):
    """A tokenizer laid out like that of `kind`."""
    tokenizer = tokenizers.Tokenizer(models.BPE(ignore_merges=kind == 'llama3'))
    level = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=kind in ('gpt2', 'smollm'))
    pattern = PATTERN.replace('{1,3}', '') if kind == 'qwen2' else PATTERN
    steps = [pre_tokenizers.Split(Regex(one), 'isolated') for one in (SPLITS if kind == 'deepseek' else [pattern])]
    if kind == 'smollm':
        steps = [pre_tokenizers.Digits(individual_digits=True)]
    tokenizer.pre_tokenizer = level if kind == 'gpt2' else pre_tokenizers.Sequence([*steps, level])
    normal = {'qwen2': normalizers.NFC(), 'smollm': normalizers.NFKC(), 'deepseek': normalizers.Sequence([])}
    if kind in normal:
        tokenizer.normalizer = normal[kind]
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.train_from_iterator([sample], trainers.BpeTrainer(
        vocab_size=size, show_progress=False, initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
    tokenizer.add_special_tokens([AddedToken('<|endoftext|>', normalized=kind == 'gpt2', special=True)])
    tokenizer.add_tokens([AddedToken('<|end|>', normalized=False), AddedToken('<|e\u0301|>', normalized=True)])
    return tokenizer


def main(folder):
    folder.mkdir(exist_ok=True)
    expected = {}
    for kind in KINDS:
        tokenizer = trained(kind, SAMPLE, 330)
        path = folder / f'{kind}.json'
        tokenizer.save(str(path), pretty=False)
        content = json.loads(path.read_text())
        if kind == 'gpt2':  # as older files have them
            content['model']['merges'] = [' '.join(merge) for merge in content['model']['merges']]
            path.write_text(json.dumps(content, ensure_ascii=False, separators=(',', ':')))
        expected[kind] = [tokenizer.encode(text, add_special_tokens=False).ids for text in TEXTS]
    (folder / 'expected.json').write_text(json.dumps({'texts': TEXTS, 'tokens': expected}, separators=(',', ':')))


if __name__ == '__main__':
    main(pathlib.Path(sys.argv[1]))
