/* SPDX-License-Identifier: Apache-2.0 */
#include "plots/svg.h"

#include <stdbool.h>
#include <string.h>

#include "base/arena.h"
#include "base/system/file.h"
#include "plots/text.h"

struct replacement {
    const char *from, *to;
};

/* How gnuplot spells the two colours that belong to the page. The canvas' own background goes. */
static const struct replacement replacements[] = {
    {"fill=\"black\"", "fill=\"currentColor\""},
    {"color=\"black\"", ""},
    {"stroke='black'", "stroke='currentColor'"},
    {"stroke=\"black\"", "stroke=\"currentColor\""},
    {"fill=\"rgb(0,0,0)\"", "fill=\"currentColor\""},
    {"fill = 'black'", "fill='currentColor'"},
    {"fill=\"rgb(128,128,128)\"", "fill=\"var(--mute)\""},
    {"fill=\"rgb(89,89,89)\"", "fill=\"var(--soft)\""},
    {"rgb(128, 128, 128)", "var(--mute)"},
    {"rgb(217, 217, 217)", "var(--grid)"},
    {"rgb(  0, 114, 178)", "var(--blue)"},
    {"'rgb(  0,   0,   0)'", "'currentColor'"},
    {" font-family=\"Helvetica\"", ""},
    {" stroke-linecap=\"butt\" stroke-linejoin=\"miter\"", ""}, /* as without saying so */
};

struct scan {
    const char *at, *end;
    const struct svg_words *words;
    FILE *page;
};

static bool starts(const struct scan *s, const char *word)
{
    size_t length = strlen(word);
    return (size_t)(s->end - s->at) >= length && memcmp(s->at, word, length) == 0;
}

/* id="x", href='#x' and url(#x) get the prefix; xlink is older than all browsers of today. */
static bool put_id(struct scan *s)
{
    static const struct replacement marks[] = {
        {" id=\"", " id=\""}, {" id='", " id='"}, {"xlink:href='#", "href='#"}, {"url(#", "url(#"}};
    for (size_t k = 0; k < sizeof(marks) / sizeof(marks[0]); k++) {
        if (!starts(s, marks[k].from))
            continue;
        fprintf(s->page, "%s%s-", marks[k].to, s->words->id);
        s->at += strlen(marks[k].from);
        return true;
    }
    return false;
}

static bool put_replaced(struct scan *s)
{
    for (size_t k = 0; k < sizeof(replacements) / sizeof(replacements[0]); k++) {
        if (!starts(s, replacements[k].from))
            continue;
        fputs(replacements[k].to, s->page);
        s->at += strlen(replacements[k].from);
        return true;
    }
    return false;
}

/* <title> and <desc> of gnuplot say "Gnuplot"; the filters are for boxes that no plot uses. */
static bool drop_element(struct scan *s)
{
    static const struct replacement elements[] = {
        {"<title>", "</title>"}, {"<desc>", "</desc>"}, {"<filter", "</filter>"}};
    for (size_t k = 0; k < sizeof(elements) / sizeof(elements[0]); k++) {
        if (!starts(s, elements[k].from))
            continue;
        const char *close = strstr(s->at, elements[k].to);
        s->at = close ? close + strlen(elements[k].to) : s->end;
        return true;
    }
    return false;
}

/* gnuplot begins a group at each change of colour, and most of those groups stay empty. */
static bool drop_empty_group(struct scan *s)
{
    if (!starts(s, "<g "))
        return false;
    const char *inside = strchr(s->at, '>');
    if (!inside)
        return false;
    inside += 1 + strspn(inside + 1, " \t\n");
    if (strncmp(inside, "</g>", 4) != 0)
        return false;
    s->at = inside + 4;
    return true;
}

static bool drop_background(struct scan *s)
{
    if (!starts(s, "<rect x=\"0\" y=\"0\""))
        return false;
    const char *close = strstr(s->at, "/>");
    s->at = close ? close + 2 : s->end;
    return true;
}

/* What is drawn over the picture goes in before its last tag. */
static void put_over(struct scan *s)
{
    if (!starts(s, "</svg>") || !s->words->over)
        return;
    fputs(s->words->over, s->page);
}

static void copy_body(struct scan *s)
{
    while (s->at < s->end) {
        if (drop_element(s) || drop_empty_group(s) || drop_background(s) || put_id(s) ||
            put_replaced(s))
            continue;
        if (*s->at == '\t' || (*s->at == '\n' && s->at[1] == '\n')) {
            s->at++;
            continue;
        }
        put_over(s);
        fputc(*s->at++, s->page);
    }
}

static enum status put_svg(const char *text, const struct svg_words *words, FILE *page,
                           const char *path, struct error *err)
{
    char box[64];
    const char *at = strstr(text, "viewBox=\""), *svg = strstr(text, "<svg");
    const char *body = svg ? strchr(svg, '>') : NULL;
    if (!at || !body || sscanf(at, "viewBox=\"%63[0-9. -]\"", box) != 1)
        return FAIL(err, STATUS_FAILED, "%s: not an SVG by gnuplot", path);
    fprintf(page,
            "<svg viewBox=\"%s\" role=\"%s\" "
            "aria-labelledby=\"%s-t %s-d\"><title id=\"%s-t\">",
            box, words->over && *words->over ? "group" : "img", words->id, words->id, words->id);
    text_html(page, words->title);
    fprintf(page, "</title><desc id=\"%s-d\">", words->id);
    text_html(page, words->description);
    fputs("</desc>", page);
    struct scan scan = {body + 1, text + strlen(text), words, page};
    copy_body(&scan);
    return STATUS_OK;
}

enum status svg_inline(const char *path, const struct svg_words *words, FILE *page,
                       struct error *err)
{
    struct file file;
    struct arena arena = {0};
    TRY(file_map(path, &file, err));
    char *text = arena_alloc(&arena, file.size + 1); /* zeroed: ends in NUL */
    if (text && file.size)
        memcpy(text, file.data, file.size);
    enum status status = text ? put_svg(text, words, page, path, err) : FAIL_NO_MEMORY(err);
    arena_release(&arena);
    file_unmap(&file);
    return status;
}
