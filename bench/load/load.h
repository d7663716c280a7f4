/*
 * The load generator of the benchmarks: MQTT 3.1.1 and 5.0, one thread, epoll, the C library alone.
 *
 *   - Outgoing PUBLISH packets are stamped from a template of each publisher into chunks of 64 KiB,
 *     each written with one write(); up to 1 MiB is read at a time and parsed in place. So the
 *     generator needs a fraction of a system call for a message where the broker batches too.
 *   - Every payload begins with run, publisher, sequence number and time. A subscriber keeps a
 *     bitmap for each publisher: losses, duplicates and re-ordering are counted exactly.
 *   - End-to-end flow control: of a publisher's messages never more than window / publishers are on
 *     their way, so a broker that throws QoS 0 away gains nothing (the generator waits a second,
 *     then writes off what is missing).
 *   - With --rate the time in the payload is when the message was DUE, not when it was written: a
 *     broker that makes the generator wait is charged for it (no co-ordinated omission).
 */
#ifndef LOAD_H
#define LOAD_H
#define _GNU_SOURCE
#include <stdint.h>
#include <stddef.h>
#include <time.h>

#define INPUT (1u << 20)  /* bytes read at a time; also the largest packet */
#define CHUNK (64u << 10) /* bytes gathered for one write */
#define STAMP 24u         /* bytes of each payload that the generator uses itself */
#define RECENT 4096u      /* messages of a publisher that may be on their way */
#define SECOND 1000000000ull
#define LL(x) ((unsigned long long)(x))

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;

enum mode {
    MODE_PAIR,
    MODE_FANIN,
    MODE_FANOUT,
    MODE_RETAINED,
    MODE_ENQUEUE,
    MODE_DRAIN,
    MODE_IDLE,
    MODE_CHURN,
    MODE_PLAN,
    MODE_SERVE
};
extern const char *const mode_names[];

struct options {
    const char *host, *prefix, *plan;
    int port, version, mode, qos, subscriber_qos, retain;
    u32 aliases, cycle;
    u32 publishers, subscribers, payload, inflight, connections, parallel;
    u32 extra_connections, subscribe_batch, run_id;
    u64 messages, window, extra_subscriptions;
    double rate, max_seconds, hold, stall, drain_timeout, setup_timeout, warmup;
    int sync, quiet, spin, persistent;
};
extern struct options options;

enum role { PUBLISHER, SUBSCRIBER, EXTRA, IDLE, CHURN, DEVICE };
enum state { NEW, DIALLED, CONNECTING, UP, DEAD };

struct connection {
    int fd;
    u8 role, state, want_out, persistent, session_present, steps;
    u32 idx;
    u8 *out; /* what is to be written: out[out_offset..out_length] */
    u32 out_length, out_offset, out_capacity;
    u8 *stash; /* the beginning of a packet that was cut */
    u32 stash_len, stash_cap;
    u32 receive_maximum, alias_maximum; /* the broker's */
    u64 extra_next, extra_end; /* extra subscriptions that this connection still has to make */
    u8 *unreleased;            /* packet identifiers of QoS 2 without PUBREL, as bits */
};

struct publisher {
    struct connection *c;
    u64 seq, quota;
    int64_t outstanding; /* deliveries expected and not seen yet; plan: messages with such */
    u32 inflight, inflight_most;
    u16 *missing; /* plan: deliveries that a message still needs, by its number modulo RECENT */
    u16 *ring; /* free packet identifiers, first in, first out */
    u32 rhead, rtail;
    u8 *packet_id_state; /* 0 free, 1 published, 2 released */
    u8 *template;
    u32 len, packet_id_offset, payload_offset;
};

struct stream { /* what one subscriber got from one publisher */
    u8 *bits;
    u64 cap; /* bits allocated */
    u64 next, unique;
};

struct topic { /* of one publisher */
    char *name;
    u32 length, receivers, away; /* deliveries that a message has, at once and later */
    u8 aliased;                  /* whether the broker knows its alias */
};

struct sample { /* the rest of a payload */
    char *text;
    u32 length, receivers; /* deliveries by a $where */
};

struct source { /* what a publisher publishes */
    u32 first, count; /* its topics */
    u64 state;        /* of its random choices */
    u8 random, fresh, content_type, expiry;
};

struct name {
    u8 *text;
    u32 length;
};

struct receiver { /* what a subscriber should get */
    struct connection *c;
    char **filters, *where;
    u32 filter_count, counted_with; /* the first of those that share its messages */
    u8 *topics, *samples;           /* that it gets, as bits; samples only with a $where */
    u32 *next;                      /* of each topic the least number that is in order */
    struct name *names;             /* by alias */
    u8 persistent, away, shares;
};

