/* SPDX-License-Identifier: Apache-2.0 */
#include "harness/suite/code_choice.h"

#include <string.h>

/* How the parts are written. The ids of points depend on the canonical forms. */
struct forms {
    const char *isa, *max_error, *no_tune, *no_fuse, *no_capture;
};

static const char *written(struct arena *arena, const struct code_choice *c, const char *device,
                           const struct forms *forms)
{
    bool here = strcmp(device, "cpu") == 0;
    const char *text = "";
    if (c->isa)
        text = arena_printf(arena, "%s%s", forms->isa, c->isa);
    if (text && c->max_error > 0)
        text = arena_printf(arena, "%s%s%.9g", text, forms->max_error, c->max_error);
    if (!text || !(c->no_tune || c->no_fuse || (c->no_capture && !here)))
        return text;
    return arena_printf(arena, "%s%s%s%s", text, c->no_tune ? forms->no_tune : "",
                        c->no_fuse ? forms->no_fuse : "",
                        c->no_capture && !here ? forms->no_capture : "");
}

const char *code_choice_canonical(struct arena *arena, const struct code_choice *choice,
                                  const char *device)
{
    static const struct forms forms = {" isa=", " max_error=", " tuning=none", " fusing=none",
                                       " capture=none"};
    return written(arena, choice, device, &forms);
}

const char *code_choice_options(struct arena *arena, const struct code_choice *choice,
                                const char *device)
{
    static const struct forms forms = {" --isa ", " --max-error ", " --no-tune", " --no-fuse",
                                       " --no-capture"};
    return written(arena, choice, device, &forms);
}
