/* SPDX-License-Identifier: Apache-2.0
 *
 * Opens libcupti and libcuda. Neither is linked: the first lies where the toolkit or pip put it,
 * the second comes with the driver. Never closed: both have threads and a state per process. */
#include "profilers/plugins/cupti/api.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/registry.h"
#include "base/system/library.h"

/* Records and parameters are those of the headers that this was compiled with. */
enum { MAJOR = CUPTI_API_VERSION / 10000, OLDEST = 10, PATH_SIZE = 512 };

#define QUOTE_(x) #x
#define QUOTE(x)  QUOTE_(x)

#define CUPTI_SYMBOL(name)  {#name, offsetof(struct cupti_api, name)},
#define DRIVER_SYMBOL(name) {QUOTE(name), offsetof(struct driver_api, name)},

static const struct library_symbol cupti_symbols[] = {CUPTI_CALLS(CUPTI_SYMBOL)};
static const struct library_symbol driver_symbols[] = {DRIVER_CALLS(DRIVER_SYMBOL)};

/* Where the linker looks; where it was when building; where the toolkit usually is. */
static enum status open_usual(int major, void **library)
{
    static const char *const folders[] = {"", CUPTI_FOLDER "/lib64/", CUPTI_FOLDER "/lib/",
                                          "/usr/local/cuda/lib64/",
                                          "/usr/local/cuda/extras/CUPTI/lib64/"};
    char paths[ARRAY_COUNT(folders)][PATH_SIZE];
    const char *candidates[ARRAY_COUNT(folders)];
    for (int k = 0; k < ARRAY_COUNT(folders); k++) {
        snprintf(paths[k], PATH_SIZE, "%slibcupti.so.%d", folders[k], major);
        candidates[k] = paths[k];
    }
    return library_open(candidates, ARRAY_COUNT(candidates), library, NULL);
}

static void say_missing(char *reason)
{
    for (int major = MAJOR + 3; major >= OLDEST; major--) {
        void *other;
        if (major == MAJOR || open_usual(major, &other) != STATUS_OK)
            continue;
        library_close(other);
        cupti_say(reason,
                  "only libcupti.so.%d is there, and this ridge was built for libcupti.so.%d: "
                  "install CUPTI of CUDA %d (pip install nvidia-cuda-cupti), or make again with "
                  "CUPTI_HOME=/folder/of/the/other",
                  major, MAJOR, MAJOR);
        return;
    }
    cupti_say(reason,
              "libcupti.so.%d was not found: install CUPTI of CUDA %d (pip install "
              "nvidia-cuda-cupti), and name the file in RIDGE_CUPTI if it is elsewhere",
              MAJOR, MAJOR);
}

static bool load(struct cupti *cupti, const char *file, char *reason)
{
    struct error why;
    void *library;
    if (file && library_open_one(file, &library, &why) != STATUS_OK)
        return cupti_say(reason, "%s: RIDGE_CUPTI must name libcupti.so.%d", why.message, MAJOR);
    if (!file && open_usual(MAJOR, &library) != STATUS_OK) {
        say_missing(reason);
        return false;
    }
    const char *missing =
        library_fill(library, cupti_symbols, ARRAY_COUNT(cupti_symbols), &cupti->api);
    if (missing)
        return cupti_say(reason, "libcupti has no %s: install CUPTI of CUDA %d", missing, MAJOR);
    if (!CUPTI_OK(cupti, reason, cuptiGetVersion, &cupti->version))
        return false;
    if (cupti->version / 10000 != MAJOR)
        return cupti_say(reason,
                         "libcupti is version %u, and this ridge was built for %d: install CUPTI "
                         "of CUDA %d, or make again with its headers",
                         cupti->version, CUPTI_API_VERSION, MAJOR);
    return true;
}

static void keep(char *out, size_t size, const char *file, const char *usual)
{
    snprintf(out, size, "%s", file ? file : usual);
}

struct cupti *cupti_open(const struct cupti_files *files, char *reason)
{
    struct cupti *cupti = calloc(1, sizeof(*cupti));
    if (!cupti) {
        cupti_say(reason, "out of memory");
        return NULL;
    }
    keep(cupti->driver_file, sizeof(cupti->driver_file), files->driver, "libcuda.so.1");
    keep(cupti->params_file, sizeof(cupti->params_file), files->params,
         "/proc/driver/nvidia/params");
    keep(cupti->status_file, sizeof(cupti->status_file), files->status, "/proc/self/status");
    if (load(cupti, files->cupti, reason))
        return cupti;
    free(cupti);
    return NULL;
}

bool cupti_load_driver(struct cupti *cupti, char *reason)
{
    if (cupti->has_driver)
        return true;
    void *library;
    if (library_open_one(cupti->driver_file, &library, NULL) != STATUS_OK)
        return cupti_say(reason, "no CUDA driver (%s): install NVIDIA's driver, or --device cpu",
                         cupti->driver_file);
    const char *missing =
        library_fill(library, driver_symbols, ARRAY_COUNT(driver_symbols), &cupti->driver);
    if (missing)
        return cupti_say(reason, "%s has no %s: install a newer driver", cupti->driver_file,
                         missing);
    cupti->has_driver = true;
    return true;
}

void cupti_close(struct cupti *cupti)
{
    cupti_detach(cupti);
    free(cupti);
}
