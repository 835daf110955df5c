/* delay_link.c -- a network switch whose links have a delay, for benchmarks between network
 * namespaces. Not all Linux kernels have netem; nearly all have TUN/TAP devices.
 *
 *     delay_link MILLISECONDS NAMESPACE...
 *
 * Makes a TAP device named "link" in each of the named network namespaces (ip netns), prints
 * "ready", and carries every Ethernet frame from the device that sent it to the device that it is
 * addressed to, MILLISECONDS later. Order is kept, and no frame is dropped unless the queue is
 * full. The program runs until it is killed; its devices end with it. It needs root.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/if.h>
#include <linux/if_tun.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

enum {
    MOST_PORTS = 16,
    FRAME = 1600,    /* bytes: an MTU of 1500 and the Ethernet header */
    QUEUE = 1 << 15, /* frames under way; 52 MB. Above that, frames are dropped */
    BATCH = 64,      /* most frames that are read from one device before the next device is read */
    ETHERNET_BYTES = 6, /* length of an address; a frame begins with those of receiver and sender */
};

typedef struct frame {
    int64_t due_ns;
    int from, n; /* the port that sent the frame; its bytes */
    uint8_t bytes[FRAME];
} frame;

static struct pollfd ports[MOST_PORTS];
static uint8_t addresses[MOST_PORTS]
                        [ETHERNET_BYTES]; /* the sender's address in the last frame of each port */
static int n_ports;
static frame *queue; /* a ring: frames first .. last - 1, modulo QUEUE, in order of due_ns */
static uint64_t first, last;

static int64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* The file of a new TAP device in that namespace; -1 after an error, which is printed to stderr. */
static int open_port(const char *namespace)
{
    char path[256];
    struct ifreq r = {.ifr_flags = IFF_TAP | IFF_NO_PI, .ifr_name = "link"};
    snprintf(path, sizeof(path), "/run/netns/%s", namespace);
    int ns = open(path, O_RDONLY | O_CLOEXEC), fd = -1;
    /* A device is made in the namespace in which its file was opened. */
    if (ns >= 0 && setns(ns, CLONE_NEWNET) == 0)
        fd = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0 || ioctl(fd, TUNSETIFF, &r) != 0) {
        fprintf(stderr, "delay_link: no TAP device in network namespace %s (%s): %s\n", namespace,
                ns < 0 ? path : "/dev/net/tun", strerror(errno));
        return -1;
    }
    close(ns);
    return fd;
}

static void take_frames(int port, int64_t delay_ns)
{
    for (int i = 0; i < BATCH; i++) {
        static uint8_t lost[FRAME]; /* a frame for which the queue has no room */
        bool full = last - first == QUEUE;
        frame *f = &queue[last % QUEUE];
        ssize_t n = read(ports[port].fd, full ? lost : f->bytes, FRAME);
        if (n < 2 * ETHERNET_BYTES)
            return;
        if (full)
            continue;
        memcpy(addresses[port], f->bytes + ETHERNET_BYTES, ETHERNET_BYTES);
        f->due_ns = now_ns() + delay_ns;
        f->from = port;
        f->n = (int)n;
        last++;
    }
}

/* Sends to the port that has this address; frames to unknown and group addresses go to all
 * ports. */
static void deliver(const frame *f)
{
    int only = -1;
    for (int i = 0; i < n_ports; i++)
        if (memcmp(addresses[i], f->bytes, ETHERNET_BYTES) == 0)
            only = i;
    for (int i = 0; i < n_ports; i++)
        if (i != f->from && (only < 0 || i == only) &&
            write(ports[i].fd, f->bytes, (size_t)f->n) < 0)
            continue; /* the device is down, or its queue is full: Ethernet may lose frames */
}

static void carry(int64_t delay_ns)
{
    for (;;) {
        int64_t now = now_ns();
        for (; first < last && queue[first % QUEUE].due_ns <= now; first++)
            deliver(&queue[first % QUEUE]);
        struct timespec wait = {.tv_sec = 1};
        if (first < last) {
            int64_t ns = queue[first % QUEUE].due_ns - now;
            wait = (struct timespec){ns / 1000000000, ns % 1000000000};
        }
        if (ppoll(ports, (nfds_t)n_ports, &wait, NULL) > 0)
            for (int i = 0; i < n_ports; i++)
                if (ports[i].revents)
                    take_frames(i, delay_ns);
    }
}

int main(int argc, char **argv)
{
    if (argc < 4 || argc - 2 > MOST_PORTS || atof(argv[1]) < 0) {
        fprintf(stderr, "usage: delay_link MILLISECONDS NAMESPACE NAMESPACE...\n");
        return 2;
    }
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    queue = malloc(sizeof(frame) * QUEUE);
    if (!queue)
        return 1;
    for (; n_ports < argc - 2; n_ports++) {
        ports[n_ports] = (struct pollfd){.fd = open_port(argv[n_ports + 2]), .events = POLLIN};
        if (ports[n_ports].fd < 0)
            return 1;
    }
    printf("ready\n");
    fflush(stdout);
    carry((int64_t)(atof(argv[1]) * 1e6));
    return 0;
}
