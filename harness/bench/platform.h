/* SPDX-License-Identifier: Apache-2.0
 *
 * A network on paper, as a few numbers in a TOML file, and what SimGrid reads of it. */
#ifndef HARNESS_BENCH_PLATFORM_H
#define HARNESS_BENCH_PLATFORM_H

#include <stdio.h>

#include "base/error.h"

struct platform {
    double ranks_per_host;            /* 1 */
    double link_gbit_s;               /* of each host's link, in each direction; mandatory */
    double link_latency_us;           /* of each host's link: a message crosses two; mandatory */
    double inside_gbyte_s, inside_us; /* between ranks of a host: 20 GB/s, 1 us */
    double oversubscription;          /* sum of the links over what the switch passes: 1 */
    double message_us;                /* CPU time that a message costs either end: 0 */
    double flow_gbit_s; /* of one connection between hosts at most; 0: as the link: 0 */
};

/* FAILED with file and line for what is unknown, missing or makes no sense. */
enum status platform_read(const char *path, struct platform *platform, struct error *err);
/* All its numbers in one word, for the identity of what was simulated on it. */
void platform_text(const struct platform *platform, char *text, size_t size);
/* SimGrid's description of the hosts, and the host of each rank. */
void platform_write_xml(const struct platform *platform, int ranks, FILE *file);
void platform_write_hosts(const struct platform *platform, int ranks, FILE *file);

#endif
