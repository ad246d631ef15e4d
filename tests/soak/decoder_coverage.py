#!/usr/bin/env python3
"""How much of the decoders the tests reach: lines run by the unit, format and fuzz-corpus programs of a coverage build.

usage: tests/soak/decoder_coverage.py BUILD
(meson setup BUILD -Db_coverage=true --buildtype=debug -Doptimization=0)

Builds what it needs, runs it, asks gcov, prints a line a file and the lines that nothing ran. Fails below 95 % in all.
"""
import glob
import os
import subprocess
import sys

import usage

usage.check(__doc__, 1)

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), os.pardir, os.pardir))
sys.path.insert(0, os.path.join(ROOT, 'tests'))
import gcov_lines  # noqa: E402

DECODERS = [
    'gossip/wire/wire.cc', 'gossip/wire/wire_raw.cc', 'gossip/contract/have_set.cc',
    'gossip/contract/seq_ranges.cc', 'gossip/contract/manifest.cc', 'gossip/trust/admission.cc',
    'runtime/replica/snapshot_chunk.cc', 'runtime/replica/checkpoint.cc', 'runtime/replica/update_log.cc',
    'runtime/replica/capture.cc', 'compress/payload/update.cc', 'compress/payload/head.cc',
    'compress/link/link_form.cc', 'compress/payload/segment.cc', 'compress/link/segment_modes.cc',
    'compress/payload/segment_table.cc', 'compress/payload/rice_segment.cc', 'compress/link/adapt.cc',
    'compress/link/adapt_coder.cc', 'compress/link/adapt_columns.cc', 'compress/link/link_history.cc']
PROGRAMS = ['tests/unit/gossip/test_gossip', 'tests/format/test_format', 'tests/unit/compress/test_compress',
            'tests/unit/compress/test_codec', 'tests/unit/runtime/test_runtime']
LEAST = 95.0


def run_all(build):
    corpora = {os.path.basename(c)[7:]: c for c in glob.glob(os.path.join(ROOT, 'tests/fuzz/*/corpus_*'))}
    replay = 'tests/fuzz/fuzz_replay'
    subprocess.run(['ninja', '-C', build, *PROGRAMS, replay], check=True, stdout=subprocess.DEVNULL)
    gcov_lines.clean(build)
    for program in PROGRAMS:
        subprocess.run([os.path.join(build, program)], check=True, stdout=subprocess.DEVNULL, cwd=build)
    for name, corpus in corpora.items():
        subprocess.run([os.path.join(build, replay), name, corpus], check=True, stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL)


def main(build):
    run_all(build)
    seen = gcov_lines.lines_of(build, ROOT)
    total = hit = 0
    for name in DECODERS:
        counts = seen.get(name)
        if not counts:
            sys.exit(f'{name}: not measured; has it been renamed?')
        missed = sorted(line for line, count in counts.items() if count == 0)
        total, hit = total + len(counts), hit + len(counts) - len(missed)
        print(f'{100 * (1 - len(missed) / len(counts)):6.1f} %  {len(counts):4} lines  {name}'
              + (f'  not run: {missed}' if missed else ''))
    print(f'{100 * hit / total:6.1f} %  of {total} lines in all')
    return 0 if 100 * hit / total >= LEAST else 1


if __name__ == '__main__':
    sys.exit(main(os.path.abspath(sys.argv[1])))
