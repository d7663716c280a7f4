/* What is sent: packets, templates of PUBLISH, topics and topic filters. */
#include "load.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

u32 put_varint(u8 *d, u32 v)
{
    u32 n = 0;
    do {
        u8 b = v & 127;
        v >>= 7;
        d[n++] = b | (v ? 128 : 0);
    } while (v);
    return n;
}

void send_connect(struct connection *c, const char *id)
{
    u8 b[1024], *d = b, head[8];
    u32 hn, flags = 0, n = (u32)strlen(id);
    put_u16(d, 4);
    memcpy(d + 2, "MQTT", 4);
    d += 6;
    *d++ = (u8)options.version;
    if (!c->persistent) flags |= 2;
    *d++ = (u8)flags;
    put_u16(d, 0);
    d += 2; /* keep alive off */
    if (options.version == 5) {
        u8 *properties = d++;
        if (c->persistent) {
            *d++ = 0x11;
            memset(d, 0xff, 4);
            d += 4;
        }
        if (options.aliases) {
            *d++ = 0x22;
            put_u16(d, options.aliases);
            d += 2;
        }
        *properties = (u8)(d - properties - 1);
    }
    put_u16(d, n);
    memcpy(d + 2, id, n);
    d += 2 + n;
    head[0] = 0x10;
    hn = 1 + put_varint(head + 1, (u32)(d - b));
    append(c, head, hn);
    append(c, b, (u32)(d - b));
}

/* Make the properties of a SUBSCRIBE; return their length with what says it. */
static u32 where_property(u8 *d, const char *where)
{
    static const char name[] = "$where";
    u8 text[1000];
    u32 n = where ? (u32)strlen(where) : 0, length = n ? 5 + sizeof name - 1 + n : 0, at;
    if (length > sizeof text) die("plan: where is too long");
    at = put_varint(d, length);
    if (!length) return at;
    text[0] = 0x26;
    put_u16(text + 1, sizeof name - 1);
    memcpy(text + 3, name, sizeof name - 1);
    put_u16(text + 3 + sizeof name - 1, n);
    memcpy(text + 5 + sizeof name - 1, where, n);
    memcpy(d + at, text, length);
    return at + length;
}

void send_subscribe(struct connection *c, u32 packet_id, const char *const *filters, u32 n, int qos)
{ send_subscribe_where(c, packet_id, filters, n, qos, NULL); }

/* With MQTT 5 also with the user property $where. */
void send_subscribe_where(struct connection *c, u32 packet_id, const char *const *filters, u32 n,
                          int qos, const char *where)
{
    u8 properties[1024];
    u32 i, property_length = options.version == 5 ? where_property(properties, where) : 0;
    u32 len = 2 + property_length;
    u8 head[8], *d;
    for (i = 0; i < n; i++) len += 3 + (u32)strlen(filters[i]);
    head[0] = 0x82;
    append(c, head, 1 + put_varint(head + 1, len));
    d = reserve(c, len);
    put_u16(d, packet_id);
    d += 2;
    memcpy(d, properties, property_length);
    d += property_length;
    for (i = 0; i < n; i++) {
        u32 l = (u32)strlen(filters[i]);
        put_u16(d, l);
        memcpy(d + 2, filters[i], l);
        d += 2 + l;
        *d++ = (u8)qos;
    }
    c->out_length += len;
}

void send_disconnect(struct connection *c)
{
    static const u8 p[2] = {0xe0, 0};
    if (c->state == UP) {
        append(c, p, 2);
        flush(c);
    }
}

void send_ack(struct connection *c, u8 type, u32 packet_id)
{
    u8 *d = reserve(c, 4);
    d[0] = type;
    d[1] = 2;
    put_u16(d + 2, packet_id);
    c->out_length += 4;
}

void topic_of(char *d, size_t n, u32 i)
{ snprintf(d, n, "%s/area%u/line%u/dev%u/telemetry", options.prefix, i % 7, i % 13, i); }

