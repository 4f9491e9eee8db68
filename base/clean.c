/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clean.h"

#include <stdbool.h>
#include <string.h>

static const char replacement[] = "\xef\xbf\xbd"; /* U+FFFD */

int utf8_length(const char *text)
{
    const unsigned char *s = (const unsigned char *)text;
    if (s[0] < 0x80)
        return 1;
    int length = s[0] >= 0xF0 ? 4 : s[0] >= 0xE0 ? 3 : 2;
    if (s[0] < 0xC2 || s[0] > 0xF4)
        return 0;
    for (int k = 1; k < length; k++)
        if ((s[k] & 0xC0) != 0x80)
            return 0;
    bool overlong = (s[0] == 0xE0 && s[1] < 0xA0) || (s[0] == 0xF0 && s[1] < 0x90);
    bool surrogate = s[0] == 0xED && s[1] > 0x9F;
    bool too_large = s[0] == 0xF4 && s[1] > 0x8F;
    return overlong || surrogate || too_large ? 0 : length;
}

int clean_length(const char *text)
{
    const unsigned char *s = (const unsigned char *)text;
    int length = utf8_length(text);
    bool control = length == 1 && (s[0] < 0x20 || s[0] == 0x7F);
    if (length == 2) /* U+0080 to U+009F, and U+061C */
        control = (s[0] == 0xC2 && s[1] < 0xA0) || (s[0] == 0xD8 && s[1] == 0x9C);
    if (length == 3 && s[0] == 0xE2) /* U+200E, U+200F, U+2028 to U+202E, U+2066 to U+2069 */
        control =
            (s[1] == 0x80 && (s[2] == 0x8E || s[2] == 0x8F || (s[2] >= 0xA8 && s[2] <= 0xAE))) ||
            (s[1] == 0x81 && s[2] >= 0xA6 && s[2] <= 0xA9);
    if (length == 3 && s[0] == 0xEF) /* U+FFFE and U+FFFF are no characters; XML forbids them */
        control = s[1] == 0xBF && s[2] >= 0xBE;
    return control ? 0 : length;
}

/* The next piece of clean text for what is at *from, which moves on. */
static const char *next_piece(const char **from, size_t *bytes)
{
    const char *at = *from;
    int clean = clean_length(at), length = clean ? clean : utf8_length(at);
    *from += length ? length : 1;
    *bytes = clean ? (size_t)clean : sizeof(replacement) - 1;
    return clean ? at : replacement;
}

const char *clean_copy(char *to, size_t size, const char *from)
{
    size_t used = 0, bytes;
    while (*from) {
        const char *piece = next_piece(&from, &bytes);
        if (used + bytes >= size)
            break;
        memcpy(to + used, piece, bytes);
        used += bytes;
    }
    if (size)
        to[used] = '\0';
    return to;
}

void clean_lines(char *text)
{
    while (*text) {
        int clean = *text == '\n' || *text == '\t' ? 1 : clean_length(text);
        int length = clean ? clean : utf8_length(text);
        if (!clean) {
            memset(text, '?', length ? (size_t)length : 1);
            if (length == 3)
                memcpy(text, replacement, 3);
        }
        text += length ? length : 1;
    }
}

size_t clean_end(char *text)
{
    size_t length = strlen(text), at = length;
    while (at > 0 && ((unsigned char)text[at - 1] & 0xC0) == 0x80)
        at--;
    if (at == 0 || utf8_length(text + at - 1))
        return length;
    text[at - 1] = '\0';
    return at - 1;
}

void clean_put(FILE *stream, const char *text)
{
    size_t bytes;
    while (*text) {
        const char *piece = next_piece(&text, &bytes);
        fwrite(piece, 1, bytes, stream);
    }
}
