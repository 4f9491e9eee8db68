/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "harness/watch/resident.h"

#include <link.h>
#include <malloc.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* Segments that nobody may write are the file's own pages. */
static int give_back(struct dl_phdr_info *info, size_t size, void *context)
{
    (void)size;
    uintptr_t page = *(const uintptr_t *)context;
    for (int k = 0; k < info->dlpi_phnum; k++) {
        const ElfW(Phdr) *part = &info->dlpi_phdr[k];
        if (part->p_type != PT_LOAD || part->p_flags & PF_W)
            continue;
        uintptr_t begin = (info->dlpi_addr + part->p_vaddr + page - 1) / page * page;
        uintptr_t end = (info->dlpi_addr + part->p_vaddr + part->p_memsz) / page * page;
        if (begin < end) /* refused: the pages stay, and are counted */
            madvise((void *)begin, end - begin, MADV_DONTNEED);
    }
    return 0;
}

bool resident_reset(void)
{
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    malloc_trim(0);
    dl_iterate_phdr(give_back, &page);
    FILE *file = fopen("/proc/self/clear_refs", "w");
    if (!file)
        return false;
    bool written = fputs("5", file) >= 0;
    return fclose(file) == 0 && written;
}

static double read_status(const char *key)
{
    char line[128];
    double kilobytes = NAN;
    FILE *file = fopen("/proc/self/status", "r");
    while (file && isnan(kilobytes) && fgets(line, sizeof(line), file))
        if (strncmp(line, key, strlen(key)) == 0)
            kilobytes = strtod(line + strlen(key), NULL);
    if (file)
        fclose(file);
    return kilobytes * 1024;
}

double resident_peak(void)
{
    return read_status("VmHWM:");
}

double resident_now(void)
{
    return read_status("VmRSS:");
}
