/* Non-blocking connections and the loop that serves them. */
#include "load.h"
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#define MAX_EVENTS 1024
#define PORTS 20000 /* connections from one address of 127/8 */

struct connection **connections;
u32 connection_count, pending_connects;
int epoll;
u64 received_at;
u8 input[INPUT];
static u32 connection_capacity, dialled;

u8 *reserve(struct connection *c, u32 n)
{
    if (c->out_offset && c->out_offset == c->out_length) c->out_offset = c->out_length = 0;
    if (c->out_length + n > c->out_capacity) {
        if (c->out_offset) {
            memmove(c->out, c->out + c->out_offset, c->out_length - c->out_offset);
            c->out_length -= c->out_offset;
            c->out_offset = 0;
        }
        if (c->out_length + n > c->out_capacity) {
            u32 cap = c->out_capacity ? c->out_capacity : 512;
            while (cap < c->out_length + n) cap *= 2;
            c->out = grow(c->out, cap);
            c->out_capacity = cap;
        }
    }
    return c->out + c->out_length;
}

void append(struct connection *c, const void *p, u32 n)
{
    memcpy(reserve(c, n), p, n);
    c->out_length += n;
}

static void arm(struct connection *c, int out)
{
    struct epoll_event ev = {.events = EPOLLIN | (out ? EPOLLOUT : 0), .data.ptr = c};
    if (c->want_out == out) return;
    c->want_out = (u8)out;
    epoll_ctl(epoll, EPOLL_CTL_MOD, c->fd, &ev);
}

void close_connection(struct connection *c)
{
    if (c->state == DEAD) return;
    if (c->state < UP) {
        pending_connects--;
        totals.refused++;
    } else
        totals.disconnects++;
    c->state = DEAD;
    close(c->fd);
    c->fd = -1;
    dirty = 1;
    if (c->role == CHURN) churn_closed(c);
    if (c->role == DEVICE) device_closed(c);
}

void flush(struct connection *c)
{
    while (c->out_offset < c->out_length && c->state != DEAD) {
        ssize_t n = write(c->fd, c->out + c->out_offset, c->out_length - c->out_offset);
        totals.writes++;
        if (n > 0) {
            c->out_offset += (u32)n;
            continue;
        }
        if (n < 0 && errno == EINTR) continue;
        if (n < 0 && (errno == EAGAIN || errno == ENOTCONN)) {
            arm(c, 1);
            return;
        }
        close_connection(c);
        return;
    }
    if (c->state == DEAD) return;
    c->out_offset = c->out_length = 0;
    if (c->want_out) arm(c, 0);
}

static void on_readable(struct connection *c)
{
    for (;;) {
        u32 have = c->stash_len, at = 0;
        ssize_t n;
        if (have) memcpy(input, c->stash, have);
        n = read(c->fd, input + have, INPUT - have);
        totals.reads++;
        if (n <= 0) {
            if (n < 0 && (errno == EAGAIN || errno == EINTR)) break;
            close_connection(c);
            return;
        }
        received_at = now_ns();
        have += (u32)n;
        c->stash_len = 0;
        while (have - at >= 2) {
            u32 rl, vn = get_varint(input + at + 1, input + have, &rl);
            if (!vn) {
                if (have - at >= 5) {
                    close_connection(c);
                    return;
                }
                break;
            }
            if (have - at < 1 + vn + rl) break;
            on_packet(c, input[at], input + at + 1 + vn, rl);
            if (c->state == DEAD) return;
            at += 1 + vn + rl;
        }
        if (at < have) {
            u32 left = have - at;
            if (left > c->stash_cap) {
                c->stash = grow(c->stash, left + 64);
                c->stash_cap = left + 64;
            }
            memcpy(c->stash, input + at, left);
            c->stash_len = left;
            if (left == INPUT) die("packet larger than the receive buffer");
        }
        if (have < INPUT) break;
    }
    if (c->out_offset < c->out_length) flush(c);
}

