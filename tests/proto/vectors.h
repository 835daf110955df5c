/* vectors.h -- messages that TensorFlow wrote, in bytes and in text: data/NAME.pb and NAME.txt,
 * made by make_vectors.py and make_vectors_tf2.py. */
#ifndef LEAT_TESTS_PROTO_VECTORS_H
#define LEAT_TESTS_PROTO_VECTORS_H

#include "test.h"
#include "core/strbuf.h"
#include "proto/cluster.pb-c.h"
#include "proto/config.pb-c.h"
#include "proto/graph.pb-c.h"
#include "proto/wire.h"

#include <dirent.h>

typedef struct vector {
    const char *name;
    const ProtobufCMessageDescriptor *type;
} vector;

static const vector vectors[] = {
    {"functions", &leat__graph_def__descriptor},
    {"control_flow", &leat__graph_def__descriptor},
    {"dtypes", &leat__graph_def__descriptor},
    {"defaults", &leat__function_def__descriptor},
    {"everything", &leat__tensor_proto__descriptor},
    {"config", &leat__config_proto__descriptor},
    {"run_metadata", &leat__run_metadata__descriptor},
    {"worker_session", &leat__create_worker_session_request__descriptor},
};
enum { N_VECTORS = sizeof(vectors) / sizeof(vectors[0]) };

/* Adds a file to b; false if it cannot be read. */
static inline bool read_file(const char *path, leat_strbuf *b)
{
    char chunk[4096];
    size_t n;
    FILE *f = fopen(path, "rb");
    if (!f)
        return false;
    while ((n = fread(chunk, 1, sizeof(chunk), f)) > 0)
        leat_strbuf_add(b, chunk, n);
    return fclose(f) == 0;
}

static inline leat_strbuf read_vector(const char *name, const char *suffix)
{
    char path[512];
    leat_strbuf b = {0};
    snprintf(path, sizeof(path), "%s/tests/proto/data/%s%s", LEAT_SOURCE_DIR, name, suffix);
    CHECK(read_file(path, &b));
    return b;
}

/* Where data shared with other projects is: $LEAT_SHARED, or beside the source. */
static inline const char *shared_dir(void)
{
    const char *dir = getenv("LEAT_SHARED");
    return dir ? dir : LEAT_SOURCE_DIR "/../shared";
}

/* Calls check for every frozen graph there; gives how many there were, -1 without the data. */
static inline int each_conformance_graph(void (*check)(const Leat__GraphDef *g))
{
    char path[1024];
    int n = 0;
    snprintf(path, sizeof(path), "%s/conformance/graphs", shared_dir());
    DIR *dir = opendir(path);
    for (struct dirent *e; dir && (e = readdir(dir));) {
        const char *dot = strrchr(e->d_name, '.');
        leat_strbuf b = {0};
        Leat__GraphDef *g = NULL;
        if (!dot || strcmp(dot, ".pb") != 0)
            continue;
        snprintf(path, sizeof(path), "%s/conformance/graphs/%s", shared_dir(), e->d_name);
        CHECK(read_file(path, &b));
        CHECK_OK(LEAT_UNPACK(graph_def, b.s, b.n, &g));
        if (g)
            check(g);
        leat_proto_free(g);
        leat_strbuf_release(&b);
        n++;
    }
    if (dir)
        closedir(dir);
    return dir ? n : -1;
}

static inline bool same_bytes(const leat_strbuf *a, const leat_strbuf *b)
{
    return a->n == b->n && (a->n == 0 || memcmp(a->s, b->s, a->n) == 0);
}

#endif
