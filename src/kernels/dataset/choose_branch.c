/* choose_branch.c -- ChooseFastestBranch: functions that make the same elements of the input
 * dataset, in different ways. TensorFlow tries each for some elements and goes on with the fastest;
 * here the first one is used, as of the datasets of a ChooseFastest. */
#include "kernels/dataset/iteration.h"
#include "kernels/dataset/state.h"

enum { BEFORE = 3 }; /* inputs before the captured ones */

typedef struct chosen {
    leat_dataset base;
    int64_t numerator, denominator; /* elements of the input for this many elements */
} chosen;

typedef struct chooser {
    leat_iterator base;
    leat_element args;     /* the input dataset */
    leat_iterator *branch; /* NULL: not yet opened */
} chooser;

static leat_status chosen_make(leat_kernel *k, leat_dataset *d)
{
    const leat_node *node = leat_kernel_node(k);
    chosen *x = (chosen *)d;
    int n;
    const int64_t *lengths = leat_node_ints(node, "other_arguments_lengths", &n);
    LEAT_REQUIRE(n == leat_node_attr(node, "branches")->n, INVALID_ARGUMENT,
                 "branches and other_arguments_lengths must have the same length.");
    LEAT_TRY(leat_data_int(k, 1, "ratio_numerator", &x->numerator));
    LEAT_TRY(leat_data_int(k, 2, "ratio_denominator", &x->denominator));
    LEAT_REQUIRE(x->numerator > 0, INVALID_ARGUMENT,
                 "`ratio_numerator` must be greater than zero.");
    LEAT_REQUIRE(x->denominator > 0, INVALID_ARGUMENT,
                 "`ratio_denominator` must be greater than zero.");
    LEAT_REQUIRE(leat_node_int(node, "num_elements_per_branch") % x->denominator == 0,
                 INVALID_ARGUMENT,
                 "`num_elements_per_branch` must be divisible by `ratio_denominator`.");
    int64_t left = leat_kernel_inputs(k) - BEFORE;
    for (int i = 0; i < n; i++) {
        LEAT_REQUIRE(lengths[i] >= 0 && lengths[i] <= left, INVALID_ARGUMENT,
                     "other_arguments_lengths[%d] is %lld, and %lld other_arguments are left", i,
                     (long long)lengths[i], (long long)left);
        left -= lengths[i];
    }
    LEAT_TRY(leat_data_fn_get(k, "branches", BEFORE, (int)lengths[0], &d->fn[0]));
    const leat_dtype variant = LEAT_VARIANT;
    return leat_data_fn_check(&d->fn[0], "branches", &variant, 1, &variant, 1);
}

static int64_t chosen_cardinality(const leat_dataset *d)
{
    const chosen *x = (const chosen *)d;
    const int64_t n = leat_dataset_cardinality(d->in[0]);
    if (n < 0)
        return n;
    const double elements = (double)n * (double)x->numerator / (double)x->denominator;
    return elements < (double)INT64_MAX ? (int64_t)elements : LEAT_CARDINALITY_UNKNOWN;
}

static leat_status chooser_open(leat_iterator *it)
{
    chooser *x = (chooser *)it;
    x->args = leat_element_new(1);
    return leat_dataset_tensor(leat_dataset_ref(it->d->in[0]), &x->args.v[0]);
}

static void chooser_close(leat_iterator *it)
{
    leat_iterator_free(((chooser *)it)->branch);
    leat_element_clear(&((chooser *)it)->args);
}

static leat_status open_branch(chooser *x, const leat_element *results)
{
    leat_dataset *made;
    LEAT_TRY(leat_dataset_in(results->v[0], &made));
    return leat_iterator_new(x->base.iteration, made, &x->base, 1, &x->branch);
}

static leat_next chooser_next(leat_iterator *it, leat_pull *p)
{
    chooser *x = (chooser *)it;
    if (p->why == LEAT_WHY_PULLED)
        return p->end ? LEAT_NEXT_END : LEAT_NEXT_ELEMENT;
    if (p->why == LEAT_WHY_CALLED) {
        if (!p->status)
            p->status = open_branch(x, &p->element);
        if (p->status)
            return LEAT_NEXT_FAILED;
    }
    return x->branch ? leat_pull_from(p, x->branch) : leat_pull_call(p, &it->d->fn[0], &x->args);
}

static leat_status chooser_save(leat_iterator *it, leat_state_writer *w)
{
    return leat_state_put_iterator(w, ((chooser *)it)->branch);
}

static leat_status chooser_restore(leat_iterator *it, leat_state_reader *r)
{
    chooser *x = (chooser *)it;
    leat_element results = {0};
    leat_status s = leat_data_call(it->iteration, &it->d->fn[0], &x->args, &results);
    if (!s)
        s = open_branch(x, &results);
    leat_element_clear(&results);
    LEAT_TRY(s);
    return leat_state_get_iterator(r, it->iteration, x->branch->d, it, 1, &x->branch);
}

static const leat_dataset_kind chosen_kind = {
    .size = sizeof(chosen),
    .iterator_size = sizeof(chooser),
    .inputs = 1,
    .own_types = true,
    .no_input = true,
    .make = chosen_make,
    .cardinality = chosen_cardinality,
    .open = chooser_open,
    .next = chooser_next,
    .close = chooser_close,
    .save = chooser_save,
    .restore = chooser_restore,
};
LEAT_DATASET_RUN(chosen_kind)

const leat_kernel_def leat_data_kernels_choose_branch[] = {
    {.op = "ChooseFastestBranchDataset", .run = chosen_kind_run},
    {0},
};
