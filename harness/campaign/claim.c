/* SPDX-License-Identifier: Apache-2.0 */
#include "harness/campaign/claim.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

bool claim_run(const char *uuid, int *claim)
{
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    /* An abstract name begins with a 0 and ends with the length. */
    size_t length = offsetof(struct sockaddr_un, sun_path) + 1;
    length +=
        (size_t)snprintf(name.sun_path + 1, sizeof(name.sun_path) - 1, "ridge-run-%.36s", uuid);
    *claim = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (*claim < 0 || bind(*claim, (const struct sockaddr *)&name, (socklen_t)length) == 0)
        return true;
    bool taken = errno == EADDRINUSE;
    claim_release(*claim);
    *claim = -1;
    return !taken;
}

void claim_release(int claim)
{
    if (claim >= 0)
        close(claim);
}
