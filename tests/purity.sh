#!/usr/bin/env bash
# The core cannot ask the time or the world: its archives link no clock, sleep, thread, socket, entropy source,
# process call or file. The linker's own list of undefined symbols says so, whatever the includes look like.
#
# usage: purity.sh [--allow=KIND,KIND...] ARCHIVE...   exit status 0 when all are pure, 1 when one is not
#        purity.sh --expect-every-kind ARCHIVE         0 when each kind of impurity is found in it: tests this script
# --allow holds for all archives after it; an empty list ends it. The kinds and names: tests/purity/forbidden.txt.
# Exit status 99: the check could not be made. Meson counts that as an error even where it expects a failure.
#
# Only names of the C library, libstdc++, OpenSSL and zlib are on the list. Generated protobuf code calls
# google::protobuf::... and is left alone; what that library does inside is not ours to link.
set -euo pipefail
kinds=(clock sleep thread socket entropy process file)
list=$(dirname "$0")/purity/forbidden.txt

trouble() {
  echo "purity: $*" >&2
  exit 99
}

# The expressions of kind $1 as one, for "MEMBER<tab>SYMBOL".
forbidden() {
  awk -v kind="$1" '$1 == kind { for (i = 2; i <= NF; ++i) all = all (all == "" ? "" : "|") $i }
    END { if (all == "") exit 1; printf "\t(%s)$", all }' "$list"
}

# "MEMBER<tab>SYMBOL" for each undefined symbol of archive $1: C names without their decorations (__read_chk, open64,
# __isoc99_...), C++ functions without their arguments.
undefined_symbols() {
  nm -uC -A -- "$1" | sed -nE '
    s/^(.*):[[:space:]]+[Uwv] (.*)$/\1\t\2/
    T
    s/\t(non-)?virtual thunk to /\t/
    s/\t([^ (<]+)\(.*$/\t\1/
    s/\t__(isoc(99|23)_)?([a-z][a-z0-9_]*)_chk$/\t\3/
    s/\t__([a-z]+)_2$/\t\1/
    s/\t([a-z][a-z0-9_]*)64$/\t\1/
    s/^.*[:\/]([^:\/]*)\t/\1\t/
    p'
}

declare -A expressions
for kind in "${kinds[@]}"; do
  expressions[$kind]=$(forbidden "$kind") || trouble "$list says nothing about $kind"
done

allowed=,
every_kind=false
archives=0
declare -A found=()
for argument in "$@"; do
  case $argument in
    --allow=*) allowed=",${argument#--allow=}," && continue ;;
    --expect-every-kind) every_kind=true && continue ;;
  esac
  [[ -f $argument ]] || trouble "$argument is no file"
  symbols=$(undefined_symbols "$argument") || trouble "nm cannot read $argument"
  [[ -n $symbols ]] || trouble "$argument has no undefined symbols: is it an archive of compiled code?"
  archives=$((archives + 1))
  for kind in "${kinds[@]}"; do
    [[ $allowed == *",$kind,"* ]] && continue
    hits=$(grep -P "${expressions[$kind]}" <<<"$symbols" | sort -u) || continue
    found[$kind]=yes
    while IFS=$'\t' read -r member symbol; do
      echo "${argument##*/}: $member links $symbol ($kind)"
    done <<<"$hits"
  done
done
[[ $archives -gt 0 ]] || trouble 'no archive given'

if $every_kind; then
  [[ ${#found[@]} -eq ${#kinds[@]} ]] && exit 0
  echo "found only: ${!found[*]}; the archive has every kind"
  exit 1
fi
if [[ ${#found[@]} -gt 0 ]]; then
  echo 'the core takes time, chance and files as arguments, or asks for them as effects (ARCHITECTURE.md)'
  exit 1
fi
echo "$archives archives link nothing of: ${kinds[*]}, but for what was allowed"
