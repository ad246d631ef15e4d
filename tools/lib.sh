# shellcheck shell=bash
# What tools/quickstart and tools/test share: packages, steps with their time, and an end without stray processes.
# Sourced, from the repository root.

# Valid on Debian 12 and Ubuntu 24.04; Ubuntu 22.04 has all but libtomlplusplus-dev (fetch_toml).
build_packages=(g++ meson ninja-build pkg-config libasio-dev libzstd-dev zlib1g-dev libprotobuf-dev protobuf-compiler
  libssl-dev libpcre2-dev libutf8proc-dev libcli11-dev nlohmann-json3-dev libtomlplusplus-dev libcpp-httplib-dev
  libnatpmp-dev libminiupnpc-dev)
# shellcheck disable=SC2034  # each is used by one of the two scripts
test_packages=(libboost-test-dev python3 ccache)
# shellcheck disable=SC2034
clang_packages=(clang)
# Its sanitizers, where clang does not bring them along (Debian 12).
# shellcheck disable=SC2034
clang_runtime_packages=(libclang-rt-14-dev)
# shellcheck disable=SC2034
data_packages=(dataset-fashion-mnist)
# shellcheck disable=SC2034
text_packages=(bible-kjv-text)
# What the page and the Python package are tried with; not every system has them as packages (Debian 12 has). PyTorch
# takes five times as long with the reference BLAS that it brings along.
# shellcheck disable=SC2034
browser_packages=(chromium chromium-driver)
# shellcheck disable=SC2034
torch_packages=(python3-torch libopenblas0-serial)

# Options of meson setup. With few processors more sources are compiled as one: a fifth less work, less to share out.
# shellcheck disable=SC2034
unity=()
if [[ $(nproc) -le 4 ]]; then unity=(-Dunity_size=96); fi

# One line about what happens now, with the seconds since the start.
say() {
  printf '[%3d s] %s\n' "$SECONDS" "$*"
}

# Ends what is still running, then this script. Each guarded command leads a process group of its own.
stop() {
  local pid
  trap '' INT TERM HUP
  for pid in $(jobs -pr); do
    kill -TERM -- "-$pid" 2>/dev/null || true
  done
  wait
  exit "$1"
}
trap 'stop 130' INT
trap 'stop 143' TERM
trap 'stop 129' HUP

# Runs a command so that a signal to this script ends it and all that it started. Returns its exit status.
guarded() {
  local status=0
  set -m
  "$@" </dev/null &
  set +m
  wait "$!" || status=$?
  return "$status"
}

# guarded, with the output in file $1. When the command fails, the errors in it are shown, or else its end.
logged() {
  local log=$1 status=0
  shift
  mkdir -p "$(dirname "$log")"
  guarded "$@" >"$log" 2>&1 || status=$?
  if [[ $status -ne 0 ]]; then
    echo "failed: $*" >&2
    grep -m 20 -E '(error|ERROR)\b' "$log" >&2 || tail -n 30 "$log" >&2
    echo "the whole output: $log" >&2
  fi
  return "$status"
}

# The command that a package is there for, empty for a library. A command may come from elsewhere than a package.
command_of() {
  case $1 in
    g++ | meson | pkg-config | ccache | python3) echo "$1" ;;
    ninja-build) echo ninja ;;
    protobuf-compiler) echo protoc ;;
    clang) echo clang++ ;;
  esac
}

