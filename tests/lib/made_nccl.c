/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/lib/made_nccl.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/run/plugin.h"

enum { PATH_SIZE = 4096 };

const struct backend *made_nccl(const char *program, struct error *why)
{
    static const char *const parts[] = {"plugins/collective/nccl.so",
                                        "tests/gpu/host/plugins/cuda.so",
                                        "tests/nccl_fake/libnccl.so.2"};
    char build[PATH_SIZE], path[2 * PATH_SIZE + 64];
    const struct backend *ready = NULL;
    const char *slash = strrchr(program, '/');
    snprintf(build, sizeof(build), "%.*s/../..", slash ? (int)(slash - program) : 1,
             slash ? program : ".");
    for (int k = 0; k < ARRAY_COUNT(parts); k++) {
        snprintf(path, sizeof(path), "%s/%s", build, parts[k]);
        if (access(path, R_OK) != 0) {
            UNSUPPORTED(why, "%s is not built: no NCCL, or under a sanitizer", parts[k]);
            return NULL;
        }
    }
    if (!dlopen(path, RTLD_NOW | RTLD_LOCAL)) { /* who opens libnccl.so.2 from now on gets it */
        FAIL(why, STATUS_FAILED, "%.400s", dlerror());
        return NULL;
    }
    snprintf(path, sizeof(path), "%s/tests/gpu/host/plugins:%s/plugins", build, build);
    setenv("RIDGE_PLUGIN_PATH", path, 1);
    setenv("RIDGE_HOST_GPUS", "8", 1);
    plugins_load("cuda"); /* and nothing else: libraries of vendors would look for a real one */
    return backend_ready(backend_find("nccl"), &ready, why) == STATUS_OK ? ready : NULL;
}
