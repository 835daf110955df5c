/* vector_file.h -- reads the files of tests/vectors; gen/case.py there describes their format.
 *
 * The file is mapped into memory as a whole. A case's strings end with a NUL and, like its lists,
 * live in the arena that it was read into.
 */
#ifndef LEAT_TEST_VECTOR_FILE_H
#define LEAT_TEST_VECTOR_FILE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "core/arena.h"

typedef struct vec_bytes {
    char *s;
    uint32_t n;
} vec_bytes;
typedef struct vec_named {
    const char *name;
    vec_bytes tensor; /* a TensorProto; n 0: none */
    vec_bytes shape;  /* of a fetch: the TensorShapeProto that TensorFlow inferred */
    uint32_t kind;    /* of a gradient: 0 none, 1 dense, 2 rows made dense */
} vec_named;
typedef struct vec_list {
    vec_named *v;
    uint32_t n;
} vec_list;
typedef struct vec_run {
    vec_list feeds, targets, fetches;
    uint32_t code; /* the expected status code, or VEC_ANY_ERROR */
    const char *words;
} vec_run;
typedef struct vec_gradient {
    vec_list ys, xs, grad_ys;
} vec_gradient;
typedef struct vec_case {
    const char *name, *op;
    vec_bytes graph;
    uint32_t tolerance; /* VEC_BITS ... */
    float scale;        /* of VEC_RELATIVE */
    vec_list feeds;
    vec_run *runs;
    vec_gradient *gradients;
    uint32_t n_runs, n_gradients;
} vec_case;
enum { VEC_BITS = 0, VEC_RELATIVE = 1, VEC_VALUES = 2 }; /* vec_case.tolerance */
enum { VEC_ANY_ERROR = 0xffffffffu };

typedef struct vec_file {
    char *bytes;
    size_t n, at, end; /* end of the current case */
    bool bad;          /* cut off, or no such file */
} vec_file;

static inline uint32_t vec_u32(vec_file *f)
{
    uint32_t v = 0;
    if (f->end - f->at < 4) {
        f->bad = true;
        f->at = f->end;
    } else {
        memcpy(&v, f->bytes + f->at, 4);
        f->at += 4;
    }
    return v;
}

static inline vec_bytes vec_string(vec_file *f, leat_arena *a)
{
    uint32_t n = vec_u32(f);
    if (f->end - f->at < n) {
        f->bad = true;
        n = 0;
    }
    vec_bytes b = {leat_arena_strndup(a, "", 0), n};
    if (n) {
        b.s = leat_arena_alloc(a, (size_t)n + 1);
        memcpy(b.s, f->bytes + f->at, n);
        f->at += n;
    }
    return b;
}

static inline uint32_t vec_count(vec_file *f)
{
    uint32_t n = vec_u32(f);
    if (n > f->end - f->at) { /* each item has at least a byte */
        f->bad = true;
        n = 0;
    }
    return n;
}

/* The fields of an item of a list. */
enum { VEC_NAME = 1, VEC_KIND = 2, VEC_TENSOR = 4, VEC_SHAPE = 8 };
static inline vec_list vec_items(vec_file *f, leat_arena *a, int what)
{
    vec_list l = {.n = vec_count(f)};
    l.v = leat_arena_array(a, vec_named, l.n);
    for (uint32_t i = 0; i < l.n; i++) {
        if (what & VEC_NAME)
            l.v[i].name = vec_string(f, a).s;
        if (what & VEC_KIND)
            l.v[i].kind = vec_u32(f);
        if (what & VEC_TENSOR)
            l.v[i].tensor = vec_string(f, a);
        if (what & VEC_SHAPE)
            l.v[i].shape = vec_string(f, a);
    }
    return l;
}

static inline void vec_close(vec_file *f)
{
    free(f->bytes);
    *f = (vec_file){0};
}

static inline bool vec_open(vec_file *f, const char *path)
{
    *f = (vec_file){0};
    FILE *in = fopen(path, "rb");
    if (!in)
        return false;
    if (fseek(in, 0, SEEK_END) == 0) {
        long n = ftell(in);
        rewind(in);
        f->bytes = n > 0 ? malloc((size_t)n) : NULL;
        f->n = f->bytes ? fread(f->bytes, 1, (size_t)n, in) : 0;
    }
    fclose(in);
    if (f->n < 8 || memcmp(f->bytes, "LEATVEC1", 8) != 0) {
        vec_close(f);
        return false;
    }
    f->at = 8;
    return true;
}

/* The next case; false at the end, or if the file is cut off (bad is set then). */
static inline bool vec_next(vec_file *f, leat_arena *a, vec_case *c)
{
    *c = (vec_case){0};
    if (f->at == f->n)
        return false;
    f->end = f->n;
    uint32_t size = vec_u32(f);
    if (f->bad || size > f->n - f->at) {
        f->bad = true;
        return false;
    }
    f->end = f->at + size;
    c->name = vec_string(f, a).s;
    c->op = vec_string(f, a).s;
    c->graph = vec_string(f, a);
    c->tolerance = vec_u32(f);
    uint32_t scale = vec_u32(f);
    memcpy(&c->scale, &scale, 4);
    c->feeds = vec_items(f, a, VEC_NAME | VEC_TENSOR);
    c->n_runs = vec_count(f);
    c->runs = leat_arena_array(a, vec_run, c->n_runs);
    for (uint32_t i = 0; i < c->n_runs; i++) {
        c->runs[i].feeds = vec_items(f, a, VEC_NAME | VEC_TENSOR);
        c->runs[i].targets = vec_items(f, a, VEC_NAME);
        c->runs[i].fetches = vec_items(f, a, VEC_NAME | VEC_TENSOR | VEC_SHAPE);
        c->runs[i].code = vec_u32(f);
        c->runs[i].words = vec_string(f, a).s;
    }
    c->n_gradients = vec_count(f);
    c->gradients = leat_arena_array(a, vec_gradient, c->n_gradients);
    for (uint32_t i = 0; i < c->n_gradients; i++) {
        c->gradients[i].ys = vec_items(f, a, VEC_NAME);
        c->gradients[i].xs = vec_items(f, a, VEC_NAME | VEC_KIND | VEC_TENSOR);
        c->gradients[i].grad_ys = vec_items(f, a, VEC_TENSOR);
    }
    return !f->bad && f->at == f->end;
}

#endif
