/* What arrives: answers, and deliveries that are counted one by one. */
#include "load.h"
#include <string.h>
#include <unistd.h>

u32 get_varint(const u8 *s, const u8 *end, u32 *v)
{
    u32 n = 0, sh = 0, r = 0;
    while (s + n < end && n < 4) {
        u8 b = s[n++];
        r |= (u32)(b & 127) << sh;
        sh += 7;
        if (!(b & 128)) {
            *v = r;
            return n;
        }
    }
    return 0;
}

/* Whether this is the first with its number; it is taken down. */
int is_new(struct stream *s, u64 seq)
{
    if (seq >= s->cap) {
        u64 cap = s->cap ? s->cap : 8192;
        while (cap <= seq) cap *= 2;
        s->bits = grow(s->bits, cap / 8);
        memset(s->bits + s->cap / 8, 0, (cap - s->cap) / 8);
        s->cap = cap;
    }
    if (get_bit(s->bits, seq)) return 0;
    set_bit(s->bits, seq);
    return 1;
}

static void count_delivery(struct connection *c, const u8 *pay, u32 len)
{
    u32 id, pi, si;
    u64 seq, ts;
    struct stream *s;
    if (len < STAMP || !streams || (memcpy(&id, pay, 4), id != options.run_id)) {
        totals.foreign++;
        return;
    }
    memcpy(&pi, pay + 4, 4);
    memcpy(&seq, pay + 8, 8);
    memcpy(&ts, pay + 16, 8);
    totals.delivered++;
    totals.t_last = received_at;
    if (pi >= options.publishers || (options.mode == MODE_PAIR && pi != c->idx)) {
        totals.misrouted++;
        return;
    }
    si = streams_each == 1 ? c->idx : c->idx * streams_each + pi;
    s = &streams[si];
    if (seq > 4000000000ull) {
        totals.foreign++;
        return;
    }
    if (!is_new(s, seq)) {
        totals.duplicates++;
        return;
    }
    if (seq < s->next)
        totals.reordered++;
    else
        s->next = seq + 1;
    s->unique++;
    totals.unique++;
    if (publishers[pi].outstanding > 0) publishers[pi].outstanding--;
    dirty = 1;
    if (received_at > ts && ts >= latency_from) add_latency(received_at - ts);
}

/* A number of two bytes among the properties, which begin with their length; 0 without it. */
static u32 property(const u8 *b, const u8 *end, u8 identifier)
{
    u32 length = 0, n = get_varint(b, end, &length);
    b += n;
    if (!n) return 0;
    if (b + length <= end) end = b + length;
    while (b < end) {
        if (*b == identifier) return get_u16(b + 1);
        switch (*b++) {
        case 0x13: /* two bytes */
        case 0x21:
        case 0x22:
        case 0x23: b += 2; break;
        case 0x02: /* four */
        case 0x11:
        case 0x27: b += 4; break;
        case 0x01: /* one */
        case 0x24:
        case 0x25:
        case 0x28:
        case 0x29:
        case 0x2a: b += 1; break;
        case 0x26: b += 2 + get_u16(b); /* two strings */ /* fall through */
        case 0x03:                                        /* a string */
        case 0x08:
        case 0x09:
        case 0x12:
        case 0x15:
        case 0x16:
        case 0x1a:
        case 0x1c:
        case 0x1f: b += 2 + get_u16(b); break;
        default: return 0;
        }
    }
    return 0;
}

