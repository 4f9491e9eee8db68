/* SPDX-License-Identifier: Apache-2.0
 *
 * The plug-in that reads JPEG. libjpeg leaves a file that it cannot read by longjmp; a file that
 * ends early it would complete with grey, with a warning: that is an error here. Other warnings are
 * not: many pictures that are fine have bytes too many. */
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jerror.h>
#include <jpeglib.h>

#include "workloads/data/jpeg.h"

static const int64_t pixels_max = (int64_t)1 << 27;

struct errors {
    struct jpeg_error_mgr manager; /* first: libjpeg knows this part */
    jmp_buf leave;
    size_t bytes; /* of the file */
    char *why;
};

static void say(j_common_ptr info)
{
    struct errors *e = (struct errors *)info->err;
    const struct jpeg_source_mgr *source =
        info->is_decompressor ? ((j_decompress_ptr)info)->src : NULL;
    char text[JMSG_LENGTH_MAX];
    bool ended = e->manager.msg_code == JWRN_JPEG_EOF;
    size_t left = source && !ended ? source->bytes_in_buffer : 0;
    e->manager.format_message(info, text);
    snprintf(e->why, JPEG_WHY, "offset %zu of %zu: %s", left <= e->bytes ? e->bytes - left : 0,
             e->bytes, text);
}

static void fail(j_common_ptr info)
{
    say(info);
    longjmp(((struct errors *)info->err)->leave, 1);
}

static void warn(j_common_ptr info, int level)
{
    int code = info->err->msg_code;
    if (level < 0 && (code == JWRN_JPEG_EOF || code == JWRN_HIT_MARKER))
        fail(info);
}

static void silent(j_common_ptr info)
{
    (void)info;
}

static void begin(struct jpeg_decompress_struct *info, struct errors *e, size_t bytes, char *why)
{
    memset(info, 0, sizeof(*info));
    info->err = jpeg_std_error(&e->manager);
    e->manager.error_exit = fail;
    e->manager.emit_message = warn;
    e->manager.output_message = silent;
    e->bytes = bytes;
    e->why = why;
}

static void read_head(struct jpeg_decompress_struct *info, const void *data, size_t bytes)
{
    jpeg_create_decompress(info);
    jpeg_mem_src(info, data, (unsigned long)bytes);
    jpeg_read_header(info, TRUE);
}

static bool size_of(const void *data, size_t bytes, int *width, int *height, char *why)
{
    struct jpeg_decompress_struct info;
    struct errors errors;
    begin(&info, &errors, bytes, why);
    if (setjmp(errors.leave)) {
        jpeg_destroy_decompress(&info);
        return false;
    }
    read_head(&info, data, bytes);
    *width = (int)info.image_width;
    *height = (int)info.image_height;
    jpeg_destroy_decompress(&info);
    return true;
}

/* Four bytes a pixel become three in the same place. Adobe's programs write all four inverted. */
static void from_cmyk(uint8_t *line, int width, bool inverted)
{
    for (int x = 0; x < width; x++) {
        const uint8_t *from = line + 4 * x;
        int flip = inverted ? 0 : 255, black = from[3] ^ flip;
        for (int c = 0; c < 3; c++)
            line[3 * x + c] = (uint8_t)((from[c] ^ flip) * black / 255);
    }
}

/* Lines go through one of four bytes a pixel, which is what CMYK needs. */
static void read_lines(struct jpeg_decompress_struct *info, uint8_t *rgb, uint8_t *line)
{
    size_t width = info->output_width;
    while (info->output_scanline < info->output_height) {
        uint8_t *to = rgb + 3 * width * info->output_scanline;
        jpeg_read_scanlines(info, &line, 1);
        if (info->out_color_space == JCS_CMYK)
            from_cmyk(line, (int)width, info->saw_Adobe_marker);
        memcpy(to, line, 3 * width);
    }
}

static bool decode(const void *data, size_t bytes, int shrink, struct jpeg_pixels *pixels,
                   char *why)
{
    struct jpeg_decompress_struct info;
    struct errors errors;
    uint8_t *volatile rgb = NULL, *volatile line = NULL;
    volatile bool ok = false;
    begin(&info, &errors, bytes, why);
    snprintf(why, JPEG_WHY, "no memory for its pixels");
    if (!setjmp(errors.leave)) {
        read_head(&info, data, bytes);
        bool four = info.jpeg_color_space == JCS_CMYK || info.jpeg_color_space == JCS_YCCK;
        info.out_color_space = four ? JCS_CMYK : JCS_RGB;
        info.scale_num = 1;
        info.scale_denom = (unsigned)shrink;
        if ((int64_t)info.image_width * info.image_height > pixels_max)
            ERREXIT1(&info, JERR_IMAGE_TOO_BIG, (int)info.image_width);
        jpeg_start_decompress(&info);
        rgb = malloc(3 * (size_t)info.output_width * info.output_height);
        line = malloc(4 * (size_t)info.output_width);
        if (rgb && line) {
            read_lines(&info, rgb, line);
            jpeg_finish_decompress(&info);
            *pixels = (struct jpeg_pixels){rgb, (int)info.output_width, (int)info.output_height};
            ok = true;
        }
    }
    jpeg_destroy_decompress(&info);
    free(line);
    if (!ok)
        free(rgb);
    return ok;
}

#define TEXT_OF(number)  #number
#define VERSION_(number) TEXT_OF(number)

const struct jpeg_backend *ridge_jpeg(void)
{
    static const struct jpeg_backend backend = {
        .abi = JPEG_ABI,
        .version = "libjpeg " VERSION_(JPEG_LIB_VERSION),
        .size = size_of,
        .decode = decode,
    };
    return &backend;
}
