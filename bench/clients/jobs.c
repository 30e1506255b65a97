/* Workers that take jobs from a queue and complete them, on loopback, faster than any server they measure.
 *
 *     jobs PROTOCOL PORT WORKERS BATCH JOBS QUEUE
 *
 * Each worker has a connection and does the same over and over: claim BATCH jobs, and when they have come complete all of
 * them in one piece. The run ends when JOBS are completed, and prints one line of JSON; a time is that of one such cycle.
 * No claim is sent for which there are no jobs left, so each must get BATCH jobs, and any other answer ends the run with
 * its text and exit code 1.
 *
 *     http       POST …/claim, POST …/ack with all seqs
 *     resp       XREADGROUP, XACK with all ids; the group is called `workers`
 *     nats       a pull from the consumer `workers`; acks are not answered, so they go out with the next pull
 *     beanstalk  BATCH times `reserve`, then BATCH times `delete`, each in one piece
 *     heap       POST /v1/pop, POST /v1/ack with all tokens
 *     zset       a script that moves the best of the sorted set QUEUE to `leased`, and one that forgets them
 *
 * One thread, one epoll.
 */
#define PROGRAM "jobs"
#include "wire.h"

enum { WORKERS_MAX = 256, BATCH_MAX = 64, ID_BYTES = 128, OUT_BYTES = 1 << 15, READ_BYTES = 1 << 16 };

typedef enum { BEANSTALK = NATS + 1, HEAP, ZSET } MoreProtocols;

typedef struct {
    Input in;
    int number;
    int is_claiming;
    int id_count;
    int missing; /* replies, or parts of one, until the step is over */
    char ids[BATCH_MAX][ID_BYTES];
    uint64_t began_ns;
} Worker;

static int protocol, batch;
static const char *queue;
static size_t jobs_wanted, jobs_claimed, jobs_done;

static void send_all(Worker *w, const char *text, size_t length) {
    /* A request is smaller than the socket's buffer, which is empty: the one before was answered. */
    if (write(w->in.socket, text, length) != (ssize_t)length) fail_errno("write");
}

static void keep_id(Worker *w, const char *text, size_t length) {
    if (w->id_count == batch) fail("more jobs than were asked for", text, length);
    if (length >= ID_BYTES) fail("a long id", text, length);
    memcpy(w->ids[w->id_count], text, length);
    w->ids[w->id_count++][length] = 0;
}

/* What is sent. */

static size_t http_post(char *out, const char *verb, const char *body, int body_bytes) {
    return (size_t)sprintf(out,
                           "POST /v0/topics/%s/%s HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
                           "Content-Length: %d\r\n\r\n%s",
                           queue, verb, body_bytes, body);
}

static size_t heap_post(char *out, const char *verb, const char *body, int body_bytes) {
    return (size_t)sprintf(out,
                           "POST /v1/%s HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
                           "Content-Length: %d\r\n\r\n%s",
                           verb, body_bytes, body);
}

static size_t resp_word(char *out, const char *word) { return (size_t)sprintf(out, "$%zu\r\n%s\r\n", strlen(word), word); }

/* Ids in a sorted set by priority, payloads in the hash `payloads`, and who is out in the sorted set `leased`. */
static const char POP_SCRIPT[] = "local ids = redis.call('ZPOPMIN', KEYS[1], ARGV[1]) local out = {} "
                                 "for i = 1, #ids, 2 do redis.call('ZADD', 'leased', ARGV[2], ids[i]) "
                                 "out[#out + 1] = ids[i] out[#out + 1] = redis.call('HGET', 'payloads', ids[i]) end return out";
static const char DONE_SCRIPT[] = "redis.call('HDEL', 'payloads', unpack(ARGV)) return redis.call('ZREM', 'leased', unpack(ARGV))";