struct totals {
    u64 sent, expected, delivered, unique, duplicates, reordered, misrouted, foreign, acked;
    u64 reason_errors, ack_errors, disconnects, stalls, written_off, behind;
    u64 subscribed, subscribe_failed, connected, refused, cycles;
    u64 reads, writes, bytes, owed;
    u64 t_first, t_last, t_last_ack;
};
extern struct totals totals;

extern struct connection **connections;
extern u32 connection_count, pending_connects;
extern struct publisher *publishers;
extern struct connection **subscribers;
extern struct stream *streams;
extern u32 streams_each; /* streams of one subscriber */
extern u32 fanout;       /* deliveries that a message should have */
extern int epoll;
extern int dirty;       /* something moved since the publishers were last served */
extern u64 received_at; /* when the bytes at hand were read */
extern u8 input[INPUT];

static inline u64 now_ns(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (u64)ts.tv_sec * SECOND + (u64)ts.tv_nsec;
}

static inline void put_u16(u8 *d, u32 v)
{
    d[0] = (u8)(v >> 8);
    d[1] = (u8)v;
}
static inline void set_bit(u8 *bits, u64 i)
{ bits[i >> 3] |= (u8)(1u << (i & 7)); }
static inline int get_bit(const u8 *bits, u64 i)
{ return bits[i >> 3] >> (i & 7) & 1; }
static inline u32 get_u16(const u8 *s)
{ return (u32)s[0] << 8 | s[1]; }

/* support.c */
void die(const char *fmt, ...) __attribute__((noreturn, format(printf, 1, 2)));
void note(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
double cpu_seconds(void);
double per_sec(u64 n, u64 t0, u64 t1);
void *allocate(size_t n); /* zeroed */
void *grow(void *p, size_t n);
void wait_go(const char *phase);

/* latency.c */
extern u64 latency_from; /* messages due before this moment are left out */
void add_latency(u64 ns);
void print_latency(void);

/* connection.c */
u8 *reserve(struct connection *c, u32 n);
void append(struct connection *c, const void *p, u32 n);
void flush(struct connection *c);
void close_connection(struct connection *c);
void open_connection(struct connection *c, const char *id);
struct connection *dial(int role, u32 idx, const char *id, int persistent);
void hang_up(struct connection *c);
void loop_once(int timeout_ms);
void loop_once_ns(int64_t timeout_ns);
void settle(const char *what);
void wait_for_subacks(u64 want);

/* packets_out.c */
u32 put_varint(u8 *d, u32 v);
void send_connect(struct connection *c, const char *id);
void send_subscribe(struct connection *c, u32 packet_id, const char *const *filters, u32 n,
                    int qos);
void send_subscribe_where(struct connection *c, u32 packet_id, const char *const *filters, u32 n,
                          int qos, const char *where);
void send_disconnect(struct connection *c);
void send_ack(struct connection *c, u8 type, u32 packet_id);
void topic_of(char *d, size_t n, u32 i);
u32 publish_packet(u8 **packet, const char *topic, int qos, int retain, u32 idx,
                   u32 *packet_id_offset);
void make_template(struct publisher *p, const char *topic, int qos, int retain, u32 idx);
void init_publisher(struct publisher *p, struct connection *c, int qos);
void emit(struct publisher *p, u64 ts);
void free_packet_id(struct publisher *p, u32 packet_id);
void extra_more(struct connection *c);

/* packets_in.c */
u32 get_varint(const u8 *s, const u8 *end, u32 *v);
int is_new(struct stream *s, u64 seq);
void on_packet(struct connection *c, u8 h, const u8 *b, u32 len);

/* traffic.c */
void dial_extras(void);
void make_publishers(int qos, int retain);
u64 due_at(u64 number);
void run_traffic(int qos, int nobody_receives);
void report_traffic(int qos, double cpu);

/* plan.c */
extern struct topic *topics;
extern struct sample *samples;
extern struct source *sources;
extern struct receiver *receivers;
extern u32 topic_count, sample_count, source_count, receiver_count;
void read_plan(void);

/* messages.c */
void emit_planned(struct publisher *p);
void check_planned(struct connection *c, const u8 *name, u32 name_length, u32 alias,
                   const u8 *payload, u32 length);

/* devices.c */
void make_devices(void);
void run_devices(void);
void device_up(struct connection *c);
void device_answered(struct connection *c);
void device_closed(struct connection *c);

/* a mode each */
void mode_traffic(void);
void mode_retained(void);
void mode_enqueue(void);
void mode_drain(void);
void mode_idle(void);
void mode_churn(void);
void mode_plan(void);
void churn_step(struct connection *c, u8 type, const u8 *payload, u32 len);
void churn_closed(struct connection *c);
void mode_serve(void);

#endif
