/* SPDX-License-Identifier: Apache-2.0
 *
 * A library that stands in for libcupti and libcuda in tests: it keeps the rules of the real ones
 * (what must be called before what), makes up counts that can be computed, and fails where a script
 * says. Built where CUPTI's headers are; tests open it with dlopen and find these functions in it.
 *
 * Counts: metric m (from 0) of range r (from 0) is FAKE_COUNT(m, r) per push of that range; each of
 * FAKE_SAMPLES samples, or of as many as fit into run_ns, has FAKE_COUNT(m, 0).
 */
#ifndef TESTS_CUPTI_FAKE_FAKE_H
#define TESTS_CUPTI_FAKE_FAKE_H

enum { FAKE_SAMPLES = 25, FAKE_NAMES_MAX = 128 };

#define FAKE_COUNT(metric, range) (100.0 * ((double)(metric) + 1) + 1000.0 * (double)(range))

struct fake_script {
    const char *call; /* whose n-th use (from 1) fails with the code; NULL: none fails */
    int nth, code;
    const char *chip;
    int passes; /* that a config of ranges takes */
    int version;
    int devices;
    /* "architecture", "vgpu": a condition that is not met; "limited": what 13.3 says of some; NULL
     */
    const char *unsupported;
    int dropped_ranges, overflow;
    int dropped_records, dropped_at_start; /* per flush; by the first after Enable */
    int alien_records;                     /* those of kernels are not the ones of the headers */
    double run_ns;                         /* that samples are taken for; 0: FAKE_SAMPLES are */
    const char *idle_range;      /* no kernel runs in the range of this name, beside others; NULL */
    int zero_metric;             /* its counts are 0; -1: none */
    int zero_from;               /* counts of this metric and all after it are 0; 0: none */
    int foreign_time, zero_time; /* a kernel's record has the time of another clock, or none */
};

struct fake_control {
    /* Everything begins anew. */
    void (*set)(const struct fake_script *script);
    int (*uses)(const char *call);     /* since set */
    int (*open_objects)(void);         /* that were made and not given back */
    const char *(*broken_rule)(void);  /* "" while all rules were kept */
    const char *const *(*names)(void); /* all calls, NULL at the end */
};

typedef const struct fake_control *fake_control_entry(void);
extern __attribute__((visibility("default"))) fake_control_entry fake_control;

#endif
