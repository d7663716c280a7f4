/* The messages of a plan: how they are made, and what is looked at in each that is delivered. */
#include "load.h"
#include <stdlib.h>
#include <string.h>

#define MOST_HEAD 96u       /* bytes of a payload before its sample */
#define MOST_PROPERTIES 40u /* bytes of properties with their length */
#define MOST_ALIASES 65536u
#define LARGEST_NUMBER 4000000000ull

static u8 *put_text(u8 *d, const char *text, u32 n)
{ return (u8 *)memcpy(d, text, n) + n; }

static u8 *put_number(u8 *d, u64 value)
{
    u8 digits[20], *end = digits + sizeof digits, *at = end;
    do {
        *--at = (u8)('0' + value % 10);
        value /= 10;
    } while (value);
    return put_text(d, (char *)at, (u32)(end - at));
}

/* xorshift64*: the choices are the same in each round. */
static u32 choice(struct source *s, u32 count)
{
    s->state ^= s->state >> 12;
    s->state ^= s->state << 25;
    s->state ^= s->state >> 27;
    return (u32)((s->state * 0x2545f4914f6cdd1dull >> 33) % count);
}

static u32 payload_head(u8 *head, u32 publisher, u32 slot, u64 number, u32 sample)
{
    u8 *d = put_text(head, "{\"p\":", 5);
    d = put_text(put_number(d, publisher), ",\"t\":", 5);
    d = put_text(put_number(d, slot), ",\"n\":", 5);
    d = put_text(put_number(d, number), ",\"s\":", 5);
    d = put_text(put_number(d, sample), ",", 1);
    return (u32)(d - head);
}

/* Return the length of the properties with the byte that says it, which is 0 for MQTT 3.1.1. */
static u32 properties_of(u8 *properties, const struct source *s, u32 alias)
{
    u8 *d = properties + 1;
    if (options.version != 5) return 0;
    if (s->content_type) d = put_text(d, "\x03\x00\x10"
                                         "application/json", 19);
    if (s->expiry) d = put_text(d, "\x02\x00\x00\x0e\x10", 5); /* an hour */
    if (alias) {
        *d++ = 0x23;
        put_u16(d, alias);
        d += 2;
    }
    properties[0] = (u8)(d - properties - 1);
    return (u32)(d - properties);
}

/* Take a packet identifier, and return it. */
static u32 take_packet_id(struct publisher *p)
{
    u16 id = p->ring[p->rhead++ & 65535];
    p->packet_id_state[id] = 1;
    p->inflight++;
    return id;
}

/* Take down how many deliveries the publisher's next message is to have. */
static void expect(struct publisher *p, u32 deliveries)
{
    if (!p->missing) p->missing = allocate(RECENT * sizeof *p->missing);
    p->missing[p->seq % RECENT] = (u16)deliveries;
    p->outstanding += deliveries > 0;
    totals.expected += deliveries;
}

/* Put the publisher's next message behind what its connection has to write. */
void emit_planned(struct publisher *p)
{
    u32 index = (u32)(p - publishers);
    struct source *s = &sources[index];
    u32 slot = s->random ? choice(s, s->count) : (u32)(p->seq % s->count);
    u32 chosen = choice(s, sample_count);
    struct sample *sample = &samples[chosen];
    struct topic *t = &topics[s->first + slot];
    u32 alias = options.aliases && slot < p->c->alias_maximum ? slot + 1 : 0;
    u8 head[MOST_HEAD], properties[MOST_PROPERTIES], suffix[20], *d, *start;
    u32 name_length = alias && t->aliased ? 0 : t->length;
    u32 suffix_length = s->fresh ? (u32)(put_number(suffix, p->seq) - suffix) : 0;
    u32 properties_length = properties_of(properties, s, alias);
    u32 head_length = payload_head(head, index, slot, p->seq, chosen);
    u32 length = 2 + name_length + suffix_length + (options.qos ? 2 : 0) + properties_length +
                 head_length + sample->length;
    d = start = reserve(p->c, length + 5);
    *d++ = (u8)(0x30 | options.qos << 1 | options.retain);
    d += put_varint(d, length);
    put_u16(d, name_length + suffix_length);
    d = put_text(d + 2, t->name, name_length);
    d = put_text(d, (char *)suffix, suffix_length);
    if (options.qos) {
        put_u16(d, take_packet_id(p));
        d += 2;
    }
    d = put_text(d, (char *)properties, properties_length);
    d = put_text(d, (char *)head, head_length);
    d = put_text(d, sample->text, sample->length);
    p->c->out_length += (u32)(d - start);
    t->aliased |= alias != 0;
    expect(p, t->receivers + sample->receivers);
    p->seq++;
    totals.owed += t->away;
    totals.sent++;
    totals.bytes += head_length + sample->length;
}

