/* freeze.c -- leat freeze: writes a graph in which variables are constants. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"

typedef struct job {
    cli_values fetches;
    const char *model, *tags, *signature_name, *meta, *checkpoint, *out;
    bool text;
} job;

static leat_status write_file(const char *path, const void *bytes, size_t n)
{
    FILE *f = fopen(path, "wb");
    bool ok = f && fwrite(bytes, 1, n, f) == n;
    ok = f && fclose(f) == 0 && ok;
    LEAT_REQUIRE(ok, NOT_FOUND, "%s: %s", path, strerror(errno));
    return NULL;
}

static leat_status write_graph(const job *j, const leat_graph *g)
{
    void *bytes = NULL;
    size_t n;
    leat_status s;
    if (j->text) {
        s = leat_graph_to_text(g, (char **)&bytes);
        n = s ? 0 : strlen(bytes);
    } else {
        s = leat_graph_to_binary(g, &bytes, &n);
    }
    if (!s)
        s = write_file(j->out, bytes, n);
    free(bytes);
    if (!s)
        printf("%s: %d nodes, %zu bytes\n", j->out, leat_graph_nodes(g), n);
    return s;
}

static leat_status freeze(const job *j, leat_graph *g, leat_session *s,
                          const leat_signature *signature)
{
    const int n = j->fetches.n ? j->fetches.n : signature ? signature->n_outputs : 0;
    LEAT_REQUIRE(n, INVALID_ARGUMENT, "there is no output; name some by --fetch");
    leat_out *outputs = cli_array((size_t)n, sizeof(*outputs));
    leat_graph *frozen = NULL;
    leat_status status = NULL;
    for (int i = 0; i < n && !status; i++)
        if (!j->fetches.n)
            outputs[i] = signature->outputs[i].x;
        else if (signature)
            status = leat_signature_output(signature, j->fetches.v[i], &outputs[i]);
        else
            status = leat_graph_find_out(g, j->fetches.v[i], &outputs[i]);
    if (!status)
        status = leat_freeze(g, s, outputs, n, &frozen);
    if (!status)
        status = write_graph(j, frozen);
    leat_graph_free(frozen);
    free(outputs);
    return status;
}

static leat_status freeze_model(const job *j)
{
    leat_saved_model *m;
    const leat_signature *signature = NULL;
    LEAT_TRY(leat_saved_model_load(j->model, &m, .tags = j->tags));
    leat_status s = leat_saved_model_signature(
        m, j->signature_name ? j->signature_name : "serving_default", &signature);
    if (!s)
        s = freeze(j, leat_saved_model_graph(m), leat_saved_model_session(m), signature);
    leat_saved_model_close(m);
    return s;
}

static leat_status freeze_checkpoint(const job *j)
{
    leat_graph *g = leat_graph_new();
    leat_saver *saver = NULL;
    leat_session *session = NULL;
    leat_status s = leat_meta_graph_read(g, j->meta, &saver);
    if (!s && !saver)
        s = leat_error(INVALID_ARGUMENT, "%s: has no variables", j->meta);
    if (!s)
        s = leat_session_open(g, &session, .allow_soft_placement = true);
    if (!s)
        s = leat_saver_restore(saver, session, j->checkpoint);
    if (!s)
        s = freeze(j, g, session, NULL);
    if (session)
        leat_session_close(session);
    leat_saver_free(saver);
    leat_graph_free(g);
    return s;
}

static int run(int argc, char **argv)
{
    job j = {0};
    cli_values rest = {0};
    const cli_option options[] = {
        {.name = "saved_model", .value = &j.model},
        {.name = "signature", .value = &j.signature_name},
        {.name = "tags", .value = &j.tags},
        {.name = "meta_graph", .value = &j.meta},
        {.name = "checkpoint", .value = &j.checkpoint},
        {.name = "fetch", .values = &j.fetches},
        {.name = "text", .given = &j.text},
        {0},
    };
    int code = 2;
    if (cli_parse(argc, argv, options, &rest)) {
        j.out = rest.n ? rest.v[0] : NULL;
        if (rest.n != 1)
            code = cli_bad_use("freeze", "wants one file to write");
        else if (!j.model == !j.meta || !j.meta != !j.checkpoint)
            code = cli_bad_use("freeze",
                               "wants a --saved_model, or a --meta_graph and a --checkpoint");
        else
            code = cli_finish("freeze", j.model ? freeze_model(&j) : freeze_checkpoint(&j));
    }
    cli_values_free(&rest);
    cli_values_free(&j.fetches);
    return code;
}

const cli_command cli_freeze = {
    .name = "freeze",
    .summary = "write a graph with its variables as constants",
    .usage = "usage: leat freeze OUT.pb --saved_model DIR [--signature NAME] [--fetch NAME] ...\n"
             "       leat freeze OUT.pb --meta_graph FILE --checkpoint PREFIX --fetch NAME ...\n\n"
             "Writes a GraphDef with what the outputs need. Each variable is a constant that has\n"
             "the variable's value in the model or in the checkpoint; functions are expanded.\n\n"
             "  --saved_model DIR    a model and its variables\n"
             "  --signature NAME     its signature (serving_default), whose outputs are kept\n"
             "  --tags TAG,...       choose the model's graph with these tags (serve)\n"
             "  --meta_graph FILE    a graph, model.ckpt-1200.meta\n"
             "  --checkpoint PREFIX  its variables, model.ckpt-1200\n"
             "  --fetch NAME         keep this output only\n"
             "  --text               write text, not bytes\n",
    .run = run,
};
