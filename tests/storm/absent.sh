#!/usr/bin/env bash
# The product holds no deliberate bug: absent.sh BUGGY_ARCHIVE PRODUCT...  The first must have the switch, no other.
set -euo pipefail
buggy=$1
shift
symbols=$(nm -C -- "$buggy")
grep -q 'mutant_number' <<<"$symbols" || { echo "$buggy has no switch: is this test still right?"; exit 1; }
for product in "$@"; do
  symbols=$(nm -C -- "$product")
  if grep -E 'mutant' <<<"$symbols"; then
    echo "$product knows of mutants"
    exit 1
  fi
done
echo "$# products without a trace of deliberate bugs"
