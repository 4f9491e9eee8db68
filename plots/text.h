/* SPDX-License-Identifier: Apache-2.0
 *
 * Numbers and names as people read them, and text made safe for the file that it goes into. A short
 * text is returned by value: `fputs(text_time(s).s, out)`.
 */
#ifndef PLOTS_TEXT_H
#define PLOTS_TEXT_H

#include <stdio.h>

struct short_text {
    char s[64];
};

/* A dash for NAN everywhere. */
struct short_text text_time(double seconds);                   /* 12.3 ms */
struct short_text text_scaled(double value, const char *unit); /* 1.23 GFLOP/s */
struct short_text text_bytes(double bytes);                    /* 48 KiB */
struct short_text text_percent(double share);                  /* 12.3 % */
struct short_text text_number(double value);                   /* three or four digits */

/* The beginning of a text that is longer than so many letters (60 at most). */
struct short_text text_fit(const char *text, double letters);

/* HTML text or attribute value. */
void text_html(FILE *stream, const char *text);
/* gnuplot's single quotes, the quotes included; control characters become blanks. */
void text_gnuplot(FILE *stream, const char *text);
/* A field between tabs of a data file. */
void text_field(FILE *stream, const char *text);
/* Letters in the sense of a reader, not bytes. */
int text_letters(const char *text);

#endif
