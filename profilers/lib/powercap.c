/* SPDX-License-Identifier: Apache-2.0 */
#include "profilers/lib/powercap.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PACKAGES_MAX = 16, PARTS_MAX = 8 };

static int read_line(const struct powercap *p, const char *folder, const char *file, char *text,
                     size_t size)
{
    char path[512];
    snprintf(path, sizeof(path), "%s%s/%s", p->root, folder, file);
    FILE *stream = fopen(path, "re");
    if (!stream)
        return errno;
    int code = fgets(text, (int)size, stream) ? 0 : errno ? errno : EIO;
    fclose(stream);
    text[code ? 0 : strcspn(text, "\n")] = '\0';
    return code;
}

static enum status read_counter(const struct powercap *p, const struct powercap_zone *zone,
                                const char *file, uint64_t *value, struct error *err)
{
    char text[64], *end;
    int code = read_line(p, zone->path, file, text, sizeof(text));
    if (code == EACCES || code == EPERM)
        return UNSUPPORTED(err,
                           "%s/%s may be read by root only: sudo chmod a+r "
                           "/sys/class/powercap/intel-rapl*/energy_uj",
                           zone->path, file);
    if (code)
        return UNSUPPORTED(err, "%s/%s: %s", zone->path, file, strerror(code));
    *value = strtoull(text, &end, 10);
    if (end == text || *end)
        return UNSUPPORTED(err, "%s/%s: \"%s\" is no number", zone->path, file, text);
    return STATUS_OK;
}

static bool add_zone(struct powercap *p, const char *path)
{
    if (p->count == POWERCAP_ZONES)
        return false;
    struct powercap_zone *zone = &p->zones[p->count];
    *zone = (struct powercap_zone){.total_j = 0};
    snprintf(zone->path, sizeof(zone->path), "%s", path);
    if (read_line(p, path, "name", zone->name, sizeof(zone->name)))
        return false;
    p->count++;
    return true;
}

enum status powercap_open(struct powercap *powercap, const char *root, struct error *err)
{
    *powercap = (struct powercap){.count = 0};
    snprintf(powercap->root, sizeof(powercap->root), "%s", root);
    for (int k = 0; k < PACKAGES_MAX; k++) {
        char path[128];
        snprintf(path, sizeof(path), "/sys/class/powercap/intel-rapl:%d", k);
        if (!add_zone(powercap, path))
            continue;
        for (int part = 0; part < PARTS_MAX; part++) {
            snprintf(path, sizeof(path), "/sys/class/powercap/intel-rapl:%d:%d", k, part);
            add_zone(powercap, path);
        }
    }
    if (!powercap->count)
        return UNSUPPORTED(err, "no energy counters: /sys/class/powercap has no intel-rapl zone "
                                "(virtual machines do not pass them on; sudo modprobe "
                                "intel_rapl_msr on a real one)");
    for (int k = 0; k < powercap->count; k++)
        TRY(read_counter(powercap, &powercap->zones[k], "max_energy_range_uj",
                         &powercap->zones[k].range_uj, err));
    return powercap_begin(powercap, err);
}

enum status powercap_begin(struct powercap *powercap, struct error *err)
{
    for (int k = 0; k < powercap->count; k++)
        TRY(read_counter(powercap, &powercap->zones[k], "energy_uj", &powercap->zones[k].last_uj,
                         err));
    return STATUS_OK;
}

enum status powercap_add(struct powercap *powercap, struct error *err)
{
    for (int k = 0; k < powercap->count; k++) {
        struct powercap_zone *zone = &powercap->zones[k];
        uint64_t now;
        TRY(read_counter(powercap, zone, "energy_uj", &now, err));
        /* Beyond its range the counter goes on from 0. */
        uint64_t used =
            now >= zone->last_uj ? now - zone->last_uj : now + zone->range_uj - zone->last_uj;
        zone->last_uj = now;
        zone->total_j += (double)used * 1e-6;
    }
    return STATUS_OK;
}

double powercap_joules(const struct powercap *powercap, const char *prefix)
{
    double sum = NAN;
    for (int k = 0; k < powercap->count; k++) {
        const struct powercap_zone *zone = &powercap->zones[k];
        if (strncmp(zone->name, prefix, strlen(prefix)) == 0)
            sum = (isnan(sum) ? 0 : sum) + zone->total_j;
    }
    return sum;
}
