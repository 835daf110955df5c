/* device_name.c -- see device_name.h. */
#include "graph/device_name.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool number(const char **p, int *out)
{
    if (**p == '*') {
        (*p)++;
        *out = -1;
        return true;
    }
    char *end;
    long v = strtol(*p, &end, 10);
    if (end == *p || v < 0 || v > 1000000)
        return false;
    *out = (int)v;
    *p = end;
    return true;
}

static bool word(const char **p, char *out, size_t size, bool upper)
{
    size_t n = 0;
    if (**p == '*') {
        (*p)++;
        out[0] = 0;
        return true;
    }
    while (isalnum((unsigned char)**p) || **p == '_') {
        if (n + 1 >= size)
            return false;
        out[n++] = (char)(upper ? toupper((unsigned char)**p) : **p);
        (*p)++;
    }
    out[n] = 0;
    return n > 0;
}

static bool eat(const char **p, const char *token)
{
    size_t n = strlen(token);
    if (strncasecmp(*p, token, n) != 0)
        return false;
    *p += n;
    return true;
}

static bool type_and_id(const char **p, leat_device_name *d)
{
    return word(p, d->type, sizeof(d->type), true) && (!eat(p, ":") || number(p, &d->id));
}

leat_status leat_device_name_parse(const char *text, leat_device_name *out)
{
    leat_device_name d = LEAT_DEVICE_ANY;
    const char *p = text;
    while (*p) {
        bool ok;
        eat(&p, "/");
        if (!*p)
            break;
        if (eat(&p, "job:"))
            ok = word(&p, d.job, sizeof(d.job), false);
        else if (eat(&p, "replica:"))
            ok = number(&p, &d.replica);
        else if (eat(&p, "task:"))
            ok = number(&p, &d.task);
        else if (eat(&p, "device:"))
            ok = type_and_id(&p, &d);
        else
            ok = type_and_id(&p, &d) && d.type[0]; /* the old short form, cpu:0 */
        LEAT_REQUIRE(ok && (*p == '/' || *p == 0), INVALID_ARGUMENT,
                     "Malformed device specification '%s'", text);
    }
    *out = d;
    return NULL;
}

leat_device_name leat_device_name_merge(const leat_device_name *over, const leat_device_name *under)
{
    leat_device_name d = *over;
    if (!d.job[0])
        memcpy(d.job, under->job, sizeof(d.job));
    if (d.replica < 0)
        d.replica = under->replica;
    if (d.task < 0)
        d.task = under->task;
    if (!d.type[0])
        memcpy(d.type, under->type, sizeof(d.type));
    if (d.id < 0 && (!under->type[0] || strcmp(d.type, under->type) == 0))
        d.id = under->id;
    return d;
}

bool leat_device_name_fits(const leat_device_name *full, const leat_device_name *asked)
{
    return (!asked->job[0] || strcmp(asked->job, full->job) == 0) &&
           (asked->replica < 0 || asked->replica == full->replica) &&
           (asked->task < 0 || asked->task == full->task) &&
           (!asked->type[0] || strcmp(asked->type, full->type) == 0) &&
           (asked->id < 0 || asked->id == full->id);
}

char *leat_device_name_text(const leat_device_name *d, char *buf, size_t n)
{
    char id[16] = "*", replica[32] = "", task[32] = "", job[80] = "", device[48] = "";
    if (d->job[0])
        snprintf(job, sizeof(job), "/job:%s", d->job);
    if (d->replica >= 0)
        snprintf(replica, sizeof(replica), "/replica:%d", d->replica);
    if (d->task >= 0)
        snprintf(task, sizeof(task), "/task:%d", d->task);
    if (d->id >= 0)
        snprintf(id, sizeof(id), "%d", d->id);
    if (d->type[0])
        snprintf(device, sizeof(device), "/device:%s:%s", d->type, id);
    snprintf(buf, n, "%s%s%s%s", job, replica, task, device);
    return buf;
}