static size_t claim_text(Worker *w, char *out) {
    char text[256];
    size_t at = 0;
    switch (protocol) {
    case HTTP: return http_post(out, "claim", text, sprintf(text, "{\"node\":\"worker-%d\",\"max\":%d}", w->number, batch));
    case RESP:
        at += (size_t)sprintf(out, "*9\r\n$10\r\nXREADGROUP\r\n$5\r\nGROUP\r\n$7\r\nworkers\r\n");
        sprintf(text, "worker-%d", w->number);
        at += resp_word(out + at, text);
        at += (size_t)sprintf(out + at, "$5\r\nCOUNT\r\n");
        sprintf(text, "%d", batch);
        at += resp_word(out + at, text);
        at += (size_t)sprintf(out + at, "$7\r\nSTREAMS\r\n");
        at += resp_word(out + at, queue);
        return at + (size_t)sprintf(out + at, "$1\r\n>\r\n");
    case NATS:
        sprintf(text, "{\"batch\":%d}", batch);
        return (size_t)sprintf(out, "PUB $JS.API.CONSUMER.MSG.NEXT.%s.workers inbox.%06d %zu\r\n%s\r\n", queue, w->number,
                               strlen(text), text);
    case HEAP: return heap_post(out, "pop", text, sprintf(text, "{\"topic\":\"%s\",\"max\":%d}", queue, batch));
    case ZSET:
        at += (size_t)sprintf(out, "*6\r\n$4\r\nEVAL\r\n");
        at += resp_word(out + at, POP_SCRIPT);
        at += (size_t)sprintf(out + at, "$1\r\n1\r\n");
        at += resp_word(out + at, queue);
        sprintf(text, "%d", batch);
        at += resp_word(out + at, text);
        return at + resp_word(out + at, "1900000000");
    default:
        for (int job = 0; job < batch; job++) at += (size_t)sprintf(out + at, "reserve\r\n");
        return at;
    }
}

static size_t ack_text(Worker *w, char *out) {
    static char body[OUT_BYTES];
    size_t at = 0;
    switch (protocol) {
    case HTTP:
        at += (size_t)sprintf(body, "{\"node\":\"worker-%d\",\"seqs\":[", w->number);
        for (int job = 0; job < batch; job++) at += (size_t)sprintf(body + at, job ? ",%s" : "%s", w->ids[job]);
        at += (size_t)sprintf(body + at, "]}");
        return http_post(out, "ack", body, (int)at);
    case RESP:
        at += (size_t)sprintf(out, "*%d\r\n$4\r\nXACK\r\n", batch + 3);
        at += resp_word(out + at, queue);
        at += (size_t)sprintf(out + at, "$7\r\nworkers\r\n");
        for (int job = 0; job < batch; job++) at += resp_word(out + at, w->ids[job]);
        return at;
    case NATS:
        for (int job = 0; job < batch; job++) at += (size_t)sprintf(out + at, "PUB %s 0\r\n\r\n", w->ids[job]);
        return at;
    case HEAP:
        at += (size_t)sprintf(body, "{\"topic\":\"%s\",\"leases\":[", queue);
        for (int job = 0; job < batch; job++)
            at += (size_t)sprintf(body + at, job ? ",{\"lease_token\":\"%s\"}" : "{\"lease_token\":\"%s\"}", w->ids[job]);
        at += (size_t)sprintf(body + at, "]}");
        return heap_post(out, "ack", body, (int)at);
    case ZSET:
        at += (size_t)sprintf(out, "*%d\r\n$4\r\nEVAL\r\n", batch + 3);
        at += resp_word(out + at, DONE_SCRIPT);
        at += (size_t)sprintf(out + at, "$1\r\n0\r\n");
        for (int job = 0; job < batch; job++) at += resp_word(out + at, w->ids[job]);
        return at;
    default:
        for (int job = 0; job < batch; job++) at += (size_t)sprintf(out + at, "delete %s\r\n", w->ids[job]);
        return at;
    }
}

/* What comes back. Each looks at unparsed bytes, keeps the ids in them, and returns whether the step is over. */