/* Read `"key":number,` behind which the rest stands; NULL if it is something else. */
static const u8 *get_number(const u8 *at, const u8 *end, const char *key, u64 *value)
{
    u32 n = (u32)strlen(key);
    if ((size_t)(end - at) < n || memcmp(at, key, n)) return NULL;
    for (at += n, *value = 0; at < end && *at >= '0' && *at <= '9'; at++)
        *value = *value * 10 + (u64)(*at - '0');
    return at;
}

/* The topic name of a delivery, which an alias may stand for; *length becomes its length. */
static const u8 *whole_name(struct receiver *r, const u8 *name, u32 *length, u32 alias)
{
    struct name *known;
    if (!alias || alias >= MOST_ALIASES) return name;
    if (!r->names) r->names = allocate(MOST_ALIASES * sizeof *r->names);
    known = &r->names[alias];
    if (*length) {
        known->text = grow(known->text, *length);
        memcpy(known->text, name, *length);
        known->length = *length;
    }
    *length = known->length;
    return known->text;
}

static int is_named(const struct topic *t, int fresh, u64 number, const u8 *name, u32 length)
{
    u8 suffix[20];
    u32 n = fresh ? (u32)(put_number(suffix, number) - suffix) : 0;
    return length == t->length + n && !memcmp(name, t->name, t->length) &&
           !memcmp(name + t->length, suffix, n);
}

/* Count a delivery: was it meant for this subscriber, is it whole, is it new, is it in order? */
void check_planned(struct connection *c, const u8 *name, u32 name_length, u32 alias,
                   const u8 *payload, u32 length)
{
    struct receiver *r = &receivers[c->idx];
    const u8 *end = payload + length, *at = payload;
    u64 from, slot, number, chosen;
    struct source *s;
    u32 t;
    name = whole_name(r, name, &name_length, alias);
    totals.delivered++;
    totals.t_last = received_at;
    if (!(at = get_number(at, end, "{\"p\":", &from)) ||
        !(at = get_number(at, end, ",\"t\":", &slot)) ||
        !(at = get_number(at, end, ",\"n\":", &number)) ||
        !(at = get_number(at, end, ",\"s\":", &chosen)) || at++ == end ||
        from >= source_count || slot >= sources[from].count || number > LARGEST_NUMBER ||
        chosen >= sample_count) {
        totals.foreign++;
        return;
    }
    s = &sources[from];
    t = s->first + (u32)slot;
    if (!is_named(&topics[t], s->fresh, number, name, name_length) || !get_bit(r->topics, t) ||
        (r->where && !get_bit(r->samples, (u32)chosen)) ||
        (u32)(end - at) != samples[chosen].length ||
        memcmp(at, samples[chosen].text, samples[chosen].length)) {
        totals.misrouted++;
        return;
    }
    if (!is_new(&streams[r->counted_with * source_count + from], number)) {
        totals.duplicates++;
        return;
    }
    if (number < r->next[t] && !s->fresh)
        totals.reordered++;
    else
        r->next[t] = (u32)number + 1;
    totals.unique++;
    if (!r->away && --publishers[from].missing[number % RECENT] == 0 &&
        publishers[from].outstanding > 0)
        publishers[from].outstanding--;
    dirty = 1;
    if (options.rate > 0) {
        u64 due = due_at(number * source_count + from);
        if (due >= latency_from && received_at > due) add_latency(received_at - due);
    }
}
