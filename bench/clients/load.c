/* A load client for loopback that is faster than any server it measures.
 *
 *     load PROTOCOL PORT CONNECTIONS REQUESTS SECONDS REPLIES FILE
 *
 * FILE holds what to send, each piece as a 32-bit little-endian length and its bytes. The first piece is the greeting
 * of a connection, often empty; the others are the requests, which the connections take in order, over and over. A
 * connection has one request under way: it sends the next when REPLIES replies to it have arrived. The run ends when
 * REQUESTS have been answered or SECONDS are over, and prints one line of JSON.
 *
 * One thread, one epoll. A reply is cut by its protocol's framing only: `http` by Content-Length, `resp` by counting
 * values, `nats` by MSG lines. Any reply that is not a success ends the run with its text and exit code 1. In `nats`
 * every `######` in FILE becomes the connection's number, so that each has an inbox of its own.
 */
#define PROGRAM "load"
#include "wire.h"

enum { CONNECTIONS_MAX = 1024, READ_BYTES = 1 << 18 };

typedef struct {
    Input in;
    int replies_missing;
    const char *unsent;
    size_t unsent_length;
    uint64_t sent_ns;
    Piece *pieces;
} Connection;

static Protocol protocol;
static int replies_per_request;
static size_t piece_count;
static size_t next_piece = 1;

static Piece *numbered(const char *text, size_t length, int number) {
    char digits[16];
    char *copy = grown(NULL, length);
    memcpy(copy, text, length);
    snprintf(digits, sizeof digits, "%06d", number);
    for (char *at = copy; (at = memmem(at, (size_t)(copy + length - at), "######", 6)); at += 6) memcpy(at, digits, 6);
    return cut(copy, length, &piece_count);
}

static void flush(int poll, Connection *c, int was_waiting) {
    ssize_t sent = write(c->in.socket, c->unsent, c->unsent_length);
    if (sent < 0 && errno != EAGAIN) fail_errno("write");
    if (sent > 0) {
        c->unsent += sent;
        c->unsent_length -= (size_t)sent;
    }
    if (c->unsent_length && !was_waiting) watch_socket(poll, &c->in, c, EPOLL_CTL_MOD, EPOLLIN | EPOLLOUT);
    if (!c->unsent_length && was_waiting) watch_socket(poll, &c->in, c, EPOLL_CTL_MOD, EPOLLIN);
}

static void send_next(int poll, Connection *c) {
    Piece piece = c->pieces[next_piece];
    if (++next_piece == piece_count) next_piece = 1;
    c->unsent = piece.start;
    c->unsent_length = piece.length;
    c->replies_missing = replies_per_request;
    c->sent_ns = now_ns();
    flush(poll, c, 0);
}

/* Whether a whole request was answered. */
static int answer(Connection *c) {
    while (c->replies_missing && take_reply(protocol, &c->in)) c->replies_missing--;
    if (c->replies_missing) return 0;
    keep_latency(c->sent_ns, now_ns());
    return 1;
}

static void report(double seconds) {
    if (!latency_count) fail("nothing was answered in time", "", 0);
    sort_latencies();
    printf("{\"requests\":%zu,\"seconds\":%.6f,", latency_count, seconds);
    printf("\"p50_us\":%.1f,\"p99_us\":%.1f,", latency_at(0.5), latency_at(0.99));
    printf("\"received_bytes\":%llu,\"client_busy_s\":%.3f}\n", (unsigned long long)bytes_received, busy_s());
}

static void run(int poll, Connection *connections, int count, size_t requests, double seconds) {
    uint64_t began_ns = now_ns(), end_ns = began_ns + (uint64_t)(seconds * 1e9), now = began_ns;
    size_t sent = 0;
    for (int number = 0; number < count && sent < requests; number++, sent++) send_next(poll, &connections[number]);
    while (latency_count < requests && now < end_ns) {
        struct epoll_event events[EVENTS];
        int ready = epoll_wait(poll, events, EVENTS, 1000);
        if (ready < 0 && errno != EINTR) fail_errno("epoll_wait");
        for (int number = 0; number < ready; number++) {
            Connection *c = events[number].data.ptr;
            if (events[number].events & EPOLLOUT) flush(poll, c, 1);
            if (!(events[number].events & ~(uint32_t)EPOLLOUT)) continue;
            receive(&c->in, READ_BYTES);
            if (c->replies_missing && answer(c) && sent < requests) {
                send_next(poll, c);
                sent++;
            }
        }
        now = now_ns();
    }
    report((double)(now - began_ns) / 1e9);
}

int main(int argc, char **argv) {
    static Connection connections[CONNECTIONS_MAX];
    if (argc != 8) fail("usage", "PROTOCOL PORT CONNECTIONS REQUESTS SECONDS REPLIES FILE", SHOWN_BYTES);
    protocol = protocol_named(argv[1]);
    int port = atoi(argv[2]), count = atoi(argv[3]);
    replies_per_request = atoi(argv[6]);
    if (count < 1 || count > CONNECTIONS_MAX) fail("connections", argv[3], strlen(argv[3]));
    size_t length;
    char *text = read_all(argv[7], &length);
    Piece *shared_pieces = cut(text, length, &piece_count);
    if (piece_count < 2) fail("nothing to send in", argv[7], strlen(argv[7]));
    int poll = epoll_create1(0);
    for (int number = 0; number < count; number++) {
        Connection *c = &connections[number];
        c->pieces = protocol == NATS ? numbered(text, length, number) : shared_pieces;
        open_socket(poll, &c->in, c, port, c->pieces[0]);
    }
    run(poll, connections, count, strtoul(argv[4], NULL, 10), atof(argv[5]));
    return 0;
}