static int take_http_answer(Worker *w) {
    char *text = w->in.text + w->in.parsed;
    if (!take_http(&w->in)) return 0;
    char *end = w->in.text + w->in.parsed;
    static const char SEQ[] = "{\"$seq\":", TOKEN[] = "\"lease_token\":\"";
    const char *mark = protocol == HEAP ? TOKEN : SEQ;
    size_t mark_bytes = strlen(mark);
    if (!w->is_claiming) {
        char found[32];
        sprintf(found, "\"acked\":%d,", batch);
        if (!memmem(text, (size_t)(end - text), found, strlen(found))) fail("not all were acked", text, (size_t)(end - text));
        return 1;
    }
    char *all = text;
    while ((text = memmem(text, (size_t)(end - text), mark, mark_bytes))) {
        text += mark_bytes;
        keep_id(w, text, protocol == HEAP ? strcspn(text, "\"") : strspn(text, "0123456789"));
    }
    if (w->id_count != batch) fail("fewer jobs than there are", all, (size_t)(end - all));
    return 1;
}

/* XREADGROUP: an array of one stream: its name, and entries, each its id and an array of two strings. */
static int take_resp_answer(Worker *w) {
    char *text = w->in.text + w->in.parsed, *end = w->in.text + w->in.filled, *line = text;
    int values = 1, seen = 0;
    w->id_count = w->is_claiming ? 0 : w->id_count;
    for (; values; values--, seen++) {
        char *feed = memchr(line, '\n', (size_t)(end - line));
        if (!feed) return 0;
        if (*line == '-') fail("the server answered", line, (size_t)(end - line));
        char *next = feed + 1;
        if (*line == '*') {
            if (line[1] != '-') values += atoi(line + 1);
        } else if (*line == '$') {
            long bytes = atol(line + 1);
            if (end - next < bytes + 2) return 0;
            int is_id = protocol == ZSET ? seen % 2 : seen > 3 && (seen - 4) % 5 == 1;
            if (w->is_claiming && is_id) keep_id(w, next, (size_t)bytes);
            next += bytes + 2;
        }
        line = next;
    }
    if (w->is_claiming ? w->id_count != batch : atoi(text + 1) != batch) fail("not all jobs", text, (size_t)(end - text));
    w->in.parsed += (size_t)(line - text);
    return 1;
}

static int take_nats_answer(Worker *w) {
    while (w->id_count < batch) {
        char *text = w->in.text + w->in.parsed, *end = w->in.text + w->in.filled;
        char *feed = memchr(text, '\n', (size_t)(end - text));
        if (!feed) return 0;
        char *next = feed + 1;
        if (*text == '-') fail("the server answered", text, (size_t)(end - text));
        if (!strncmp(text, "MSG ", 4)) {
            char *reply = text;
            for (int word = 0; word < 3; word++) reply = (char *)memchr(reply, ' ', (size_t)(feed - reply)) + 1;
            char *size = memchr(reply, ' ', (size_t)(feed - reply));
            if (!size) fail("a message without a way to ack it", text, (size_t)(end - text));
            next += atol(size) + 2;
            if (next > end) return 0;
            keep_id(w, reply, (size_t)(size - reply));
        } else if (!strncmp(text, "PING", 4)) {
            send_all(w, "PONG\r\n", 6);
        }
        w->in.parsed += (size_t)(next - text);
    }
    return 1;
}

static int take_beanstalk_answer(Worker *w) {
    while (w->missing) {
        char *text = w->in.text + w->in.parsed, *end = w->in.text + w->in.filled;
        char *feed = memchr(text, '\n', (size_t)(end - text));
        if (!feed) return 0;
        char *next = feed + 1;
        if (w->is_claiming) {
            if (strncmp(text, "RESERVED ", 9)) fail("the server answered", text, (size_t)(end - text));
            char *size = memchr(text + 9, ' ', (size_t)(feed - text) - 9);
            next += atol(size) + 2;
            if (next > end) return 0;
            keep_id(w, text + 9, (size_t)(size - text) - 9);
        } else if (strncmp(text, "DELETED", 7)) {
            fail("the server answered", text, (size_t)(end - text));
        }
        w->missing--;
        w->in.parsed += (size_t)(next - text);
    }
    return 1;
}

