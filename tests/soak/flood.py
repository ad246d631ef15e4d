#!/usr/bin/env python3
"""A daemon under a flood by 64 hostile peers: tests/system/flood.py, larger and longer.

usage: tests/soak/flood.py RUMOR [--hostile 64] [--seconds 120]
"""
import argparse
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, 'system'))

import peers  # noqa: E402
from flood import flood  # noqa: E402

if __name__ == '__main__':
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('rumor')
    parser.add_argument('--hostile', type=int, default=64)
    parser.add_argument('--seconds', type=float, default=120)
    options = parser.parse_args()
    peers.RUMOR = os.path.abspath(options.rumor)
    flood(options.hostile, options.seconds)
    print('ok')
