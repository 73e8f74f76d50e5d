#!/usr/bin/env bash
# Builds libfmt.a, libtbb.a and libnlopt.a, which Debian ships as shared libraries alone, from Debian's own sources.
# usage: static-libraries.sh FOLDER [CMAKE-OPTION...]     (leaves them in FOLDER/lib; a second call has nothing to do)
# oneTBB advises against static linking because two copies of its scheduler in one process know nothing of each other;
# here the program is one file and has one copy.
set -euo pipefail
folder=$(mkdir -p "$1" && cd "$1" && pwd)
shift
[ -f "$folder/done" ] && exit 0

# Lists of its own: those of the machine need no deb-src line and are not touched.
apt=$folder/apt
mkdir -p "$apt/lists/partial" "$apt/cache/archives/partial" "$folder/sources"
mirror=${DEBIAN_MIRROR:-http://deb.debian.org/debian}
release=$(. /etc/os-release && echo "$VERSION_CODENAME")
echo "deb-src $mirror $release main" >"$apt/sources.list"
options=(-q -o "Dir::Etc::sourcelist=$apt/sources.list" -o Dir::Etc::sourceparts=/dev/null -o "Dir::State::lists=$apt/lists"
         -o "Dir::Cache=$apt/cache" -o "APT::Sandbox::User=$(id -un)")
apt-get "${options[@]}" update
cd "$folder/sources"
apt-get "${options[@]}" source --only-source fmtlib onetbb nlopt

install_library() {  # SOURCE-FOLDER TARGET... -- CMAKE-OPTION...
  local source=$1 targets=()
  shift
  while [ "$1" != -- ]; do targets+=("$1"); shift; done
  shift
  cmake -S "$source" -B "$folder/build/$source" -G Ninja -DCMAKE_BUILD_TYPE=Release -DBUILD_SHARED_LIBS=OFF \
    -DCMAKE_POSITION_INDEPENDENT_CODE=ON "$@"
  cmake --build "$folder/build/$source" --target "${targets[@]}"
  find "$folder/build/$source" -name '*.a' -exec cp -t "$folder/lib" {} +
}
mkdir -p "$folder/lib"
install_library fmtlib-* fmt -- -DFMT_TEST=OFF -DFMT_DOC=OFF "$@"
install_library onetbb-* tbb -- -DTBB_TEST=OFF -DTBB_STRICT=OFF "$@"
install_library nlopt-* nlopt -- -DNLOPT_CXX=OFF -DNLOPT_PYTHON=OFF -DNLOPT_OCTAVE=OFF -DNLOPT_MATLAB=OFF \
  -DNLOPT_GUILE=OFF -DNLOPT_SWIG=OFF -DNLOPT_TESTS=OFF "$@"
touch "$folder/done"
