/* launch_output.c -- prints the tasks' output line by line, each behind its task's name, and the
 * status line. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "launch.h"

static const char *const colours[] = {"\033[36m", "\033[33m", "\033[32m",
                                      "\033[35m", "\033[34m", "\033[31m"};

static void prefix(const launch *l, const launch_task *t, FILE *to)
{
    const char *colour = colours[(size_t)(t - l->tasks) % (sizeof(colours) / sizeof(*colours))];
    if (l->colour)
        fprintf(to, "%s[%s]\033[0m ", colour, t->label);
    else
        fprintf(to, "[%s] ", t->label);
}

static void keep(launch_task *t, const char *text, size_t n)
{
    char **at = &t->tail[t->n_tail++ % LAUNCH_TAIL];
    free(*at);
    *at = strndup(text, n);
}

static void print(launch *l, launch_task *t, int stream, const char *text, size_t n)
{
    FILE *to = stream ? stderr : stdout;
    launch_progress_clear(l);
    prefix(l, t, to);
    fwrite(text, 1, n, to);
    fputc('\n', to);
    keep(t, text, n);
}

/* Prints the whole lines that were read. A carriage return ends a line, too: programs rewrite their
 * progress with it. */
static void take_lines(launch *l, launch_task *t, int stream, bool all)
{
    launch_line *line = &t->streams[stream];
    size_t begin = 0;
    for (size_t i = 0; i < line->n; i++)
        if (line->text[i] == '\n' || line->text[i] == '\r') {
            if (i > begin || line->text[i] == '\n')
                print(l, t, stream, line->text + begin, i - begin);
            if (line->text[i] == '\r' && i + 1 < line->n && line->text[i + 1] == '\n')
                i++;
            begin = i + 1;
        }
    line->n -= begin;
    memmove(line->text, line->text + begin, line->n);
    if (line->n && (all || line->n == LAUNCH_LINE_MAX)) {
        print(l, t, stream, line->text, line->n);
        line->n = 0;
    }
    FILE *to = stream ? stderr : stdout;
    if (fflush(to) != 0)
        l->broken = true;
}

bool launch_read(launch *l, launch_task *t, int stream)
{
    launch_line *line = &t->streams[stream];
    if (!line->text)
        line->text = cli_array(LAUNCH_LINE_MAX, 1);
    ssize_t got = read(line->fd, line->text + line->n, LAUNCH_LINE_MAX - line->n);
    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return false;
    if (got <= 0) {
        close(line->fd);
        line->fd = -1;
    } else {
        line->n += (size_t)got;
    }
    take_lines(l, t, stream, got <= 0);
    return got > 0;
}

/* The task's group is dead, so the stream ends, unless a process that has left the group holds the
 * pipe. */
void launch_drain(launch *l, launch_task *t)
{
    for (int s = 0; s < 2; s++) {
        launch_line *line = &t->streams[s];
        for (int i = 0; line->fd >= 0 && i < 1000 && launch_read(l, t, s); i++)
            ;
        if (line->fd >= 0) {
            if (line->text)
                take_lines(l, t, s, true);
            close(line->fd);
            line->fd = -1;
        }
    }
}

void launch_say(launch *l, const char *fmt, ...)
{
    va_list ap;
    launch_progress_clear(l);
    va_start(ap, fmt);
    fprintf(stderr, "leat launch: ");
    vfprintf(stderr, fmt, ap);
    fprintf(stderr, "\n");
    va_end(ap);
}

void launch_print_tail(launch *l, const launch_task *t)
{
    int first = t->n_tail > LAUNCH_TAIL ? t->n_tail - LAUNCH_TAIL : 0;
    launch_progress_clear(l);
    for (int i = first; i < t->n_tail; i++)
        fprintf(stderr, "    %s\n", t->tail[i % LAUNCH_TAIL]);
}

/* ---- The status line ---- */

void launch_progress_clear(launch *l)
{
    if (!l->drawn)
        return;
    fprintf(stderr, "\r\033[K");
    fflush(stderr);
    l->drawn = false;
}

static int width(void)
{
    struct winsize w;
    return ioctl(STDERR_FILENO, TIOCGWINSZ, &w) == 0 && w.ws_col > 20 ? w.ws_col - 1 : 79;
}

/* Prints the end of a line, where the numbers are, if there is no room for all of it. Gives the
 * number of columns. */
static int put_last(char *to, int room, const char *text)
{
    int n = (int)strlen(text);
    if (room < 4)
        return 0;
    if (n <= room)
        return snprintf(to, (size_t)room + 1, "%s", text);
    text += n - (room - 2);
    while ((*text & 0xc0) == 0x80) /* do not start within a UTF-8 character */
        text++;
    return snprintf(to, (size_t)room + 1, "..%s", text);
}

void launch_progress(launch *l)
{
    double now = launch_now();
    if (!l->live || now - l->redrawn < 0.2)
        return;
    l->redrawn = now;
    int running = 0, shown = 0;
    for (int i = 0; i < l->n; i++) {
        running += !l->tasks[i].ended;
        shown += !l->tasks[i].passive && l->tasks[i].n_tail > 0;
    }
    int room = width(), seconds = (int)(now - l->began);
    char line[1024];
    int n = snprintf(line, sizeof(line), "%d of %d tasks run, %d:%02d", running, l->n, seconds / 60,
                     seconds % 60);
    int each = shown ? (room - n) / shown : 0;
    for (int i = 0; i < l->n && each > 16 && n + each < (int)sizeof(line); i++) {
        const launch_task *t = &l->tasks[i];
        if (t->passive || !t->n_tail)
            continue;
        n += snprintf(line + n, (size_t)each, " | %s: ", t->label);
        n += put_last(line + n, each - 5 - (int)strlen(t->label),
                      t->tail[(t->n_tail - 1) % LAUNCH_TAIL]);
    }
    for (int i = 0; i < n; i++)
        if ((unsigned char)line[i] < ' ')
            line[i] = ' ';
    fprintf(stderr, "\r\033[K%.*s", n < room ? n : room, line);
    fflush(stderr);
    l->drawn = true;
}
