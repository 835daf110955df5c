/* jpeg_write.c -- encodes JPEG files by libjpeg. */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "core/strbuf.h"
#include "io/image.h"
#include "io/jpeg_int.h"

enum { BLOCK = 1 << 14, PIXELS_MOST = 1 << 29 };

typedef struct writer {
    struct jpeg_compress_struct c;
    leat_jpeg_errors errors;
    struct jpeg_destination_mgr to;
    const leat_picture *p;
    const leat_jpeg_style *style;
    leat_strbuf out, packet;
    JOCTET block[BLOCK];
} writer;

/* ---- What libjpeg writes to ---- */
static void begin(j_compress_ptr c)
{
    writer *w = c->client_data;
    w->to.next_output_byte = w->block;
    w->to.free_in_buffer = BLOCK;
}

static void add_block(writer *w, size_t n)
{
    leat_strbuf_add(&w->out, w->block, n);
    if (w->out.lacking)
        ERREXIT1(&w->c, JERR_OUT_OF_MEMORY, 0);
}

static boolean next_block(j_compress_ptr c)
{
    add_block(c->client_data, BLOCK);
    begin(c);
    return TRUE;
}

static void end(j_compress_ptr c)
{
    writer *w = c->client_data;
    add_block(w, BLOCK - w->to.free_in_buffer);
}

/* ---- The image ---- */
static void set_style(writer *w)
{
    const leat_jpeg_style *s = w->style;
    w->c.image_width = (JDIMENSION)w->p->width;
    w->c.image_height = (JDIMENSION)w->p->height;
    w->c.input_components = w->p->channels;
    w->c.in_color_space = w->p->channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
    jpeg_set_defaults(&w->c);
    w->c.optimize_coding = s->optimize_size;
    w->c.density_unit = (UINT8)s->density_unit;
    w->c.X_density = (UINT16)s->x_density;
    w->c.Y_density = (UINT16)s->y_density;
    jpeg_set_quality(&w->c, s->quality, TRUE);
    if (s->progressive)
        jpeg_simple_progression(&w->c);
    for (int i = 0; !s->chroma_downsampling && i < w->c.num_components; i++)
        w->c.comp_info[i].h_samp_factor = w->c.comp_info[i].v_samp_factor = 1;
}

/* XMP metadata is in a marker APP1, after the name of its format and a NUL. */
static void write_metadata(writer *w)
{
    static const char name[] = "http://ns.adobe.com/xap/1.0/";
    if (!w->style->xmp_size)
        return;
    leat_strbuf_add(&w->packet, name, sizeof(name));
    leat_strbuf_add(&w->packet, w->style->xmp, w->style->xmp_size);
    if (w->packet.lacking)
        ERREXIT1(&w->c, JERR_OUT_OF_MEMORY, 0);
    jpeg_write_marker(&w->c, JPEG_APP0 + 1, (const JOCTET *)w->packet.s, (unsigned)w->packet.n);
}

static void write_image(writer *w)
{
    jpeg_create_compress(&w->c);
    w->c.client_data = w;
    w->to = (struct jpeg_destination_mgr){
        .init_destination = begin, .empty_output_buffer = next_block, .term_destination = end};
    w->c.dest = &w->to;
    set_style(w);
    jpeg_start_compress(&w->c, TRUE);
    write_metadata(w);
    const size_t row = (size_t)(w->p->width * w->p->channels);
    while (w->c.next_scanline < w->c.image_height) {
        JSAMPROW line = (JSAMPROW)w->p->pixels + w->c.next_scanline * row;
        jpeg_write_scanlines(&w->c, &line, 1);
    }
    jpeg_finish_compress(&w->c);
}

static leat_status encode(writer *w)
{
    w->c.err = leat_jpeg_errors_init(&w->errors);
    if (setjmp(w->errors.jump)) {
        if (w->errors.no_memory)
            return leat_error(RESOURCE_EXHAUSTED, "No memory to encode a JPEG image of %lld x %lld",
                              (long long)w->p->height, (long long)w->p->width);
        return leat_error(INTERNAL, "JPEG encoding failed: %s", w->errors.why);
    }
    write_image(w);
    return NULL;
}

leat_status leat_jpeg_encode(const leat_picture *p, const leat_jpeg_style *style, void **bytes_out,
                             size_t *size_out)
{
    LEAT_REQUIRE((p->channels == 1 || p->channels == 3) && p->bits == 8, INVALID_ARGUMENT,
                 "a JPEG image with %d channels of %d bits", p->channels, p->bits);
    LEAT_REQUIRE(p->height > 0 && p->width > 0 && p->height < PIXELS_MOST &&
                     p->width < PIXELS_MOST / p->height,
                 INTERNAL, "JPEG encoding failed: the image is of %lld x %lld pixels",
                 (long long)p->height, (long long)p->width);
    writer *w = calloc(1, sizeof(*w));
    LEAT_REQUIRE(w, RESOURCE_EXHAUSTED, "No memory to encode a JPEG image");
    w->p = p;
    w->style = style;
    w->out.checked = w->packet.checked = true;
    leat_status s = encode(w);
    jpeg_destroy_compress(&w->c);
    leat_strbuf_release(&w->packet);
    if (!s) {
        *size_out = w->out.n;
        *bytes_out = leat_strbuf_take(&w->out);
    }
    leat_strbuf_release(&w->out);
    free(w);
    return s;
}
