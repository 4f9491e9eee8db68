/* SPDX-License-Identifier: Apache-2.0 */
#include "base/text/markdown.h"

#include <string.h>

void markdown_text(const char *text, FILE *stream)
{
    for (; *text; text++) {
        if (strchr("|\\`*_<>[]&", *text))
            fputc('\\', stream);
        fputc(*text == '\n' || *text == '\r' ? ' ' : *text, stream);
    }
}
