/* scenario_images.c -- images, encoded and decoded by functions and by ops. */
#include "faults/scenarios.h"

#include <stdlib.h>
#include <string.h>

enum { SIDE = 120 }; /* its PNG is larger than the first pieces that a string grows by */

static leat_status picture(leat_tensor **out)
{
    LEAT_TRY(leat_tensor_new(LEAT_UINT8, leat_shape(SIDE, SIDE, 3), out));
    uint8_t *p = leat_tensor_mutable(*out);
    uint32_t random = 1;
    for (int i = 0; i < SIDE * SIDE * 3; i++)
        p[i] = (uint8_t)((random = random * 1664525 + 1013904223) >> 24);
    return NULL;
}

static leat_status by_functions(const leat_tensor *image)
{
    void *bytes = NULL;
    size_t n = 0;
    leat_tensor *again = NULL;
    leat_image_info info = {0};
    leat_status e = leat_image_encode_png(image, 1, &bytes, &n);
    THEN(e, leat_image_decode(bytes, n, 0, LEAT_UINT8, &again));
    if (!e)
        EXPECT(memcmp(leat_tensor_data(again), leat_tensor_data(image), SIDE * SIDE * 3) == 0);
    leat_tensor_unref(again);
    free(bytes);
    again = NULL;
    bytes = NULL;
    THEN(e, leat_image_encode_jpeg(image, 90, &bytes, &n));
    THEN(e, leat_image_inspect(bytes, n, &info));
    THEN(e, leat_image_decode(bytes, n, 1, LEAT_UINT8, &again));
    if (!e)
        EXPECT(info.height == SIDE && leat_tensor_count(again) == SIDE * SIDE);
    leat_tensor_unref(again);
    free(bytes);
    return e;
}

static leat_status by_ops(leat_session *s, leat_out x, leat_out png, leat_out jpeg, leat_out part,
                          leat_tensor *image)
{
    leat_tensor *got[3] = {NULL};
    leat_status e = leat_session_run(s, LEAT_FEED({x, image}),
                                     LEAT_FETCH({png, &got[0]}, {jpeg, &got[1]}, {part, &got[2]}),
                                     LEAT_NO_TARGET);
    if (!e) {
        EXPECT(memcmp(leat_tensor_data(got[0]), leat_tensor_data(image), SIDE * SIDE * 3) == 0);
        EXPECT(leat_tensor_count(got[1]) == SIDE * SIDE * 3);
        EXPECT(leat_tensor_count(got[2]) == 10 * 20 * 3);
    }
    for (int i = 0; i < 3; i++)
        leat_tensor_unref(got[i]);
    return e;
}

leat_status scenario_images(const char *dir)
{
    leat_tensor *image = NULL;
    leat_session *s = NULL;
    leat_graph *g = leat_graph_new();
    leat_out x = leat_placeholder(g, LEAT_UINT8, leat_shape(-1, -1, 3));
    leat_out file = leat_encode_jpeg(x, leat_attr_string("xmp_metadata", "<x/>"));
    leat_out png = leat_decode_png(leat_encode_png(x)), jpeg = leat_decode_jpeg(file);
    leat_out part = leat_decode_and_crop_jpeg(file, leat_ints(g, 3, 5, 10, 20));
    leat_status e = leat_graph_status(g);
    THEN(e, picture(&image));
    THEN(e, by_functions(image));
    THEN(e, leat_session_open(g, &s));
    THEN(e, by_ops(s, x, png, jpeg, part, image));
    leat_session_close(s);
    leat_graph_free(g);
    leat_tensor_unref(image);
    return e;
}
