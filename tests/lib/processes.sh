# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh
# What runs, read from /proc: ps and pgrep are not on every machine, and a test that asks a program
# that is missing "is anything left?" always hears "nothing".

children_of() { # process
    grep -l "^PPid:[[:space:]]*$1\$" /proc/[0-9]*/status 2>/dev/null | cut -d/ -f3 | sort -n
}

# Waits until a process has started so many, for 60 s at most.
wait_for_children() { # process, how many
    tries=0
    while [ "$(children_of "$1" | wc -l)" -lt "$2" ] && [ $tries -lt 1200 ]; do
        tries=$((tries + 1))
        sleep 0.05
    done
}

processes_of() { # a part of the command line
    for file in /proc/[0-9]*/cmdline; do
        case $(tr '\0' ' ' 2>/dev/null <"$file") in
        *"$1"*) basename "$(dirname "$file")" ;;
        esac
    done
}

state_of() { # process: S, R, Z ..., or nothing where it is gone
    sed 's/.*) \(.\).*/\1/' "/proc/$1/stat" 2>/dev/null
}
