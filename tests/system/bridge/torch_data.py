"""Fashion-MNIST as PyTorch tensors, normalised as the built-in models have it."""
import gzip
import pathlib

import torch

FOLDER = pathlib.Path('/usr/share/datasets/fashion-mnist')


def _bytes(name, head):
    path = FOLDER / name
    raw = path.read_bytes() if path.exists() else gzip.decompress((FOLDER / (name + '.gz')).read_bytes())
    return torch.frombuffer(bytearray(raw[head:]), dtype=torch.uint8)


def fashion(part):
    """part: 'train' or 't10k'. Pictures as rows of 784 floats, and labels."""
    pixels = _bytes(f'{part}-images-idx3-ubyte', 16).float().view(-1, 784)
    return (pixels - 72.9404) / 90.0212, _bytes(f'{part}-labels-idx1-ubyte', 8).long()
