/* SPDX-License-Identifier: Apache-2.0
 *
 * The numbers are those of the vendor's data sheets and of cudaGetDeviceProperties. */
#include "tests/gpu/chips.h"

#include <stdio.h>

struct chip {
    const char *name, *product;
    int version, units, blocks_per_unit;
    long long memory, cache, shared, shared_block;
    int clock_khz, memory_khz;
};

static const struct chip table[CHIP_COUNT] = {
    {"sm_80", "NVIDIA A100-SXM4-80GB", 800, 108, 32, 85028372480, 41943040, 167936, 166912, 1410000,
     1593000},
    {"sm_90", "NVIDIA H200", 900, 132, 32, 150754820096, 62914560, 233472, 232448, 1980000,
     3201000},
    {"sm_100", "NVIDIA B200", 1000, 148, 32, 191491276800, 132120576, 233472, 232448, 1965000,
     3996000},
};

/* For prepare() on a machine that has a GPU: it goes no further than its plan. */
static enum status alloc(const struct device *device, size_t bytes, void **memory,
                         struct error *err)
{
    (void)device;
    (void)bytes;
    *memory = NULL;
    return UNSUPPORTED(err, "%s", NO_MEMORY_HERE);
}

static enum status pad_channels(const struct device *device, const struct device_channels *channels,
                                void *stream, struct error *err)
{
    (void)device;
    (void)channels;
    (void)stream;
    return UNSUPPORTED(err, "%s", NO_MEMORY_HERE);
}

static const struct device_kind kind = {
    .size = sizeof(kind), .name = "cuda", .alloc = alloc, .pad_channels = pad_channels};

void chips_describe(struct device chips[CHIP_COUNT])
{
    for (int k = 0; k < CHIP_COUNT; k++) {
        const struct chip *chip = &table[k];
        chips[k] = (struct device){.kind = &kind, .index = k};
        chips[k].properties.major = chip->version / 100;
        chips[k].properties.minor = chip->version / 10 % 10;
        chips[k].properties.units = chip->units;
        chips[k].properties.memory_bytes = (size_t)chip->memory;
        chips[k].properties.cache_bytes = (size_t)chip->cache;
        chips[k].properties.shared_bytes = (size_t)chip->shared_block;
    }
}

const char *chip_name(int index)
{
    return table[index].name;
}

void chip_json(int index, char *text, size_t size)
{
    const struct chip *chip = &table[index];
    snprintf(text, size,
             "{\"deviceVer\":%d,\"driverVer\":13000,\"cudaDeviceId\":%d,\"totalGlobalMem\":%lld,"
             "\"maxGridSize\":[2147483647,65535,65535],\"maxBlockSize\":[1024,1024,64],"
             "\"regsPerBlock\":65536,\"multiProcessorCount\":%d,\"warpSize\":32,"
             "\"maxSharedMemoryPerBlock\":49152,\"maxSharedMemoryPerBlockOptin\":%lld,"
             "\"reservedSharedMemoryPerBlock\":1024,\"maxRegistersPerSM\":65536,"
             "\"maxCtasPerSM\":%d,\"maxThreadsPerBlock\":1024,\"maxThreadsPerSM\":2048,"
             "\"pciDeviceId\":0,\"isTccDriver\":0,\"supportCoopLaunch\":1,\"smClockRateKHz\":%d,"
             "\"memClockRateKHz\":%d,\"l2CacheSize\":%lld,\"deviceName\":\"%s\"}",
             chip->version, index, chip->memory, chip->units, chip->shared_block,
             chip->blocks_per_unit, chip->clock_khz, chip->memory_khz, chip->cache, chip->product);
}