static int take_answer(Worker *w) {
    if (w->in.parsed == w->in.filled) return 0;
    switch (protocol) {
    case HTTP:
    case HEAP: return take_http_answer(w);
    case RESP:
    case ZSET: return take_resp_answer(w);
    case NATS: return take_nats_answer(w);
    default: return take_beanstalk_answer(w);
    }
}

/* One worker. */

static size_t begin_claim(Worker *w, char *out) {
    if (jobs_claimed >= jobs_wanted) return 0;
    jobs_claimed += (size_t)batch;
    w->is_claiming = 1;
    w->id_count = 0;
    w->missing = batch;
    w->began_ns = now_ns();
    return claim_text(w, out);
}

static void completed(Worker *w) {
    jobs_done += (size_t)batch;
    keep_latency(w->began_ns, now_ns());
}

static void go_on(Worker *w) {
    static char out[OUT_BYTES];
    size_t length = 0;
    if (w->is_claiming) {
        length = ack_text(w, out);
        w->is_claiming = 0;
        w->missing = batch;
        if (protocol == NATS) {
            completed(w);
            length += begin_claim(w, out + length);
        }
    } else {
        completed(w);
        length = begin_claim(w, out);
    }
    if (length) send_all(w, out, length);
}

static void report(double seconds) {
    sort_latencies();
    printf("{\"jobs\":%zu,\"seconds\":%.6f,\"p50_us\":%.1f,\"p99_us\":%.1f,\"client_busy_s\":%.3f}\n", jobs_done, seconds,
           latency_at(0.5), latency_at(0.99), busy_s());
}

static void run(int poll, Worker *workers, int count) {
    static char out[OUT_BYTES];
    uint64_t began_ns = now_ns();
    for (int number = 0; number < count; number++) {
        size_t length = begin_claim(&workers[number], out);
        if (length) send_all(&workers[number], out, length);
    }
    while (jobs_done < jobs_wanted) {
        struct epoll_event events[EVENTS];
        int ready = epoll_wait(poll, events, EVENTS, 1000);
        if (ready < 0 && errno != EINTR) fail_errno("epoll_wait");
        for (int number = 0; number < ready; number++) {
            Worker *w = events[number].data.ptr;
            receive(&w->in, READ_BYTES);
            if (take_answer(w)) go_on(w);
        }
    }
    report((double)(now_ns() - began_ns) / 1e9);
}

int main(int argc, char **argv) {
    static Worker workers[WORKERS_MAX];
    if (argc != 7) fail("usage", "PROTOCOL PORT WORKERS BATCH JOBS QUEUE", SHOWN_BYTES);
    static const char *const MORE[] = {"beanstalk", "heap", "zset"};
    protocol = 0;
    for (int number = 0; number < 3; number++)
        if (!strcmp(argv[1], MORE[number])) protocol = BEANSTALK + number;
    if (!protocol) protocol = (int)protocol_named(argv[1]);
    int port = atoi(argv[2]), count = atoi(argv[3]);
    batch = atoi(argv[4]);
    jobs_wanted = strtoul(argv[5], NULL, 10);
    queue = argv[6];
    if (count < 1 || count > WORKERS_MAX) fail("workers", argv[3], strlen(argv[3]));
    if (batch < 1 || batch > BATCH_MAX || jobs_wanted % (size_t)batch) fail("batch", argv[4], strlen(argv[4]));
    int poll = epoll_create1(0);
    for (int number = 0; number < count; number++) {
        char greeting[128] = "";
        workers[number].number = number;
        if (protocol == NATS)
            sprintf(greeting, "CONNECT {\"verbose\":false,\"pedantic\":false}\r\nSUB inbox.%06d 1\r\n", number);
        open_socket(poll, &workers[number].in, &workers[number], port, (Piece){greeting, strlen(greeting)});
    }
    run(poll, workers, count);
    return 0;
}