/* Make a PUBLISH with run and publisher in its payload; return its length. */
u32 publish_packet(u8 **packet, const char *topic, int qos, int retain, u32 idx,
                   u32 *packet_id_offset)
{
    u32 tl = (u32)strlen(topic), rl, k;
    u8 *d;
    rl = 2 + tl + (qos ? 2 : 0) + (options.version == 5) + options.payload;
    d = *packet = allocate(rl + 5);
    *d++ = (u8)(0x30 | qos << 1 | (retain ? 1 : 0));
    d += put_varint(d, rl);
    put_u16(d, tl);
    memcpy(d + 2, topic, tl);
    d += 2 + tl;
    *packet_id_offset = 0;
    if (qos) {
        *packet_id_offset = (u32)(d - *packet);
        d += 2;
    }
    if (options.version == 5) *d++ = 0;
    for (k = 0; k < options.payload; k++) d[k] = (u8)('a' + k % 26);
    memcpy(d, &options.run_id, 4);
    memcpy(d + 4, &idx, 4);
    return (u32)(d - *packet) + options.payload;
}

void make_template(struct publisher *p, const char *topic, int qos, int retain, u32 idx)
{
    free(p->template);
    p->len = publish_packet(&p->template, topic, qos, retain, idx, &p->packet_id_offset);
    p->payload_offset = p->len - options.payload;
}

void init_publisher(struct publisher *p, struct connection *c, int qos)
{
    u32 i;
    p->c = c;
    p->inflight_most = options.inflight;
    if (options.version == 5 && c->receive_maximum && c->receive_maximum < p->inflight_most)
        p->inflight_most = c->receive_maximum;
    if (qos) {
        p->ring = allocate(65536 * sizeof(u16));
        p->packet_id_state = allocate(65536);
        /* more ids than the window, so an id rests before it is used again */
        for (i = 1; i < 65536; i++) p->ring[p->rtail++] = (u16)i;
    }
}

void emit(struct publisher *p, u64 ts)
{
    u8 *d = reserve(p->c, p->len), *y;
    memcpy(d, p->template, p->len);
    if (p->packet_id_offset) {
        u16 id = p->ring[p->rhead++ & 65535];
        p->packet_id_state[id] = 1;
        p->inflight++;
        put_u16(d + p->packet_id_offset, id);
    }
    y = d + p->payload_offset;
    memcpy(y + 8, &p->seq, 8);
    memcpy(y + 16, &ts, 8);
    p->c->out_length += p->len;
    p->seq++;
    p->outstanding += fanout;
    totals.expected += fanout;
    totals.sent++;
}

void free_packet_id(struct publisher *p, u32 packet_id)
{
    p->packet_id_state[packet_id] = 0;
    p->ring[p->rtail++ & 65535] = (u16)packet_id;
    p->inflight--;
    totals.acked++;
    totals.t_last_ack = received_at;
    dirty = 1;
}

static u32 extra_filter(char *d, size_t n, u64 k)
{
    u32 area = (u32)(k % 17), line = (u32)(k / 17 % 29);
    u64 dev = 1000000 + k;
    switch (k % 10) {
    case 0: return (u32)snprintf(d, n, "%s/+/line%u/dev%llu/state", options.prefix, line, LL(dev));
    case 1: return (u32)snprintf(d, n, "%s/area%u/+/dev%llu/#", options.prefix, area, LL(dev));
    case 2:
        return (u32)snprintf(d, n, "%s/area%u/line%u/dev%llu/#", options.prefix, area, line,
                             LL(dev));
    default:
        return (u32)snprintf(d, n, "%s/area%u/line%u/dev%llu/cmd", options.prefix, area, line,
                             LL(dev));
    }
}

void extra_more(struct connection *c)
{
    char buf[256][96];
    const char *f[256];
    u32 n = 0, max = options.subscribe_batch > 256 ? 256 : options.subscribe_batch;
    while (n < max && c->extra_next < c->extra_end) {
        extra_filter(buf[n], sizeof buf[n], c->extra_next++);
        f[n] = buf[n];
        n++;
    }
    if (n) {
        send_subscribe(c, 1 + (u32)(c->extra_next & 0x7fff), f, n, 0);
        flush(c);
    }
}
