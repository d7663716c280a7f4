/* What is asked for on the command line. */
#include "load.h"
#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>

const char *const mode_names[] = {"pair",  "fanin", "fanout", "retained",  "enqueue",
                                  "drain", "idle",  "churn",  "plan", "serve-echo"};

struct totals totals;
struct options options = {
    .host = "127.0.0.1",
    .prefix = "plant",
    .port = 1883,
    .version = 4,
    .mode = MODE_PAIR,
    .subscriber_qos = -1,
    .publishers = 1,
    .payload = 64,
    .inflight = 100,
    .parallel = 64,
    .extra_connections = 10,
    .subscribe_batch = 100,
    .messages = 100000,
    .window = 1000,
    .hold = -1,
    .stall = 1.0,
    .drain_timeout = 3.0,
    .setup_timeout = 300.0,
    .spin = -1,
    .run_id = 0x4d514c31,
};

static const char help[] =
    "usage: load [options]\n"
    "  --host A --port P        broker (IPv4 address, 127.0.0.1:1883)\n"
    "  --version 4|5            MQTT 3.1.1 or 5.0 (4)\n"
    "  --mode MODE              pair      publisher i -> subscriber i, a topic each (default)\n"
    "                           fanin     all publishers -> --subscribers (1) on a wildcard\n"
    "                           fanout    publishers -> --subscribers (50) on one topic\n"
    "                           retained  set --messages retained topics, replay them to a new "
    "subscriber\n"
    "                           enqueue   a persistent subscriber goes away, --messages are "
    "published to it\n"
    "                           drain     that subscriber comes back and must get --messages\n"
    "                           idle      open --connections, hold them (see --hold)\n"
    "                           churn     --messages clients, --parallel at once: connect, "
    "subscribe,\n"
    "                                     publish, receive, disconnect\n"
    "                           plan      traffic as the file --plan describes it (plan.c)\n"
    "                           serve-echo  copy bytes on --port: a yardstick, not a broker\n"
    "  --qos Q [--subscriber-qos Q]  0, 1 or 2; subscribers use the same unless told\n"
    "  --publishers N --subscribers M\n"
    "  --payload B              bytes, at least 24 (64)\n"
    "  --messages N             published in total (100000; 0: until --max-seconds)\n"
    "  --max-seconds S          stop publishing (drain: receiving) after S seconds\n"
    "  --window W               published but not delivered yet, over all publishers (1000; 0: no "
    "limit)\n"
    "  --persistent             subscribers of pair, fanin and fanout keep a session\n"
    "  --inflight K             unacknowledged for each publisher, QoS 1 and 2 (100; MQTT 5.0: at "
    "most\n"
    "                           the broker's Receive Maximum)\n"
    "  --rate R                 messages/s over all publishers; latency counts from when each was "
    "due\n"
    "  --warmup S               leave messages of the first S seconds out of the latencies (0)\n"
    "  --retain                 plan: every message is retained\n"
    "  --aliases N              plan, MQTT 5.0: a Topic Alias Maximum, and aliases for topics\n"
    "  --cycle N                plan: publishers connect, publish N messages, and disconnect, again "
    "and again\n"
    "  --spin 0|1               busy-wait (default: only with --rate)\n"
    "  --extra-subscriptions K  unrelated subscriptions made first, on --extra-connections (10),\n"
    "                           --subscribe-batch filters a packet (100)\n"
    "  --connections K --parallel P   for idle: how many, and how many connect at once (64)\n"
    "  --hold S                 for idle: seconds; default: until standard input closes\n"
    "  --stall S                write off what is missing after S seconds without progress (1)\n"
    "  --drain-timeout S        give up at the end after S seconds without progress (3)\n"
    "  --prefix T               first topic level (plant)\n"
    "  --run-id N               number that marks this run's payloads\n"
    "  --sync                   print READY <phase> before each phase, begin it on a line of "
    "input\n"
    "  --quiet\n";

static const struct option long_options[] = {{"host", 1, 0, 'h'},
                                             {"port", 1, 0, 'p'},
                                             {"version", 1, 0, 'v'},
                                             {"mode", 1, 0, 'm'},
                                             {"qos", 1, 0, 'q'},
                                             {"subscriber-qos", 1, 0, 'Q'},
                                             {"publishers", 1, 0, 'N'},
                                             {"subscribers", 1, 0, 'M'},
                                             {"payload", 1, 0, 's'},
                                             {"messages", 1, 0, 'n'},
                                             {"max-seconds", 1, 0, 'T'},
                                             {"window", 1, 0, 'w'},
                                             {"inflight", 1, 0, 'i'},
                                             {"rate", 1, 0, 'r'},
                                             {"extra-subscriptions", 1, 0, 'x'},
                                             {"extra-connections", 1, 0, 'X'},
                                             {"subscribe-batch", 1, 0, 'b'},
                                             {"connections", 1, 0, 'c'},
                                             {"parallel", 1, 0, 'P'},
                                             {"hold", 1, 0, 'H'},
                                             {"stall", 1, 0, 'S'},
                                             {"drain-timeout", 1, 0, 'D'},
                                             {"prefix", 1, 0, 't'},
                                             {"run-id", 1, 0, 'R'},
                                             {"sync", 0, 0, 'y'},
                                             {"quiet", 0, 0, 'z'},
                                             {"spin", 1, 0, 'B'},
                                             {"warmup", 1, 0, 'W'},
                                             {"setup-timeout", 1, 0, 'U'},
                                             {"persistent", 0, 0, 'K'},
                                             {"plan", 1, 0, 'F'},
                                             {"retain", 0, 0, 'E'},
                                             {"aliases", 1, 0, 'A'},
                                             {"cycle", 1, 0, 'C'},
                                             {"help", 0, 0, 'a'},
                                             {0, 0, 0, 0}};