static void on_publish(struct connection *c, u8 h, const u8 *b, u32 len)
{
    const u8 *end = b + len, *name;
    u32 qos = (h >> 1) & 3, packet_id = 0, alias = 0, tl, pl;
    if (len < 2) goto bad;
    tl = get_u16(b);
    name = b += 2;
    if (b + tl > end) goto bad;
    b += tl;
    if (qos) {
        if (b + 2 > end) goto bad;
        packet_id = get_u16(b);
        b += 2;
    }
    if (options.version == 5) {
        u32 n = get_varint(b, end, &pl);
        if (!n || b + n + pl > end) goto bad;
        if (pl && options.aliases) alias = property(b, end, 0x23);
        b += n + pl;
    }
    if (qos == 1)
        send_ack(c, 0x40, packet_id);
    else if (qos == 2) {
        if (!c->unreleased) c->unreleased = allocate(8192);
        send_ack(c, 0x50, packet_id);
        if (c->unreleased[packet_id >> 3] & (1u << (packet_id & 7)))
            return; /* a resend, not a new one */
        c->unreleased[packet_id >> 3] |= (u8)(1u << (packet_id & 7));
    }
    if (c->role == CHURN)
        churn_step(c, 3, b, (u32)(end - b));
    else if (options.mode == MODE_PLAN)
        check_planned(c, name, tl, alias, b, (u32)(end - b));
    else
        count_delivery(c, b, (u32)(end - b));
    return;
bad:
    totals.ack_errors++;
}

static void on_connack(struct connection *c, const u8 *b, u32 len)
{
    if (len < 2 || b[1] != 0) {
        close_connection(c); /* counts it as refused */
        return;
    }
    pending_connects--;
    c->state = UP;
    c->session_present = b[0] & 1;
    totals.connected++;
    if (options.version == 5) {
        c->receive_maximum = property(b + 2, b + len, 0x21);
        c->alias_maximum = property(b + 2, b + len, 0x22);
    }
    if (c->role == EXTRA) {
        extra_more(c);
        extra_more(c);
    }
    if (c->role == CHURN) churn_step(c, 2, NULL, 0);
    if (c->role == DEVICE) device_up(c);
}

static void on_suback(struct connection *c, const u8 *b, u32 len)
{
    u32 i = 2;
    if (options.version == 5) {
        u32 length = 0, n = get_varint(b + 2, b + len, &length);
        i += n + length;
    }
    for (; i < len; i++) {
        if (b[i] & 0x80)
            totals.subscribe_failed++;
        else
            totals.subscribed++;
    }
    if (c->role == EXTRA) extra_more(c);
    if (c->role == CHURN) churn_step(c, 9, NULL, 0);
}

/* PUBACK, PUBREC or PUBCOMP to a publisher. */
static void on_answer(struct publisher *p, u8 type, const u8 *b, u32 len)
{
    u32 packet_id = len >= 2 ? get_u16(b) : 0;
    int refused = options.version == 5 && len > 2 && b[2] >= 0x80;
    int expected = type == 7 ? 2 : 1;
    if (!p || len < 2 || p->packet_id_state[packet_id] != expected) {
        totals.ack_errors++;
        return;
    }
    totals.reason_errors += (u64)refused;
    if (type != 5 || refused) {
        free_packet_id(p, packet_id);
        if (p->c->role == DEVICE) device_answered(p->c);
        return;
    }
    p->packet_id_state[packet_id] = 2;
    send_ack(p->c, 0x62, packet_id);
}

void on_packet(struct connection *c, u8 h, const u8 *b, u32 len)
{
    int publishes = c->role == PUBLISHER || c->role == DEVICE;
    struct publisher *p = publishes && publishers ? &publishers[c->idx] : NULL;
    u32 packet_id = len >= 2 ? get_u16(b) : 0;
    if (p && !p->packet_id_state) p = NULL;
    switch (h >> 4) {
    case 2: on_connack(c, b, len); break;
    case 3: on_publish(c, h, b, len); break;
    case 4: /* PUBACK */
        if (c->role == CHURN)
            churn_step(c, 4, NULL, 0);
        else
            on_answer(p, 4, b, len);
        break;
    case 5: /* PUBREC */
    case 7: /* PUBCOMP */ on_answer(p, h >> 4, b, len); break;
    case 6: /* PUBREL */
        if (c->unreleased) c->unreleased[packet_id >> 3] &= (u8) ~(1u << (packet_id & 7));
        send_ack(c, 0x70, packet_id);
        break;
    case 9: on_suback(c, b, len); break;
    case 14: /* DISCONNECT */
        note("the broker sent DISCONNECT, reason 0x%02x", len ? b[0] : 0);
        close_connection(c);
        break;
    default: break;
    }
}
