/* jpeg_read.c -- decodes JPEG files by libjpeg-turbo, with the results of TensorFlow's decoder: its
 * conversion of CMYK, and what it makes of files that are truncated. */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "io/image.h"
#include "io/jpeg_int.h"

enum {
    ROWS = 8,               /* asked for at once */
    CHECK_CALLS = 64,       /* between two looks at the sink's check */
    SCANS_MOST = 500,       /* of a progressive image; each may cost the time of an image */
    REREADS_MOST = 1 << 12, /* more often no unit of an image can begin anew */
    SAMPLES_MOST = 1 << 29, /* as in TensorFlow */
    /* Of a byte. A block has at least one bit in a file that is whole; files of which most is
     * missing are decoded, too, but get no memory that is out of all proportion. */
    BLOCKS_MOST = 512,
};

typedef struct reader {
    struct jpeg_decompress_struct c;
    leat_jpeg_errors errors;
    struct jpeg_source_mgr from;
    struct jpeg_progress_mgr progress;
    const uint8_t *bytes;
    size_t n;
    const JOCTET *stuck; /* where the data ended last, and how often it did there */
    int rereads;
    const leat_jpeg_options *o;
    const leat_image_sink *to;
    unsigned calls;
    leat_status status; /* of the sink */
    int channels;
    int64_t height, width;  /* of the result */
    size_t row;             /* bytes of a row of the result */
    size_t skip;            /* bytes of a decoded row that are left of the result's */
    uint8_t *pixels, *line; /* line: a decoded row that is not the result's yet */
    int64_t done;           /* rows */
} reader;

/* ---- Where libjpeg reads from ---- */
static const JOCTET end_marker[2] = {0xff, JPEG_EOI};

static void begin(j_decompress_ptr c)
{
    reader *r = c->client_data;
    r->from.next_input_byte = r->bytes;
    r->from.bytes_in_buffer = r->n;
}

/* The data has ended. libjpeg keeps the bytes of a unit that it has not finished in the buffer. In
 * that case FALSE ends the decoding, and the rows so far are kept, or, if the file is to be
 * recovered, libjpeg reads these bytes again until the unit is full, as it does in TensorFlow. If
 * there are none, the end of the image is pretended, or it is an error. */
static boolean more(j_decompress_ptr c)
{
    reader *r = c->client_data;
    const bool recover = r->o && r->o->try_recover_truncated;
    if (r->from.bytes_in_buffer && !recover)
        return FALSE;
    if (r->from.bytes_in_buffer) {
        r->rereads = r->from.next_input_byte == r->stuck ? r->rereads + 1 : 0;
        r->stuck = r->from.next_input_byte;
        if (r->rereads < REREADS_MOST)
            return TRUE;
    }
    if (!recover)
        ERREXIT(c, JERR_INPUT_EOF);
    r->from.next_input_byte = end_marker;
    r->from.bytes_in_buffer = 2;
    return TRUE;
}

static void skip(j_decompress_ptr c, long n)
{
    reader *r = c->client_data;
    if (n <= 0)
        return;
    if ((size_t)n > r->from.bytes_in_buffer) {
        r->from.bytes_in_buffer = 0;
        more(c);
        return;
    }
    r->from.next_input_byte += n;
    r->from.bytes_in_buffer -= (size_t)n;
}

static void end(j_decompress_ptr c)
{
    (void)c;
}

/* ---- Bounds of time ---- */
static void progress(j_common_ptr c)
{
    reader *r = c->client_data;
    if (r->c.input_scan_number > SCANS_MOST) {
        snprintf(r->errors.why, sizeof(r->errors.why), "more than %d scans", SCANS_MOST);
        longjmp(r->errors.jump, 1);
    }
    if (++r->calls % CHECK_CALLS == 0 && r->to && (r->status = leat_image_check(r->to)))
        longjmp(r->errors.jump, 1);
}

/* ---- Steps, each of which libjpeg may leave by a jump ---- */
static bool guarded(reader *r, void (*step)(reader *r))
{
    if (setjmp(r->errors.jump))
        return false;
    step(r);
    return true;
}

static void read_header(reader *r)
{
    jpeg_create_decompress(&r->c);
    r->c.client_data = r;
    r->from = (struct jpeg_source_mgr){.init_source = begin,
                                       .fill_input_buffer = more,
                                       .skip_input_data = skip,
                                       .resync_to_restart = jpeg_resync_to_restart,
                                       .term_source = end};
    r->c.src = &r->from;
    r->progress.progress_monitor = progress;
    r->c.progress = &r->progress;
    if (jpeg_read_header(&r->c, TRUE) != JPEG_HEADER_OK)
        ERREXIT(&r->c, JERR_INPUT_EOF);
}