void loop_once_ns(int64_t timeout_ns)
{
    static struct epoll_event ev[MAX_EVENTS];
    struct timespec ts = {timeout_ns / 1000000000, timeout_ns % 1000000000};
    int i, n = epoll_pwait2(epoll, ev, MAX_EVENTS, &ts, NULL);
    if (n < 0 && errno == ENOSYS)
        n = epoll_wait(epoll, ev, MAX_EVENTS, (int)((timeout_ns + 999999) / 1000000));
    for (i = 0; i < n; i++) {
        struct connection *c = ev[i].data.ptr;
        if (c->state == DEAD) continue;
        if (c->state == DIALLED && (ev[i].events & (EPOLLOUT | EPOLLERR | EPOLLHUP))) {
            int err = 0;
            socklen_t sl = sizeof err;
            getsockopt(c->fd, SOL_SOCKET, SO_ERROR, &err, &sl);
            if (err) {
                close_connection(c);
                continue;
            }
            c->state = CONNECTING;
            flush(c);
            continue;
        }
        if (ev[i].events & (EPOLLIN | EPOLLHUP | EPOLLERR)) on_readable(c);
        if (c->state != DEAD && (ev[i].events & EPOLLOUT)) {
            flush(c);
            dirty = 1;
        }
    }
}

void loop_once(int timeout_ms)
{ loop_once_ns((int64_t)timeout_ms * 1000000); }

/* Connect, and send CONNECT; what the connection had before is forgotten. */
void open_connection(struct connection *c, const char *id)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons((u16)options.port)};
    struct epoll_event ev = {.events = EPOLLIN | EPOLLOUT, .data.ptr = c};
    int one = 1;
    if (inet_pton(AF_INET, options.host, &a.sin_addr) != 1) die("--host must be an IPv4 address");
    c->state = DIALLED;
    c->want_out = 1;
    c->steps = 0;
    c->out_length = c->out_offset = c->stash_len = 0;
    c->fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (c->fd < 0) die("socket: %s", strerror(errno));
    setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    if (dialled >= PORTS && (ntohl(a.sin_addr.s_addr) >> 24) == 127) {
        struct sockaddr_in s = {.sin_family = AF_INET};
        s.sin_addr.s_addr = htonl(0x7f000001u + dialled / PORTS % 200);
        setsockopt(c->fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &one, sizeof one);
        if (bind(c->fd, (void *)&s, sizeof s) < 0) die("bind: %s", strerror(errno));
    }
    dialled++;
    send_connect(c, id);
    pending_connects++;
    if (connect(c->fd, (void *)&a, sizeof a) < 0 && errno != EINPROGRESS) {
        close_connection(c);
        return;
    }
    if (epoll_ctl(epoll, EPOLL_CTL_ADD, c->fd, &ev) < 0) die("epoll_ctl: %s", strerror(errno));
}

struct connection *dial(int role, u32 idx, const char *id, int persistent)
{
    struct connection *c = allocate(sizeof *c);
    c->role = (u8)role;
    c->idx = idx;
    c->persistent = (u8)persistent;
    if (connection_count == connection_capacity) {
        connection_capacity = connection_capacity ? connection_capacity * 2 : 64;
        connections = grow(connections, connection_capacity * sizeof *connections);
    }
    connections[connection_count++] = c;
    open_connection(c, id);
    return c;
}

void settle(const char *what)
{
    u64 t0 = now_ns();
    while (pending_connects) {
        loop_once(100);
        if ((double)(now_ns() - t0) > options.setup_timeout * 1e9)
            die("timeout while waiting for %s", what);
    }
    if (totals.refused) die("%s: %llu connection(s) refused or dropped", what, LL(totals.refused));
}

void wait_for_subacks(u64 want)
{
    u64 t0 = now_ns(), last = totals.subscribed + totals.subscribe_failed, tl = t0;
    while (totals.subscribed + totals.subscribe_failed < want) {
        loop_once(100);
        if (totals.disconnects)
            die("broker closed a connection while subscribing (%llu of %llu acknowledged)",
                LL(totals.subscribed + totals.subscribe_failed), LL(want));
        if (totals.subscribed + totals.subscribe_failed != last) {
            last = totals.subscribed + totals.subscribe_failed;
            tl = now_ns();
        }
        if (now_ns() - tl > 30 * SECOND || (double)(now_ns() - t0) > options.setup_timeout * 1e9)
            die("timeout while waiting for SUBACK (%llu of %llu)",
                LL(totals.subscribed + totals.subscribe_failed), LL(want));
    }
}

/* DISCONNECT, then wait until the broker has closed its side as well. */
void hang_up(struct connection *c)
{
    u64 t = now_ns(), before = totals.disconnects;
    send_disconnect(c);
    if (c->state != DEAD) shutdown(c->fd, SHUT_WR);
    while (c->state != DEAD && now_ns() - t < SECOND) loop_once(20);
    close_connection(c);
    totals.disconnects = before; /* asked for */
}
