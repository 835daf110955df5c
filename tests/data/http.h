/* http.h -- a server on loopback that serves what a test gives it, whole or broken. */
#ifndef LEAT_TEST_HTTP_H
#define LEAT_TEST_HTTP_H

#include <arpa/inet.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

typedef enum http_way { HTTP_WHOLE, HTTP_CUT, HTTP_STALLED, HTTP_UNSAID } http_way;

/* What the server has. CUT: half of the bytes, then the connection ends. STALLED: half of them,
 * then nothing. UNSAID: all, without saying how many. */
typedef struct http_page {
    const char *path, *bytes;
    size_t n;
    http_way way;
} http_page;

typedef struct http_server {
    int fd, port;
    const http_page *pages;
    int n;
    atomic_int requests;
    atomic_bool end;
    pthread_t thread;
} http_server;

static inline void http_send(int fd, const void *bytes, size_t n)
{
    const char *p = bytes;
    while (n > 0) {
        ssize_t sent = send(fd, p, n, MSG_NOSIGNAL);
        if (sent <= 0)
            return;
        p += sent;
        n -= (size_t)sent;
    }
}

static inline void http_answer(http_server *h, int fd)
{
    char request[2048] = "", path[512] = "", head[256];
    size_t got = 0;
    while (got < sizeof(request) - 1 && !strstr(request, "\r\n\r\n")) {
        ssize_t n = recv(fd, request + got, sizeof(request) - 1 - got, 0);
        if (n <= 0)
            return;
        got += (size_t)n;
        request[got] = 0;
    }
    sscanf(request, "GET %511s", path);
    for (int i = 0; i < h->n; i++) {
        const http_page *p = &h->pages[i];
        if (strcmp(p->path, path) != 0)
            continue;
        if (p->way == HTTP_UNSAID)
            snprintf(head, sizeof(head), "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n");
        else
            snprintf(head, sizeof(head), "HTTP/1.1 200 OK\r\nContent-Length: %zu\r\n\r\n", p->n);
        http_send(fd, head, strlen(head));
        http_send(fd, p->bytes, p->way == HTTP_WHOLE || p->way == HTTP_UNSAID ? p->n : p->n / 2);
        while (p->way == HTTP_STALLED && !atomic_load(&h->end)) {
            char byte;
            if (recv(fd, &byte, 1, MSG_DONTWAIT) == 0) /* the client has gone */
                return;
            usleep(1000);
        }
        return;
    }
    static const char none[] = "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n";
    http_send(fd, none, sizeof(none) - 1);
}

static inline void *http_serve(void *arg)
{
    http_server *h = arg;
    for (;;) {
        int fd = accept(h->fd, NULL, NULL);
        if (fd < 0)
            return NULL;
        atomic_fetch_add(&h->requests, 1);
        http_answer(h, fd);
        close(fd);
    }
}

static inline void http_start(http_server *h, const http_page *pages, int n)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t size = sizeof(a);
    *h = (http_server){.fd = socket(AF_INET, SOCK_STREAM, 0), .pages = pages, .n = n};
    bind(h->fd, (struct sockaddr *)&a, sizeof(a));
    listen(h->fd, 8);
    getsockname(h->fd, (struct sockaddr *)&a, &size);
    h->port = ntohs(a.sin_port);
    pthread_create(&h->thread, NULL, http_serve, h);
}

static inline void http_stop(http_server *h)
{
    atomic_store(&h->end, true);
    shutdown(h->fd, SHUT_RDWR);
    pthread_join(h->thread, NULL);
    close(h->fd);
}

#endif
