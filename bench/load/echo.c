/* The mode serve-echo. */
#include "load.h"
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

/* It knows just enough MQTT to be talked to: it answers CONNECT, SUBSCRIBE and QoS 1 PUBLISH, and
 * copies what a QoS 0 publisher sends byte for byte and unparsed, the k-th publisher to the k-th
 * subscriber (modulo their number), whatever the topics. It is the yardstick for the generator's
 * own ceiling, and for what the kernel alone costs a message when reads and writes are batched
 * perfectly. */
struct peer {
    int fd, is_pub;
    u32 no;
    u8 *out;
    u32 outlen, outoff, outcap;
};

static void peer_write(struct peer *s)
{
    while (s->outoff < s->outlen) {
        ssize_t n = write(s->fd, s->out + s->outoff, s->outlen - s->outoff);
        if (n <= 0) {
            if (n < 0 && errno == EAGAIN) {
                struct pollfd pf = {s->fd, POLLOUT, 0};
                poll(&pf, 1, 100);
                continue;
            }
            break;
        }
        s->outoff += (u32)n;
    }
    s->outoff = s->outlen = 0;
}

static void peer_put(struct peer *s, const void *p, u32 n)
{
    if (s->outlen + n > s->outcap) {
        s->outcap = (s->outlen + n) * 2;
        s->out = grow(s->out, s->outcap);
    }
    memcpy(s->out + s->outlen, p, n);
    s->outlen += n;
}

static struct peer *peers[65536]; /* by descriptor */
static struct peer *sinks[65536];
static u32 sink_count, publisher_count, alive;

static struct peer *sink_of(const struct peer *p)
{
    return sink_count ? sinks[p->no % sink_count] : NULL;
}

static int watch(int fd)
{
    struct epoll_event ev = {.events = EPOLLIN, .data.fd = fd};
    return epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &ev);
}

static int listen_here(void)
{
    int fd = socket(AF_INET, SOCK_STREAM, 0), one = 1;
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons((u16)options.port)};
    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (bind(fd, (void *)&a, sizeof a) || listen(fd, 1024)) die("listen: %s", strerror(errno));
    watch(fd);
    return fd;
}

static void welcome(int listener)
{
    int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK), one = 1;
    if (fd < 0) return;
    alive++;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    if (!peers[fd]) peers[fd] = allocate(sizeof(struct peer));
    peers[fd]->fd = fd;
    peers[fd]->is_pub = 0;
    peers[fd]->outlen = peers[fd]->outoff = 0;
    watch(fd);
}

/* One packet of so many bytes, with its body at b, of somebody who may not be copied blindly. */
static void answer(struct peer *p, const u8 *packet, const u8 *b, u32 size)
{
    u8 type = packet[0] >> 4;
    if (type == 1) {
        u8 ack[5] = {0x20, 2, 0, 0, 0};
        int v5 = b[6] == 5;
        ack[1] = (u8)(2 + v5);
        peer_put(p, ack, 4 + (u32)v5);
    } else if (type == 8) {
        u8 ack[5] = {0x90, 3, b[0], b[1], 0};
        peer_put(p, ack, 5);
        sinks[sink_count++] = p;
    } else if (type == 3) {
        u32 tl = get_u16(b);
        u8 ack[4] = {0x40, 2, b[2 + tl], b[3 + tl]};
        struct peer *sink = sink_of(p);
        peer_put(p, ack, 4);
        if (sink) peer_put(sink, packet, size);
    }
}

/* What was read of a peer, up to the first message of a QoS 0 publisher and all behind it. */
static void parse(struct peer *p, u32 got)
{
    u32 at = 0;
    struct peer *sink;
    while (at + 2 <= got) {
        u32 rl, vn = get_varint(input + at + 1, input + got, &rl);
        if (input[at] >> 4 == 3 && !(input[at] & 6)) { /* QoS 0 publisher from here on */
            p->is_pub = 1;
            p->no = publisher_count++;
            sink = sink_of(p);
            if (sink) peer_put(sink, input + at, got - at);
            break;
        }
        if (!vn || at + 1 + vn + rl > got) break;
        answer(p, input + at, input + at + 1 + vn, 1 + vn + rl);
        at += 1 + vn + rl;
    }
    peer_write(p);
    sink = sink_of(p);
    if (sink && sink != p) peer_write(sink);
}

static void take(int fd)
{
    struct peer *p = peers[fd];
    ssize_t got = read(fd, input, 256u << 10);
    if (got < 0 && errno == EAGAIN) return;
    if (got <= 0) {
        close(fd);
        if (!--alive) sink_count = publisher_count = 0;
    } else if (p->is_pub) { /* hot path: copy bytes, no parsing */
        struct peer *sink = sink_of(p);
        if (sink) {
            struct peer t = {.fd = sink->fd, .out = input, .outlen = (u32)got};
            peer_write(&t);
        }
    } else {
        parse(p, (u32)got);
    }
}

void mode_serve(void)
{
    int listener = listen_here();
    struct epoll_event evs[256];
    for (;;) {
        int i, n = epoll_wait(epoll, evs, 256, -1);
        for (i = 0; i < n; i++) {
            if (evs[i].data.fd == listener) welcome(listener);
            else take(evs[i].data.fd);
        }
    }
}