static int mode_of(const char *name)
{
    int i;
    for (i = 0; i <= MODE_SERVE; i++)
        if (!strcmp(name, mode_names[i])) return i;
    die("unknown mode %s", name);
}

static void take(int option, const char *value)
{
    switch (option) {
    case 'h': options.host = value; break;
    case 'p': options.port = atoi(value); break;
    case 'v': options.version = atoi(value); break;
    case 'm': options.mode = mode_of(value); break;
    case 'q': options.qos = atoi(value); break;
    case 'Q': options.subscriber_qos = atoi(value); break;
    case 'N': options.publishers = (u32)atoi(value); break;
    case 'M': options.subscribers = (u32)atoi(value); break;
    case 's': options.payload = (u32)atoi(value); break;
    case 'n': options.messages = strtoull(value, 0, 10); break;
    case 'T': options.max_seconds = atof(value); break;
    case 'w': options.window = strtoull(value, 0, 10); break;
    case 'i': options.inflight = (u32)atoi(value); break;
    case 'r': options.rate = atof(value); break;
    case 'x': options.extra_subscriptions = strtoull(value, 0, 10); break;
    case 'X': options.extra_connections = (u32)atoi(value); break;
    case 'b': options.subscribe_batch = (u32)atoi(value); break;
    case 'c': options.connections = (u32)atoi(value); break;
    case 'P': options.parallel = (u32)atoi(value); break;
    case 'H': options.hold = atof(value); break;
    case 'S': options.stall = atof(value); break;
    case 'D': options.drain_timeout = atof(value); break;
    case 't': options.prefix = value; break;
    case 'R': options.run_id = (u32)strtoul(value, 0, 0); break;
    case 'y': options.sync = 1; break;
    case 'z': options.quiet = 1; break;
    case 'B': options.spin = atoi(value); break;
    case 'W': options.warmup = atof(value); break;
    case 'U': options.setup_timeout = atof(value); break;
    case 'K': options.persistent = 1; break;
    case 'F': options.plan = value; break;
    case 'E': options.retain = 1; break;
    case 'A': options.aliases = (u32)atoi(value); break;
    case 'C': options.cycle = (u32)atoi(value); break;
    case 'a': fputs(help, stdout); exit(0);
    default: fputs(help, stderr); exit(2);
    }
}

static void check(void)
{
    if (options.version != 4 && options.version != 5) die("--version must be 4 or 5");
    if (options.qos < 0 || options.qos > 2 || options.subscriber_qos > 2)
        die("--qos must be 0, 1 or 2");
    if (options.payload < STAMP || options.payload > INPUT / 2)
        die("--payload must be %u to %u", STAMP, INPUT / 2);
    if (!options.publishers || !options.inflight || options.inflight > 60000)
        die("--publishers and --inflight (at most 60000) must be positive");
    if (!options.parallel || !options.extra_connections || !options.subscribe_batch)
        die("--parallel, --extra-connections and --subscribe-batch must be positive");
    if (options.subscriber_qos < 0) options.subscriber_qos = options.qos;
    if ((options.mode == MODE_RETAINED || options.mode == MODE_CHURN) && !options.messages)
        die("the modes retained and churn need --messages");
    if (options.mode == MODE_PLAN && !options.plan) die("the mode plan needs --plan");
    if (options.cycle && (options.qos != 1 || !(options.max_seconds > 0)))
        die("--cycle needs --qos 1 and --max-seconds");
}

static void run(void)
{
    switch (options.mode) {
    case MODE_SERVE: mode_serve(); break;
    case MODE_IDLE: mode_idle(); exit(0);
    case MODE_RETAINED: mode_retained(); break;
    case MODE_ENQUEUE: mode_enqueue(); break;
    case MODE_DRAIN: mode_drain(); break;
    case MODE_CHURN: mode_churn(); break;
    case MODE_PLAN: mode_plan(); break;
    default: mode_traffic(); break;
    }
}

int main(int argc, char **argv)
{
    struct rlimit files;
    u32 i;
    int option;
    while ((option = getopt_long(argc, argv, "", long_options, NULL)) != -1) take(option, optarg);
    if (optind != argc) die("unexpected argument %s", argv[optind]);
    check();
    signal(SIGPIPE, SIG_IGN);
    prctl(PR_SET_TIMERSLACK, 1);
    if (!getrlimit(RLIMIT_NOFILE, &files)) {
        files.rlim_cur = files.rlim_max;
        setrlimit(RLIMIT_NOFILE, &files);
    }
    epoll = epoll_create1(EPOLL_CLOEXEC);
    if (epoll < 0) die("epoll_create1: %s", strerror(errno));
    run();
    for (i = 0; i < connection_count; i++) send_disconnect(connections[i]);
    return 0;
}
