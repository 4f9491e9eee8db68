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

check "the patch of tests/long/slowed_kernel.sh applies to this tree" \
    patch --dry-run --force --strip=1 --input=tests/long/slowed_kernel.patch

runs $MAKE help
prints 'make run '

finish