static void choose_output(reader *r)
{
    const bool cmyk = r->c.jpeg_color_space == JCS_CMYK || r->c.jpeg_color_space == JCS_YCCK;
    r->channels = r->o->channels;
    if (!r->channels)
        r->channels = r->c.num_components < 3 ? r->c.num_components : 3;
    r->c.out_color_space = r->channels == 1 ? JCS_GRAYSCALE : cmyk ? JCS_CMYK : JCS_RGB;
    r->c.do_fancy_upsampling = r->o->fancy_upscaling;
    r->c.scale_num = 1;
    r->c.scale_denom = (unsigned)r->o->ratio;
    r->c.dct_method = r->o->accurate ? JDCT_ISLOW : JDCT_IFAST;
    jpeg_calc_output_dimensions(&r->c);
    r->height = r->c.output_height;
    r->width = r->c.output_width;
}

/* Leaves out rows above the window and, in whole units of the image, columns left of it. */
static void start(reader *r)
{
    if (!jpeg_start_decompress(&r->c))
        ERREXIT(&r->c, JERR_INPUT_EOF);
    if (!r->o->crop)
        return;
    JDIMENSION x = (JDIMENSION)r->o->crop_x, width = (JDIMENSION)r->o->crop_width;
    jpeg_crop_scanline(&r->c, &x, &width);
    r->skip = (size_t)(r->o->crop_x - x) * (size_t)r->c.out_color_components;
    if (jpeg_skip_scanlines(&r->c, (JDIMENSION)r->o->crop_y) != r->o->crop_y)
        ERREXIT(&r->c, JERR_INPUT_EOF);
}

/* Colors are inverted in the files that Adobe's programs write. */
static void from_cmyk(const reader *r, const uint8_t *from, uint8_t *to)
{
    const int flip = r->c.saw_Adobe_marker ? 0 : 255;
    for (int64_t x = 0; x < r->width; x++, from += 4, to += 3)
        for (int i = 0; i < 3; i++)
            to[i] = (uint8_t)((from[3] ^ flip) * (from[i] ^ flip) / 255);
}

static void read_rows(reader *r)
{
    uint8_t *lines[ROWS];
    while (r->done < r->height) {
        JDIMENSION want = 1;
        lines[0] = r->line;
        if (!r->line) {
            want = (JDIMENSION)(r->height - r->done < ROWS ? r->height - r->done : ROWS);
            for (JDIMENSION i = 0; i < want; i++)
                lines[i] = r->pixels + (size_t)(r->done + i) * r->row;
        }
        const JDIMENSION got = jpeg_read_scanlines(&r->c, lines, want);
        if (!got)
            return; /* the data has ended */
        uint8_t *to = r->pixels + (size_t)r->done * r->row;
        if (r->c.out_color_space == JCS_CMYK)
            from_cmyk(r, r->line + r->skip, to);
        else if (r->line)
            memcpy(to, r->line + r->skip, r->row);
        r->done += got;
    }
}

/* Reads to the end of the image, where it is an error if the file has none. */
static void finish(reader *r)
{
    if (r->c.output_scanline < r->c.output_height)
        jpeg_skip_scanlines(&r->c, r->c.output_height - r->c.output_scanline);
    jpeg_finish_decompress(&r->c);
}

static leat_status bad(reader *r)
{
    if (r->status)
        return r->status;
    if (r->errors.no_memory)
        return leat_error(RESOURCE_EXHAUSTED, "No memory to decode a JPEG image of %zu bytes",
                          r->n);
    const JOCTET *at = r->from.next_input_byte;
    if (!at || at < r->bytes || at > r->bytes + r->n) /* in end_marker, or nowhere yet */
        return leat_error(INVALID_ARGUMENT, "Invalid JPEG data or crop window, data size %zu: %s",
                          r->n, r->errors.why);
    return leat_error(INVALID_ARGUMENT,
                      "Invalid JPEG data or crop window, data size %zu: %s (at byte %zu)", r->n,
                      r->errors.why, (size_t)(at - r->bytes));
}

/* ---- Decoding ---- */
/* Blocks of 8 x 8 samples, of all components. */
static int64_t blocks_of(const reader *r)
{
    int64_t n = 0;
    for (int i = 0; i < r->c.num_components; i++)
        n += (int64_t)r->c.comp_info[i].width_in_blocks * r->c.comp_info[i].height_in_blocks;
    return n;
}

