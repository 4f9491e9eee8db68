/* SPDX-License-Identifier: Apache-2.0 */
#include "harness/machine/topology.h"

#include <hwloc.h>
#include <stdbool.h>
#include <stdlib.h>

struct topology {
    hwloc_topology_t tree;
};

enum status topology_open(struct topology **out, struct error *err)
{
    *out = NULL;
    struct topology *t = calloc(1, sizeof(*t));
    if (!t)
        return FAIL_NO_MEMORY(err);
    if (hwloc_topology_init(&t->tree) != 0) {
        free(t);
        return FAIL(err, STATUS_FAILED, "hwloc cannot be started");
    }
    /* No PCI devices, no OpenCL: they take a second on some machines. */
    hwloc_topology_set_io_types_filter(t->tree, HWLOC_TYPE_FILTER_KEEP_NONE);
    if (hwloc_topology_load(t->tree) != 0) {
        topology_close(t);
        return FAIL(err, STATUS_FAILED, "hwloc cannot read the topology of this machine");
    }
    *out = t;
    return STATUS_OK;
}

void topology_close(struct topology *topology)
{
    if (!topology)
        return;
    hwloc_topology_destroy(topology->tree);
    free(topology);
}

static hwloc_obj_type_t type_of_level(int level)
{
    static const hwloc_obj_type_t types[CACHE_LEVELS] = {HWLOC_OBJ_L1CACHE, HWLOC_OBJ_L2CACHE,
                                                         HWLOC_OBJ_L3CACHE};
    return types[level - 1];
}

static int count_of(const struct topology *topology, hwloc_obj_type_t type)
{
    int count = hwloc_get_nbobjs_by_type(topology->tree, type);
    return count > 0 ? count : 0;
}

void topology_count(const struct topology *topology, struct topology_counts *counts)
{
    *counts = (struct topology_counts){
        .packages = count_of(topology, HWLOC_OBJ_PACKAGE),
        .cores = count_of(topology, HWLOC_OBJ_CORE),
        .cpus = count_of(topology, HWLOC_OBJ_PU),
        .numa_nodes = count_of(topology, HWLOC_OBJ_NUMANODE),
    };
    for (int level = 1; level <= CACHE_LEVELS; level++)
        counts->caches[level - 1] = count_of(topology, type_of_level(level));
}

int topology_first_cpu(const struct topology *topology)
{
    hwloc_obj_t cpu = hwloc_get_obj_by_type(topology->tree, HWLOC_OBJ_PU, 0);
    return cpu ? (int)cpu->os_index : 0;
}

static hwloc_obj_t cache_of(const struct topology *topology, int level, int cpu)
{
    hwloc_obj_t at = hwloc_get_pu_obj_by_os_index(topology->tree, (unsigned)cpu);
    while (at && at->type != type_of_level(level))
        at = at->parent;
    return at;
}

int64_t topology_cache_bytes(const struct topology *topology, int level, int cpu)
{
    hwloc_obj_t cache = cache_of(topology, level, cpu);
    return cache ? (int64_t)cache->attr->cache.size : 0;
}

static int users_of(hwloc_obj_t cache, const int *cpus, int count)
{
    int users = 0;
    for (int k = 0; k < count; k++)
        users += hwloc_bitmap_isset(cache->cpuset, (unsigned)cpus[k]) != 0;
    return users > 0 ? users : 1;
}

int64_t topology_cache_share(const struct topology *topology, int level, const int *cpus, int count)
{
    int64_t least = 0;
    for (int k = 0; k < count; k++) {
        hwloc_obj_t cache = cache_of(topology, level, cpus[k]);
        int64_t share = cache ? (int64_t)cache->attr->cache.size / users_of(cache, cpus, count) : 0;
        least = k == 0 || share < least ? share : least;
    }
    return least;
}

/* Whether an earlier CPU of the list has the same cache. */
static bool is_counted(hwloc_obj_t cache, const int *cpus, int count)
{
    for (int k = 0; k < count; k++)
        if (hwloc_bitmap_isset(cache->cpuset, (unsigned)cpus[k]))
            return true;
    return false;
}

int64_t topology_last_level_bytes(const struct topology *topology, const int *cpus, int count)
{
    int64_t total = 0;
    for (int k = 0; k < count; k++) {
        hwloc_obj_t cache = NULL;
        for (int level = CACHE_LEVELS; level >= 1 && !cache; level--)
            cache = cache_of(topology, level, cpus[k]);
        if (cache && !is_counted(cache, cpus, k))
            total += (int64_t)cache->attr->cache.size;
    }
    return total;
}

/* By hwloc's sets, which have room for any number of CPUs. */
int64_t topology_own_last_level_bytes(const struct topology *topology)
{
    hwloc_bitmap_t set = hwloc_bitmap_alloc();
    int64_t bytes = 0;
    int count = 0, cpu;
    if (!set)
        return 0;
    if (hwloc_get_cpubind(topology->tree, set, HWLOC_CPUBIND_THREAD) == 0 &&
        hwloc_bitmap_weight(set) > 0) {
        int *cpus = malloc((size_t)hwloc_bitmap_weight(set) * sizeof(*cpus));
        for (cpu = hwloc_bitmap_first(set); cpus && cpu >= 0; cpu = hwloc_bitmap_next(set, cpu))
            cpus[count++] = cpu;
        bytes = topology_last_level_bytes(topology, cpus, count);
        free(cpus);
    }
    hwloc_bitmap_free(set);
    return bytes;
}
