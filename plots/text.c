/* SPDX-License-Identifier: Apache-2.0 */
#include "plots/text.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "base/clean.h"

static const char dash[] = "\xe2\x80\x93", ellipsis[] = "\xe2\x80\xa6";

/* Three significant digits without an exponent: 1.23, 12.3, 123, 1230. */
static struct short_text digits(double value, const char *unit)
{
    struct short_text text;
    double size = fabs(value);
    int places = size >= 99.95 || size == 0 ? 0 : size >= 9.995 ? 1 : size >= 0.9995 ? 2 : 3;
    snprintf(text.s, sizeof(text.s), "%.*f%s%s", places, value, *unit ? " " : "", unit);
    return text;
}

static struct short_text nothing(void)
{
    struct short_text text;
    snprintf(text.s, sizeof(text.s), "%s", dash);
    return text;
}

struct short_text text_time(double seconds)
{
    static const char *const units[] = {"s", "ms", "\xc2\xb5s", "ns"};
    if (!isfinite(seconds))
        return nothing();
    int k = 0;
    for (; k < 3 && fabs(seconds) < 0.9995 && seconds != 0; k++)
        seconds *= 1e3;
    return digits(seconds, units[k]);
}

struct short_text text_scaled(double value, const char *unit)
{
    static const char *const prefixes[] = {"", "k", "M", "G", "T", "P"};
    char name[32];
    if (!isfinite(value))
        return nothing();
    int k = 0;
    for (; k < 5 && fabs(value) >= 999.5; k++)
        value /= 1e3;
    snprintf(name, sizeof(name), "%s%s", prefixes[k], unit);
    return digits(value, name);
}

struct short_text text_bytes(double bytes)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    if (!isfinite(bytes))
        return nothing();
    int k = 0;
    for (; k < 4 && fabs(bytes) >= 1024; k++)
        bytes /= 1024;
    if (k > 0 || bytes != trunc(bytes))
        return digits(bytes, units[k]);
    struct short_text whole;
    snprintf(whole.s, sizeof(whole.s), "%.0f %s", bytes, units[k]);
    return whole;
}

struct short_text text_percent(double share)
{
    struct short_text text;
    if (!isfinite(share))
        return nothing();
    double size = fabs(share) * 100;
    snprintf(text.s, sizeof(text.s), "%.*f %%",
             size >= 99.95 || size == 0 ? 0
             : size < 0.1               ? 2
                                        : 1,
             share * 100);
    return text;
}

struct short_text text_number(double value)
{
    return isfinite(value) ? digits(value, "") : nothing();
}

void text_html(FILE *stream, const char *text)
{
    for (; *text; text++) {
        switch (*text) {
        case '&':
            fputs("&amp;", stream);
            break;
        case '<':
            fputs("&lt;", stream);
            break;
        case '>':
            fputs("&gt;", stream);
            break;
        case '"':
            fputs("&quot;", stream);
            break;
        case '\'':
            fputs("&#39;", stream);
            break;
        default: /* a page may hold no control characters but these */
            fputc((unsigned char)*text < ' ' && !strchr("\n\t", *text) ? ' ' : *text, stream);
        }
    }
}

void text_gnuplot(FILE *stream, const char *text)
{
    fputc('\'', stream);
    for (; *text; text++) {
        if (*text == '\'')
            fputc('\'', stream);
        fputc((unsigned char)*text < ' ' ? ' ' : *text, stream);
    }
    fputc('\'', stream);
}

void text_field(FILE *stream, const char *text)
{
    for (; *text; text++)
        fputc((unsigned char)*text < ' ' ? ' ' : *text == '"' ? '\'' : *text, stream);
}

int text_letters(const char *text)
{
    int count = 0;
    for (; *text; text++)
        count += (*text & 0xc0) != 0x80;
    return count;
}

struct short_text text_fit(const char *text, double letters)
{
    struct short_text fit = {""};
    size_t used = 0;
    int count = 0, letters_max = letters < 60 ? (int)letters : 60;
    bool all = text_letters(text) <= letters_max;
    while (*text && used < sizeof(fit.s) - 8) {
        bool begins = (*text & 0xc0) != 0x80;
        if (begins && !all && count == letters_max - 1)
            break;
        count += begins;
        fit.s[used++] = *text++;
    }
    if (*text)
        memcpy(fit.s + clean_end(fit.s), ellipsis, sizeof(ellipsis));
    return fit;
}