static leat_status check_size(reader *r)
{
    const leat_jpeg_options *o = r->o;
    LEAT_REQUIRE(r->channels == 1 || r->channels == 3, INVALID_ARGUMENT,
                 "Invalid JPEG data or crop window, data size %zu: it has %d channels", r->n,
                 r->channels);
    LEAT_REQUIRE(r->height > 0 && r->width > 0 &&
                     r->height * r->width * r->c.num_components < SAMPLES_MOST,
                 INVALID_ARGUMENT,
                 "Invalid JPEG data or crop window, data size %zu: an image of %lld x %lld pixels "
                 "is too large",
                 r->n, (long long)r->height, (long long)r->width);
    LEAT_REQUIRE(r->c.arith_code || blocks_of(r) / BLOCKS_MOST <= (int64_t)r->n, INVALID_ARGUMENT,
                 "Invalid JPEG data or crop window, data size %zu: too few bytes for an image of "
                 "%u x %u pixels",
                 r->n, r->c.image_height, r->c.image_width);
    if (!o->crop)
        return NULL;
    LEAT_REQUIRE(o->crop_height > 0 && o->crop_width > 0 && o->crop_y >= 0 && o->crop_x >= 0 &&
                     o->crop_y + o->crop_height <= r->height &&
                     o->crop_x + o->crop_width <= r->width,
                 INVALID_ARGUMENT,
                 "Invalid JPEG data or crop window, data size %zu: a window of %lld x %lld pixels "
                 "at row %lld, column %lld is not within an image of %lld x %lld",
                 r->n, (long long)o->crop_height, (long long)o->crop_width, (long long)o->crop_y,
                 (long long)o->crop_x, (long long)r->height, (long long)r->width);
    r->height = o->crop_height;
    r->width = o->crop_width;
    return NULL;
}

/* Rows that the file lacks are black, if it has enough others. */
static leat_status check_rows(reader *r)
{
    const float fraction = (float)r->done / (float)r->height;
    LEAT_REQUIRE(!(fraction < 1 && fraction < r->o->acceptable_fraction), INVALID_ARGUMENT,
                 "Invalid JPEG data or crop window, data size %zu: it ends at row %lld of %lld",
                 r->n, (long long)r->done, (long long)r->height);
    memset(r->pixels + (size_t)r->done * r->row, 0, (size_t)(r->height - r->done) * r->row);
    return NULL;
}

static leat_status decode(reader *r)
{
    if (!guarded(r, read_header) || !guarded(r, choose_output))
        return bad(r);
    LEAT_TRY(check_size(r));
    const leat_image_info size = {LEAT_IMAGE_JPEG, 1, r->height, r->width, r->channels, 8};
    void *pixels;
    LEAT_TRY(r->to->alloc(r->to->arg, &size, &pixels));
    r->pixels = pixels;
    r->row = (size_t)(r->width * r->channels);
    if (!guarded(r, start))
        return bad(r);
    if (r->c.out_color_space == JCS_CMYK || r->c.output_width != r->width) {
        const size_t line = (size_t)r->c.output_width * (size_t)r->c.output_components;
        r->line = malloc(line);
        LEAT_REQUIRE(r->line, RESOURCE_EXHAUSTED, "No memory for a row of %zu bytes", line);
    }
    if (!guarded(r, read_rows))
        return bad(r);
    if (r->done < r->height)
        return check_rows(r);
    return guarded(r, finish) ? NULL : bad(r);
}

static reader *reader_new(const void *bytes, size_t n)
{
    reader *r = calloc(1, sizeof(*r));
    if (!r)
        return NULL;
    r->bytes = bytes;
    r->n = n;
    r->c.err = leat_jpeg_errors_init(&r->errors);
    return r;
}

static void reader_free(reader *r)
{
    jpeg_destroy_decompress(&r->c);
    free(r->line);
    free(r);
}

leat_status leat_jpeg_decode(const void *bytes, size_t n, const leat_jpeg_options *o,
                             const leat_image_sink *to)
{
    reader *r = reader_new(bytes, n);
    LEAT_REQUIRE(r, RESOURCE_EXHAUSTED, "No memory to decode a JPEG image");
    r->o = o;
    r->to = to;
    leat_status s = decode(r);
    reader_free(r);
    return s;
}

static void calculate(reader *r)
{
    jpeg_calc_output_dimensions(&r->c);
}

leat_status leat_jpeg_inspect(const void *bytes, size_t n, leat_image_info *out)
{
    reader *r = reader_new(bytes, n);
    LEAT_REQUIRE(r, RESOURCE_EXHAUSTED, "No memory to decode a JPEG image");
    leat_status s = NULL;
    if (guarded(r, read_header) && guarded(r, calculate))
        *out = (leat_image_info){LEAT_IMAGE_JPEG,        1, r->c.output_height, r->c.output_width,
                                 r->c.output_components, 8};
    else if (r->errors.no_memory)
        s = bad(r);
    else
        s = leat_error(INVALID_ARGUMENT, "Invalid JPEG data, size %zu: %s", n, r->errors.why);
    reader_free(r);
    return s;
}
