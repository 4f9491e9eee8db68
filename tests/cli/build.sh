#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The build's promises: knobs are noticed, what is insisted on must be there, a second make rests.
. tests/lib/tap.sh
MAKE="make --no-print-directory"
# The make that started this test has knobs of its own.
unset MAKEFLAGS MFLAGS MAKELEVEL WITH_ONEDNN WITH_OPENBLAS WITH_PAPI

# Some make with a build folder of its own, up to the probes.
probe() {
    run $MAKE B="$tap_dir/b" "$@" features
}

probe
exits 0
prints '^HAVE_ONEDNN :='
probe
check "probes run once" test ! -s "$errors"

probe WITH_ONEDNN=0
exits 0
complains 'onednn +no +switched off'
prints 'ABSENT\("onednn", "switched off'

probe WITH_ONEDNN=1 HEADER_ONEDNN=no/such/header.h
exits 2
complains 'apt-get install libdnnl-dev'

probe WITH_ONEDNN=auto HEADER_ONEDNN=no/such/header.h
exits 0
prints 'ABSENT\("onednn", "no/such/header.h or its library was not found.*apt-get install'

# Compilers for another machine: what they make is for it, whatever this machine is.
for name in gcc g++; do
    cat >"$tap_dir/aarch64-linux-gnu-$name" <<END
#!/bin/sh
case \$1 in
-dumpmachine) echo aarch64-linux-gnu ;;
-print-prog-name=*) echo "$tap_dir/\${1#*=}" ;;
*) exec $name "\$@" ;;
esac
END
    chmod +x "$tap_dir/aarch64-linux-gnu-$name"
done
run $MAKE B="$tap_dir/other" CC="$tap_dir/aarch64-linux-gnu-gcc" WITH_CUDA=0 \
    "$tap_dir/other/gen/flags" "$tap_dir/other/gen/kernel_list.inc"
exits 0
check "another machine's build has no instruction sets of x86" \
    grep -q 'DBUILT_ISAS=1 ' "$tap_dir/other/gen/flags"
check "nor kernels of them" sh -c '! grep -q avx "$1"' sh "$tap_dir/other/gen/kernel_list.inc"
check "C++ is compiled by the compiler beside it" \
    grep -q "$tap_dir/aarch64-linux-gnu-g++ " "$tap_dir/other/gen/probe.TOML.log"
run $MAKE B="$tap_dir/other" CC="$tap_dir/aarch64-linux-gnu-gcc" WITH_CUDA=0 --dry-run \
    "$tap_dir/other/libplugin.a" "$tap_dir/other/gen/kernel_code.c"
exits 0
prints "$tap_dir/ar rcs"
prints "$tap_dir/ld -r"

check "the patch of tests/long/slowed_kernel.sh applies to this tree" \
    patch --dry-run --force --strip=1 --input=tests/long/slowed_kernel.patch

runs $MAKE help
prints 'make run '

finish