# Prints those of the packages that are not installed, one a line.
missing_packages() {
  local package name libraries=() installed native
  for package in "$@"; do
    name=$(command_of "$package")
    if [[ $package == libtomlplusplus-dev && -e $toml_headers/toml++/toml.h ]]; then
      continue
    elif [[ -z $name ]]; then
      libraries+=("$package")
    elif ! command -v "$name" >/dev/null; then
      echo "$package"
    fi
  done
  # Without dpkg, Meson finds out which libraries are there.
  if [[ ${#libraries[@]} -eq 0 ]] || ! command -v dpkg-query >/dev/null; then return 0; fi
  # shellcheck disable=SC2016  # dpkg-query fills in these fields
  installed=$(dpkg-query -W -f='${Package}:${Architecture} ${db:Status-Status}\n' "${libraries[@]}" 2>/dev/null || true)
  native=$(dpkg --print-architecture)
  for package in "${libraries[@]}"; do
    [[ $package == *:* ]] && name=$package || name=$package:$native
    grep -qxF -e "$name installed" -e "$package:all installed" <<<"$installed" || echo "$package"
  done
}

# toml++ for Ubuntu 22.04, which has no package of it: headers that any C++17 compiler reads, out of the package of
# 24.04, for all programs of this machine. It comes from the mirror that apt uses for other packages. apt's own helper
# compares the hash, so the way there need not be trusted.
toml_headers=/usr/local/include
toml_package=pool/universe/t/tomlplusplus/libtomlplusplus-dev_3.4.0+ds-0.2build1_amd64.deb
toml_hash=SHA256:e6d68dbb89f11c71fc33bd1397ab1b405e83e96b959e5c18ef82871c12051c46
fetch_toml() {
  local folder mirror url status=0 root=()
  [[ $(id -u) -eq 0 ]] || root=(sudo)
  folder=$(mktemp -d)
  mirror=$(apt-get --print-uris download libcli11-dev 2>/dev/null | sed -n "s|^'\(.*\)/pool/.*|\1|p" | head -n 1)
  url=$mirror/$toml_package
  if guarded /usr/lib/apt/apt-helper download-file "$url" "$folder/toml.deb" "$toml_hash" >"$folder/log" 2>&1 &&
    dpkg-deb -x "$folder/toml.deb" "$folder" >>"$folder/log" 2>&1; then
    "${root[@]}" cp -r "$folder/usr/include/toml++" "$toml_headers/" || status=1
  else
    tail -n 5 "$folder/log" >&2
    echo "could not fetch toml++ from $url" >&2
    echo "It is headers only: put its folder include/toml++ (3.3 or later) into $toml_headers" >&2
    status=1
  fi
  rm -rf "$folder"
  return "$status"
}

# apt-get as root, quietly. With sudo it stays in the foreground: it may ask for a password.
apt_get() {
  local options=(-o DPkg::Lock::Timeout=120 -qq) log status=0
  log=$(mktemp)
  if [[ $(id -u) -eq 0 ]]; then
    guarded env DEBIAN_FRONTEND=noninteractive apt-get "${options[@]}" "$@" >"$log" 2>&1 || status=$?
  else
    # shellcheck disable=SC2024  # the log is the user's
    sudo env DEBIAN_FRONTEND=noninteractive apt-get "${options[@]}" "$@" </dev/null >"$log" || status=$?
  fi
  [[ $status -eq 0 ]] || tail -n 15 "$log" >&2
  rm -f "$log"
  return "$status"
}

# Installs what is missing of the packages, and says what. Returns 1, and says why, when it cannot.
need_packages() {
  local missing
  mapfile -t missing < <(missing_packages "$@")
  [[ ${#missing[@]} -gt 0 ]] || return 0
  if ! command -v apt-get >/dev/null; then
    echo "missing: ${missing[*]}" >&2
    echo 'This system has no apt. Install what these Debian packages are called here, then start again:' >&2
    echo "  $*" >&2
    return 1
  fi
  if [[ $(id -u) -ne 0 ]] && ! command -v sudo >/dev/null; then
    echo "missing, and there is no sudo; run as root: apt-get install ${missing[*]}" >&2
    return 1
  fi
  say "installing ${missing[*]} (on a bare system this takes a minute or two)"
  apt_get update || say 'could not refresh the package lists; going on with those at hand'
  if [[ " ${missing[*]} " == *' libtomlplusplus-dev '* ]] && ! apt-cache show libtomlplusplus-dev >/dev/null 2>&1; then
    say "there is no package libtomlplusplus-dev here: putting the headers of Ubuntu 24.04 into $toml_headers"
    fetch_toml || return 1
    mapfile -t missing < <(missing_packages "$@")
    [[ ${#missing[@]} -gt 0 ]] || return 0
  fi
  if ! apt_get install -y --no-install-recommends "${missing[@]}"; then
    echo "could not install ${missing[*]}" >&2
    echo 'On Ubuntu they are in the universe part of the archive: sudo add-apt-repository universe' >&2
    return 1
  fi
}

# The same for packages that not every system has, and $1 without which one can go on. Quick where there is none.
want_packages() {
  local what=$1 package
  shift
  for package in "$@"; do
    if [[ -n $(missing_packages "$package") ]] && ! apt-cache show "$package" >/dev/null 2>&1; then
      say "there is no package $package here: going on without $what"
      return 0
    fi
  done
  need_packages "$@" || say "going on without $what"
}

# Said after a configuration failed: the one cause that these scripts could not rule out before.
configure_hint() {
  echo "Meson could not configure. Rumor is built from these Debian packages: ${build_packages[*]}" >&2
  echo 'A build folder of another compiler, another Meson or another place can be removed and made again.' >&2
}
