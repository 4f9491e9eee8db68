/* SPDX-License-Identifier: Apache-2.0 */
#include "workloads/data/characters.h"

#include "base/registry.h"

struct range {
    uint32_t first, last;
};

static bool is_among(uint32_t c, const struct range *ranges, int count)
{
    for (int k = 0; k < count; k++)
        if (c >= ranges[k].first && c <= ranges[k].last)
            return true;
    return false;
}

uint32_t character_take(const char *text, int length, int *bytes)
{
    const unsigned char *s = (const unsigned char *)text;
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    int size = s[0] < 0x80 ? 1 : s[0] < 0xc2 ? 0 : s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3 : 4;
    *bytes = 1;
    if (size == 1)
        return s[0];
    if (size == 0 || s[0] > 0xf4 || size > length)
        return 0;
    uint32_t c = s[0] & (0x7fu >> size);
    for (int k = 1; k < size; k++) {
        if ((s[k] & 0xc0) != 0x80)
            return 0;
        c = c << 6 | (s[k] & 0x3fu);
    }
    if (c < least[size] || c > 0x10ffff || (c >= 0xd800 && c <= 0xdfff))
        return 0;
    *bytes = size;
    return c;
}

int character_put(uint32_t c, char *text)
{
    int size = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    if (size == 1) {
        text[0] = (char)c;
        return 1;
    }
    for (int k = size - 1; k > 0; k--, c >>= 6)
        text[k] = (char)(0x80 | (c & 0x3f));
    text[0] = (char)((0xf00u >> size & 0xf0) | c);
    return size;
}

/* Unicode's categories Zs, Zl and Zp, and the blanks of ASCII. */
bool character_is_blank(uint32_t c)
{
    static const struct range blanks[] = {
        {0x09, 0x0a},     {0x0d, 0x0d},     {0x20, 0x20},     {0xa0, 0xa0},     {0x1680, 0x1680},
        {0x2000, 0x200a}, {0x2028, 0x2029}, {0x202f, 0x202f}, {0x205f, 0x205f}, {0x3000, 0x3000}};
    return is_among(c, blanks, ARRAY_COUNT(blanks));
}

/* Categories Cc and Cf, and the mark of what could not be decoded. */
bool character_is_control(uint32_t c)
{
    static const struct range controls[] = {{0x00, 0x1f},     {0x7f, 0x9f},     {0xad, 0xad},
                                            {0x600, 0x605},   {0x200b, 0x200f}, {0x202a, 0x202e},
                                            {0x2060, 0x2064}, {0x2066, 0x206f}, {0xfeff, 0xfeff},
                                            {0xfff9, 0xfffb}, {0xfffd, 0xfffd}};
    return !character_is_blank(c) && is_among(c, controls, ARRAY_COUNT(controls));
}

/* All of ASCII that is no letter, digit or blank, "$" and "^", too; of others category P. */
bool character_is_punctuation(uint32_t c)
{
    static const struct range marks[] = {
        {0x21, 0x2f},     {0x3a, 0x40},     {0x5b, 0x60},     {0x7b, 0x7e},     {0xa1, 0xa1},
        {0xa7, 0xa7},     {0xab, 0xab},     {0xb6, 0xb7},     {0xbb, 0xbb},     {0xbf, 0xbf},
        {0x37e, 0x37e},   {0x387, 0x387},   {0x55a, 0x55f},   {0x589, 0x58a},   {0x5be, 0x5be},
        {0x5c0, 0x5c0},   {0x5c3, 0x5c3},   {0x5f3, 0x5f4},   {0x60c, 0x60d},   {0x61b, 0x61b},
        {0x61e, 0x61f},   {0x66a, 0x66d},   {0x6d4, 0x6d4},   {0x964, 0x965},   {0x970, 0x970},
        {0x2010, 0x2027}, {0x2030, 0x2043}, {0x2045, 0x2051}, {0x2053, 0x205e}, {0x207d, 0x207e},
        {0x2308, 0x230b}, {0x2329, 0x232a}, {0x2768, 0x2775}, {0x27e6, 0x27ef}, {0x2983, 0x2998},
        {0x2e00, 0x2e4f}, {0x3001, 0x3003}, {0x3008, 0x3011}, {0x3014, 0x301f}, {0x3030, 0x3030},
        {0x303d, 0x303d}, {0x30a0, 0x30a0}, {0x30fb, 0x30fb}, {0xfe10, 0xfe19}, {0xfe30, 0xfe52},
        {0xfe54, 0xfe61}, {0xfe63, 0xfe63}, {0xfe68, 0xfe68}, {0xfe6a, 0xfe6b}, {0xff01, 0xff03},
        {0xff05, 0xff0a}, {0xff0c, 0xff0f}, {0xff1a, 0xff1b}, {0xff1f, 0xff20}, {0xff3b, 0xff3d},
        {0xff3f, 0xff3f}, {0xff5b, 0xff5b}, {0xff5d, 0xff5d}, {0xff5f, 0xff65}};
    return is_among(c, marks, ARRAY_COUNT(marks));
}

