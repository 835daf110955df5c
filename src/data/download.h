/* download.h -- files from the network, by libcurl, which is loaded when it is first needed. */
#ifndef LEAT_DATA_DOWNLOAD_H
#define LEAT_DATA_DOWNLOAD_H

#include "core/strbuf.h"

typedef struct leat_download_limits {
    size_t size;      /* bytes that the file may have at most */
    long connect_s;   /* seconds to connect */
    long stalled_s;   /* seconds in which nearly nothing came; then the download ends */
    const char *what; /* for messages: "MNIST" */
} leat_download_limits;

/* Adds the bytes of the file at `url` (http or https) to `to`, which is checked. NOT_FOUND: no
 * libcurl, or the server does not have the file; DATA_LOSS: it was cut off, or is too large;
 * DEADLINE_EXCEEDED: too slow; UNAVAILABLE: all else. Messages name the URL. */
leat_status leat_download(const char *url, const leat_download_limits *limits,
                          leat_strbuf *to) LEAT_MUST_CHECK;

#endif
