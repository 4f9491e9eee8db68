/* SPDX-License-Identifier: Apache-2.0
 *
 * What this binary was made from. The Makefile writes build/<config>/gen/build_info.c and rewrites
 * it only when something in it changed. Records and `ridge version` carry it.
 */
#ifndef BASE_BUILD_INFO_H
#define BASE_BUILD_INFO_H

struct build_info {
    const char *version;  /* of Ridge: "0.1.0" */
    const char *commit;   /* git commit, "-dirty" when files differed; "unknown" outside git */
    const char *config;   /* release, debug, asan ... */
    const char *compiler; /* first line of its --version */
    const char *flags;    /* for every C file; kernels add those of their instruction set */
    const char *isas;     /* instruction sets that native kernels were compiled for */
    const char *features; /* "onednn openblas" */
};

extern const struct build_info build_info;

#endif