bool character_is_chinese(uint32_t c)
{
    static const struct range blocks[] = {{0x3400, 0x4dbf},   {0x4e00, 0x9fff},
                                          {0xf900, 0xfaff},   {0x20000, 0x2a6df},
                                          {0x2a700, 0x2ceaf}, {0x2f800, 0x2fa1f}};
    return is_among(c, blocks, ARRAY_COUNT(blocks));
}

/* ---- small letters ---- */

/* From U+00C0 on: the letter without its accent; '.': it stays; '+': a capital without one, whose
 * small letter is the next character. The first 32 are capitals whose small letters are 32
 * further. */
static const char latin[] = "aaaaaa.ceeeeiiii.nooooo..uuuuy.."
                            "aaaaaa.ceeeeiiii.nooooo..uuuuy.y"
                            "aaaaaaccccccccdd+.eeeeeeeeeegggg"
                            "gggghh+.iiiiiiiii.+.jjkk.llllll+"
                            ".+.nnnnnn.+.oooooo+.rrrrrrssssss"
                            "sstttt+.uuuuuuuuuuuuwwyyyzzzzzz.";

enum { LATIN_FIRST = 0xc0, LATIN_END = 0x180, TIMES = 0xd7, SHARP_S = 0xdf, CASE_DISTANCE = 0x20 };
_Static_assert(sizeof(latin) - 1 == LATIN_END - LATIN_FIRST, "a character each");

static uint32_t small_latin(uint32_t c)
{
    char base = latin[c - LATIN_FIRST];
    if (base == '+')
        return c + 1;
    if (base != '.')
        return (uint32_t)base;
    return c < SHARP_S && c != TIMES ? c + CASE_DISTANCE : c;
}

/* Letters whose accents are part of the character. */
static uint32_t without_accent(uint32_t c)
{
    static const struct {
        uint16_t accented, plain;
    } letters[] = {{0x390, 0x3b9}, {0x3ac, 0x3b1}, {0x3ad, 0x3b5}, {0x3ae, 0x3b7}, {0x3af, 0x3b9},
                   {0x3b0, 0x3c5}, {0x3ca, 0x3b9}, {0x3cb, 0x3c5}, {0x3cc, 0x3bf}, {0x3cd, 0x3c5},
                   {0x3ce, 0x3c9}, {0x439, 0x438}, {0x450, 0x435}, {0x451, 0x435}, {0x453, 0x433},
                   {0x457, 0x456}, {0x45c, 0x43a}, {0x45d, 0x438}, {0x45e, 0x443}};
    for (int k = 0; k < ARRAY_COUNT(letters); k++)
        if (letters[k].accented == c)
            return letters[k].plain;
    return c;
}

static uint32_t small_greek(uint32_t c)
{
    static const uint16_t accented[] = {0x3ac, 0x387, 0x3ad, 0x3ae, 0x3af,
                                        0x38b, 0x3cc, 0x38d, 0x3cd, 0x3ce};
    if (c >= 0x386 && c <= 0x38f)
        return accented[c - 0x386];
    return c >= 0x391 && c <= 0x3ab ? c + CASE_DISTANCE : c;
}

static uint32_t small_cyrillic(uint32_t c)
{
    if (c >= 0x400 && c <= 0x40f)
        return c + 0x50;
    return c >= 0x410 && c <= 0x42f ? c + CASE_DISTANCE : c;
}

uint32_t character_small(uint32_t c)
{
    if (c >= 0x300 && c <= 0x36f)
        return 0;
    if (c < LATIN_FIRST)
        return c >= 'A' && c <= 'Z' ? c + CASE_DISTANCE : c;
    if (c < LATIN_END)
        return small_latin(c);
    return without_accent(c < 0x400 ? small_greek(c) : small_cyrillic(c));
}
