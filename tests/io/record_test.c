/* record_test.c -- TFRecord and event files, both ways. */
#include "io/record.h"

#include "io/event.h"
#include "io/files.h"
#include "proto/wire.h"

static unsigned char large[1280];
static const struct {
    const void *bytes;
    size_t n;
} rows[] = {{"", 0}, {"x", 1}, {"hello", 5}, {large, sizeof(large)}};

static void check_records(const char *path, leat_record_form form)
{
    leat_record_reader *r;
    const void *bytes = NULL;
    size_t n = 0;
    CHECK_OK(leat_record_reader_open(path, form, &r));
    for (int i = 0; i < 4; i++) {
        CHECK_OK(leat_record_next(r, &bytes, &n));
        CHECK_INT(n, rows[i].n);
        CHECK(n == rows[i].n && (n == 0 || memcmp(bytes, rows[i].bytes, n) == 0));
    }
    CHECK_ERROR(leat_record_next(r, &bytes, &n), OUT_OF_RANGE, "eof");
    CHECK_ERROR(leat_record_next(r, &bytes, &n), OUT_OF_RANGE, "eof");
    leat_record_reader_free(r);
}

static void records(void)
{
    static const struct {
        const char *name;
        leat_record_form form;
    } forms[] = {{"plain.tfrecord", LEAT_RECORD_PLAIN},
                 {"gzip.tfrecord", LEAT_RECORD_GZIP},
                 {"zlib.tfrecord", LEAT_RECORD_ZLIB}};
    for (size_t i = 0; i < sizeof(large); i++)
        large[i] = (unsigned char)i;
    for (int f = 0; f < 3; f++) {
        leat_record_writer *w;
        CHECK_OK(leat_record_writer_open(here(forms[f].name), forms[f].form, &w));
        for (int i = 0; i < 4; i++)
            CHECK_OK(leat_record_write(w, rows[i].bytes, rows[i].n));
        CHECK_OK(leat_record_writer_close(w));
        check_records(here(forms[f].name), forms[f].form);
        check_records(here(forms[f].name), LEAT_RECORD_AUTO);
        check_records(theirs(forms[f].name), forms[f].form);
        check_records(theirs(forms[f].name), LEAT_RECORD_AUTO);
    }
    same_file(here("plain.tfrecord"), theirs("plain.tfrecord"));
}

/* Wherever a file is cut or changed, the records before are good and then there is an error. */
static void broken(void)
{
    char *bytes;
    size_t n;
    const void *p;
    size_t m;
    CHECK_OK(leat_file_read(theirs("plain.tfrecord"), &bytes, &n));
    for (size_t cut = 0; cut <= n; cut++) {
        leat_record_reader *r = leat_record_reader_over(bytes, cut, LEAT_RECORD_PLAIN);
        leat_status s;
        while (!(s = leat_record_next(r, &p, &m)))
            ;
        bool whole = cut == 0 || cut == 16 || cut == 33 || cut == 54 || cut == n;
        CHECK_INT(leat_status_code(s), whole ? LEAT_OUT_OF_RANGE : LEAT_DATA_LOSS);
        CHECK(whole || strstr(leat_status_message(s), "truncated record at "));
        leat_status_free(s);
        leat_record_reader_free(r);
    }
    for (size_t i = 0; i < n; i++) {
        bytes[i] ^= 1;
        leat_record_reader *r = leat_record_reader_over(bytes, n, LEAT_RECORD_PLAIN);
        leat_status s;
        while (!(s = leat_record_next(r, &p, &m)))
            ;
        CHECK_INT(leat_status_code(s), LEAT_DATA_LOSS);
        CHECK(strstr(leat_status_message(s), "corrupted record at "));
        leat_status_free(s);
        leat_record_reader_free(r);
        bytes[i] ^= 1;
    }
    free(bytes);
}

static void full_disk(void)
{
    leat_record_writer *w;
    CHECK_OK(leat_record_writer_open("/dev/full", LEAT_RECORD_PLAIN, &w));
    CHECK_OK(leat_record_write(w, "x", 1));
    CHECK_ERROR(leat_record_flush(w), RESOURCE_EXHAUSTED, "/dev/full; No space left on device");
    CHECK_ERROR(leat_record_writer_close(w), RESOURCE_EXHAUSTED, "No space left on device");
}

static void check_events(const char *path)
{
    leat_record_reader *r;
    Leat__Event *e = NULL;
    CHECK_OK(leat_record_reader_open(path, LEAT_RECORD_AUTO, &r));
    CHECK_OK(leat_event_next_message(r, &e));
    CHECK_STR(e->file_version, "brain.Event:2");
    leat_proto_free(e);
    CHECK_OK(leat_event_next_message(r, &e));
    CHECK_INT(e->what_case, LEAT__EVENT__WHAT_SUMMARY);
    CHECK_STR(e->summary->value[0]->tag, "loss");
    CHECK_NEAR(e->summary->value[0]->simple_value, 0.5, 0);
    CHECK_INT(e->step, 3);
    leat_proto_free(e);
    CHECK_OK(leat_event_next_message(r, &e));
    CHECK_INT(e->session_log->status, LEAT__SESSION_LOG__SESSION_STATUS__START);
    leat_proto_free(e);
    leat_record_reader_free(r);
}

static void events(void)
{
    check_events(theirs("events.out.tfevents.0000000001.host"));
    leat_event_writer *w, *two;
    CHECK_OK(leat_event_writer_open(here("events"), "", &w));
    CHECK_OK(leat_event_writer_open(here("events"), "", &two)); /* has another name */
    CHECK(strcmp(leat_event_writer_path(w), leat_event_writer_path(two)) != 0);
    unlink(leat_event_writer_path(two));
    CHECK_OK(leat_event_writer_close(two));
    Leat__Summary__Value value = LEAT__SUMMARY__VALUE__INIT, *values[] = {&value};
    value.tag = "loss";
    value.value_case = LEAT__SUMMARY__VALUE__VALUE_SIMPLE_VALUE;
    value.simple_value = 0.5f;
    Leat__Summary summary = LEAT__SUMMARY__INIT;
    summary.n_value = 1;
    summary.value = values;
    Leat__Event e = LEAT__EVENT__INIT;
    e.step = 3;
    e.what_case = LEAT__EVENT__WHAT_SUMMARY;
    e.summary = &summary;
    CHECK_OK(leat_event_write(w, &e));
    Leat__SessionLog log = LEAT__SESSION_LOG__INIT;
    log.status = LEAT__SESSION_LOG__SESSION_STATUS__START;
    e = (Leat__Event)LEAT__EVENT__INIT;
    e.what_case = LEAT__EVENT__WHAT_SESSION_LOG;
    e.session_log = &log;
    CHECK_OK(leat_event_write(w, &e));
    CHECK_OK(leat_event_flush(w));
    char path[512];
    snprintf(path, 512, "%s", leat_event_writer_path(w));
    check_events(path);
    CHECK_OK(leat_event_writer_close(w));
    unlink(path);
}

int main(int argc, char **argv)
{
    return RUN(argc, argv, {"records", records}, {"broken", broken}, {"full_disk", full_disk},
               {"events", events});
}
