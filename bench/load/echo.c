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
    int fd, is_sub, is_pub;
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

void mode_serve(void)
{
    int ls = socket(AF_INET, SOCK_STREAM, 0), one = 1;
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons((u16)options.port)};
    static struct peer *tab[65536], *sinks[65536];
    u32 nsinks = 0, npubs = 0, alive = 0;
    struct epoll_event ev, evs[256];
    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    setsockopt(ls, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (bind(ls, (void *)&a, sizeof a) || listen(ls, 1024)) die("listen: %s", strerror(errno));
    ev.events = EPOLLIN;
    ev.data.fd = ls;
    epoll_ctl(epoll, EPOLL_CTL_ADD, ls, &ev);
    for (;;) {
        int i, n = epoll_wait(epoll, evs, 256, -1);
        for (i = 0; i < n; i++) {
            int fd = evs[i].data.fd;
            struct peer *p, *sub;
            ssize_t got;
            if (fd == ls) {
                int c = accept4(ls, NULL, NULL, SOCK_NONBLOCK);
                if (c < 0) continue;
                alive++;
                setsockopt(c, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
                if (!tab[c]) tab[c] = allocate(sizeof(struct peer));
                tab[c]->fd = c;
                tab[c]->is_sub = tab[c]->is_pub = 0;
                tab[c]->outlen = tab[c]->outoff = 0;
                ev.events = EPOLLIN;
                ev.data.fd = c;
                epoll_ctl(epoll, EPOLL_CTL_ADD, c, &ev);
                continue;
            }
            p = tab[fd];
            got = read(fd, input, 256u << 10);
            if (got <= 0) {
                if (got < 0 && errno == EAGAIN) continue;
                close(fd);
                if (!--alive) nsinks = npubs = 0;
                continue;
            }
            sub = nsinks ? sinks[p->no % nsinks] : NULL;
            if (p->is_pub) { /* hot path: copy bytes, no parsing */
                if (sub) {
                    struct peer t = {.fd = sub->fd, .out = input, .outlen = (u32)got};
                    peer_write(&t);
                }
                continue;
            }
            {
                u32 at = 0;
                while (at + 2 <= (u32)got) {
                    u32 rl, vn = get_varint(input + at + 1, input + got, &rl);
                    const u8 *b = input + at + 1 + vn;
                    u8 t = input[at] >> 4;
                    if (t == 3 && !(input[at] & 6)) { /* QoS 0 publisher from here on */
                        p->is_pub = 1;
                        p->no = npubs++;
                        sub = nsinks ? sinks[p->no % nsinks] : NULL;
                        if (sub) {
                            peer_put(sub, input + at, (u32)got - at);
                            peer_write(sub);
                        }
                        break;
                    }
                    if (!vn || at + 1 + vn + rl > (u32)got) break;
                    if (t == 1) {
                        u8 ack[5] = {0x20, 2, 0, 0, 0};
                        int v5 = b[6] == 5;
                        ack[1] = (u8)(2 + v5);
                        peer_put(p, ack, 4 + (u32)v5);
                    } else if (t == 8) {
                        u8 ack[5] = {0x90, 3, b[0], b[1], 0};
                        peer_put(p, ack, 5);
                        sinks[nsinks++] = p;
                        p->is_sub = 1;
                    } else if (t == 3) {
                        u32 tl = get_u16(b);
                        u8 ack[4] = {0x40, 2, b[2 + tl], b[3 + tl]};
                        peer_put(p, ack, 4);
                        if (sub) peer_put(sub, input + at, 1 + vn + rl);
                    }
                    at += 1 + vn + rl;
                }
                peer_write(p);
                if (sub && sub != p) peer_write(sub);
            }
        }
    }
}
