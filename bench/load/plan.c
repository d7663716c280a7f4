/* The plan of a traffic, line by line:
 *
 *   sample TEXT              the rest of a payload, behind `{"p":…,"t":…,"n":…,"s":…,`
 *   publisher [random] [fresh] [type] [expiry]
 *                            goes through its topics at random, not in turn; makes a topic of each
 *                            message by adding its number; MQTT 5: sends a content type, an expiry
 *   topic NAME               of the publisher above
 *   subscriber [persistent] [away] [group]
 *                            keeps its session; is gone during the traffic; shares the messages
 *                            with the others of its group, whose filters are "$share/…"
 *   filter NAME              of the subscriber above; no two of its filters match one topic
 *   where TEXT               the user property $where of its SUBSCRIBE
 *   takes N …                the samples for which that is TRUE
 */
#include "load.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct topic *topics;
struct sample *samples;
struct source *sources;
struct receiver *receivers;
u32 topic_count, sample_count, source_count, receiver_count;

/* One more element at the end of an array, zeroed. */
static void *one_more(void *array, u32 *count, size_t size)
{
    char *grown = grow(array, (*count + 1) * size);
    memset(grown + *count * size, 0, size);
    ++*count;
    return grown;
}

static char *copy(const char *text)
{ return strcpy(allocate(strlen(text) + 1), text); }

static int has(const char *words, const char *word)
{ return strstr(words, word) != NULL; }

static void add_topic(const char *name)
{
    topics = one_more(topics, &topic_count, sizeof *topics);
    topics[topic_count - 1].name = copy(name);
    topics[topic_count - 1].length = (u32)strlen(name);
    sources[source_count - 1].count++;
}

static void add_sample(const char *text)
{
    samples = one_more(samples, &sample_count, sizeof *samples);
    samples[sample_count - 1].text = copy(text);
    samples[sample_count - 1].length = (u32)strlen(text);
}

static void add_source(const char *words)
{
    struct source *s;
    sources = one_more(sources, &source_count, sizeof *sources);
    s = &sources[source_count - 1];
    s->first = topic_count;
    s->random = has(words, "random");
    s->fresh = has(words, "fresh");
    s->content_type = has(words, "type");
    s->expiry = has(words, "expiry");
    s->state = 0x9e3779b97f4a7c15ull * source_count;
}

static void add_receiver(const char *words)
{
    struct receiver *r;
    receivers = one_more(receivers, &receiver_count, sizeof *receivers);
    r = &receivers[receiver_count - 1];
    r->persistent = has(words, "persistent");
    r->away = has(words, "away");
    r->shares = has(words, "group");
}

static void add_filter(struct receiver *r, const char *name)
{
    r->filters = grow(r->filters, (r->filter_count + 1) * sizeof *r->filters);
    r->filters[r->filter_count++] = copy(name);
}

static void set_taken(struct receiver *r, const char *numbers)
{
    char *end;
    r->samples = allocate(sample_count / 8 + 1);
    for (;;) {
        u32 number = (u32)strtoul(numbers, &end, 10);
        if (end == numbers) return;
        if (number >= sample_count) die("plan: no sample %u", number);
        set_bit(r->samples, number);
        numbers = end;
    }
}

static void take_line(const char *word, const char *rest)
{
    struct receiver *r = receiver_count ? &receivers[receiver_count - 1] : NULL;
    if (!strcmp(word, "sample"))
        add_sample(rest);
    else if (!strcmp(word, "publisher"))
        add_source(rest);
    else if (!strcmp(word, "topic") && source_count)
        add_topic(rest);
    else if (!strcmp(word, "subscriber"))
        add_receiver(rest);
    else if (!strcmp(word, "filter") && r)
        add_filter(r, rest);
    else if (!strcmp(word, "where") && r)
        r->where = copy(rest);
    else if (!strcmp(word, "takes") && r)
        set_taken(r, rest);
    else
        die("plan: unexpected %s", word);
}

/* Whether a topic filter matches the name of a topic. */
static int matches(const char *filter, const char *name)
{
    if (!strncmp(filter, "$share/", 7)) filter = strchr(filter + 7, '/') + 1;
    for (; *filter; filter++) {
        if (*filter == '#') return 1;
        if (*filter == '+')
            while (*name && *name != '/') name++;
        else if (*filter != *name++)
            return 0;
    }
    return !*name;
}

static void count_receivers(void)
{
    u32 i, t, s, f, group = ~0u;
    for (i = 0; i < receiver_count; i++) {
        struct receiver *r = &receivers[i];
        if (r->shares && group == ~0u) group = i;
        r->counted_with = r->shares ? group : i;
        r->topics = allocate(topic_count / 8 + 1);
        r->next = allocate(topic_count * sizeof *r->next);
        for (t = 0; t < topic_count; t++)
            for (f = 0; f < r->filter_count; f++) {
                if (!matches(r->filters[f], topics[t].name)) continue;
                if (get_bit(r->topics, t)) die("plan: two filters match %s", topics[t].name);
                set_bit(r->topics, t);
                topics[t].receivers += r->counted_with == i && !r->away && !r->where;
                topics[t].away += r->away;
            }
        for (s = 0; r->where && s < sample_count; s++)
            samples[s].receivers += get_bit(r->samples, s);
    }
}

void read_plan(void)
{
    FILE *file = fopen(options.plan, "r");
    char *line = NULL, *rest;
    size_t size = 0;
    ssize_t n;
    if (!file) die("%s: %s", options.plan, strerror(errno));
    while ((n = getline(&line, &size, file)) > 0) {
        if (line[n - 1] == '\n') line[n - 1] = 0;
        rest = strchr(line, ' ');
        if (rest) *rest++ = 0;
        take_line(line, rest ? rest : "");
    }
    free(line);
    fclose(file);
    if (!topic_count || !sample_count) die("plan: topics and samples are needed");
    count_receivers();
}
