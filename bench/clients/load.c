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
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { CONNECTIONS_MAX = 1024, READ_BYTES = 1 << 18, EVENTS = 256, SHOWN_BYTES = 400 };

typedef enum { HTTP, RESP, NATS } Protocol;

typedef struct {
    const char *start;
    size_t length;
} Piece;

typedef struct {
    int socket;
    char *input;
    size_t filled, parsed, capacity;
    long values_missing; /* resp: values until the reply is complete; 0 is between replies */
    int replies_missing;
    const char *unsent;
    size_t unsent_length;
    uint64_t sent_ns;
    Piece *pieces;
} Connection;

static Protocol protocol;
static int replies_per_request;
static Piece *shared_pieces;
static size_t piece_count;
static size_t next_piece = 1;
static uint64_t bytes_received;
static float *latencies_us;
static size_t answered, latencies_capacity;

static void fail(const char *what, const char *text, size_t length) {
    fprintf(stderr, "load: %s: %.*s\n", what, (int)(length < SHOWN_BYTES ? length : SHOWN_BYTES), text);
    exit(1);
}

static void fail_errno(const char *what) {
    const char *text = strerror(errno);
    fail(what, text, strlen(text));
}

static void *grown(void *old, size_t bytes) {
    void *made = realloc(old, bytes);
    if (!made) fail_errno("memory");
    return made;
}

static uint64_t now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* What to send. */

static Piece *cut(char *text, size_t length) {
    size_t capacity = 0, count = 0;
    Piece *pieces = NULL;
    for (size_t at = 0; at + 4 <= length;) {
        uint32_t piece_length;
        memcpy(&piece_length, text + at, 4);
        if (count == capacity) pieces = grown(pieces, (capacity = capacity ? capacity * 2 : 64) * sizeof *pieces);
        pieces[count++] = (Piece){text + at + 4, piece_length};
        at += 4 + (size_t)piece_length;
        if (at > length) fail("the file ends inside a piece", "", 0);
    }
    piece_count = count;
    return pieces;
}

static char *read_all(const char *path, size_t *length) {
    FILE *file = fopen(path, "rb");
    if (!file || fseek(file, 0, SEEK_END)) fail_errno(path);
    *length = (size_t)ftell(file);
    rewind(file);
    char *text = grown(NULL, *length + 1);
    if (fread(text, 1, *length, file) != *length) fail_errno(path);
    fclose(file);
    return text;
}

static Piece *numbered(const char *text, size_t length, int number) {
    char digits[16];
    char *copy = grown(NULL, length);
    memcpy(copy, text, length);
    snprintf(digits, sizeof digits, "%06d", number);
    for (char *at = copy; (at = memmem(at, (size_t)(copy + length - at), "######", 6)); at += 6) memcpy(at, digits, 6);
    return cut(copy, length);
}

/* Replies. Each function looks at the unparsed bytes and returns whether one whole reply was taken. */

static int take_http(Connection *c) {
    char *text = c->input + c->parsed;
    size_t have = c->filled - c->parsed;
    char *end = memmem(text, have, "\r\n\r\n", 4);
    if (!end) return 0;
    static const char NAME[] = "\r\ncontent-length:";
    char *field = text;
    while (field < end && strncasecmp(field, NAME, sizeof NAME - 1)) field = memchr(field + 1, '\r', have);
    if (field == end) fail("an answer without Content-Length", text, have);
    size_t total = (size_t)(end + 4 - text) + strtoul(field + sizeof NAME - 1, NULL, 10);
    if (have < total) return 0;
    if (text[9] != '2') fail("the server answered", text, total);
    c->parsed += total;
    return 1;
}

static int take_resp(Connection *c) {
    if (!c->values_missing) c->values_missing = 1;
    while (c->values_missing) {
        char *text = c->input + c->parsed;
        size_t have = c->filled - c->parsed;
        char *end = memchr(text, '\n', have);
        if (!end) return 0;
        size_t total = (size_t)(end + 1 - text);
        if (*text == '-') fail("the server answered", text, total);
        if (*text == '$') {
            long bytes = strtol(text + 1, NULL, 10);
            if (bytes >= 0) total += (size_t)bytes + 2;
            if (have < total) return 0;
        } else if (*text == '*') {
            long members = strtol(text + 1, NULL, 10);
            if (members > 0) c->values_missing += members;
        }
        c->values_missing--;
        c->parsed += total;
    }
    return 1;
}

static int take_nats(Connection *c) {
    for (;;) {
        char *text = c->input + c->parsed;
        size_t have = c->filled - c->parsed;
        char *end = memchr(text, '\n', have);
        if (!end) return 0;
        size_t total = (size_t)(end + 1 - text);
        int is_message = !strncmp(text, "MSG ", 4);
        if (is_message) {
            char *size = end;
            while (size[-1] != ' ') size--;
            total += strtoul(size, NULL, 10) + 2;
            if (have < total) return 0;
        }
        int is_error = *text == '-' || (is_message && memmem(text, total, "\"error\"", 7));
        if (is_error) fail("the server answered", text, total);
        if (!strncmp(text, "PING", 4) && write(c->socket, "PONG\r\n", 6) != 6) fail_errno("write");
        c->parsed += total;
        if (is_message) return 1;
    }
}

static int take_reply(Connection *c) {
    if (c->parsed == c->filled) return 0;
    return protocol == HTTP ? take_http(c) : protocol == RESP ? take_resp(c) : take_nats(c);
}

/* Connections. */

static void watch(int poll, Connection *c, int change, uint32_t events) {
    struct epoll_event event = {.events = events, .data.ptr = c};
    if (epoll_ctl(poll, change, c->socket, &event)) fail_errno("epoll_ctl");
}

static void flush(int poll, Connection *c, int was_waiting) {
    ssize_t sent = write(c->socket, c->unsent, c->unsent_length);
    if (sent < 0 && errno != EAGAIN) fail_errno("write");
    if (sent > 0) {
        c->unsent += sent;
        c->unsent_length -= (size_t)sent;
    }
    if (c->unsent_length && !was_waiting) watch(poll, c, EPOLL_CTL_MOD, EPOLLIN | EPOLLOUT);
    if (!c->unsent_length && was_waiting) watch(poll, c, EPOLL_CTL_MOD, EPOLLIN);
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

static void open_connection(int poll, Connection *c, int port) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    int on = 1;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    c->socket = socket(AF_INET, SOCK_STREAM, 0);
    if (c->socket < 0 || connect(c->socket, (struct sockaddr *)&address, sizeof address)) fail_errno("connect");
    setsockopt(c->socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    Piece greeting = c->pieces[0];
    if (greeting.length && write(c->socket, greeting.start, greeting.length) != (ssize_t)greeting.length)
        fail_errno("greeting");
    if (fcntl(c->socket, F_SETFL, O_NONBLOCK)) fail_errno("fcntl");
    c->capacity = 2 * READ_BYTES;
    c->input = grown(NULL, c->capacity);
    watch(poll, c, EPOLL_CTL_ADD, EPOLLIN);
}

static void receive(Connection *c) {
    if (c->parsed == c->filled) c->parsed = c->filled = 0;
    if (c->capacity - c->filled < READ_BYTES) {
        memmove(c->input, c->input + c->parsed, c->filled - c->parsed);
        c->filled -= c->parsed;
        c->parsed = 0;
        while (c->capacity - c->filled < READ_BYTES) c->input = grown(c->input, c->capacity *= 2);
    }
    ssize_t got = read(c->socket, c->input + c->filled, READ_BYTES);
    if (got == 0) fail("the server closed a connection", "", 0);
    if (got < 0 && errno != EAGAIN) fail_errno("read");
    if (got > 0) {
        c->filled += (size_t)got;
        bytes_received += (uint64_t)got;
    }
}

/* Whether a whole request was answered. */
static int answer(Connection *c) {
    while (c->replies_missing && take_reply(c)) c->replies_missing--;
    if (c->replies_missing) return 0;
    if (answered == latencies_capacity) {
        latencies_capacity = latencies_capacity ? latencies_capacity * 2 : 1 << 16;
        latencies_us = grown(latencies_us, latencies_capacity * sizeof *latencies_us);
    }
    latencies_us[answered++] = (float)(now_ns() - c->sent_ns) / 1000;
    return 1;
}

static int by_size(const void *a, const void *b) {
    float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

static void report(double seconds) {
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    double busy = (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
                  (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
    if (!answered) fail("nothing was answered in time", "", 0);
    qsort(latencies_us, answered, sizeof *latencies_us, by_size);
    printf("{\"requests\":%zu,\"seconds\":%.6f,", answered, seconds);
    printf("\"p50_us\":%.1f,\"p99_us\":%.1f,", latencies_us[answered / 2], latencies_us[answered * 99 / 100]);
    printf("\"received_bytes\":%llu,\"client_busy_s\":%.3f}\n", (unsigned long long)bytes_received, busy);
}

static void run(int poll, Connection *connections, int count, size_t requests, double seconds) {
    uint64_t began_ns = now_ns(), end_ns = began_ns + (uint64_t)(seconds * 1e9), now = began_ns;
    size_t sent = 0;
    for (int number = 0; number < count && sent < requests; number++, sent++) send_next(poll, &connections[number]);
    while (answered < requests && now < end_ns) {
        struct epoll_event events[EVENTS];
        int ready = epoll_wait(poll, events, EVENTS, 1000);
        if (ready < 0 && errno != EINTR) fail_errno("epoll_wait");
        for (int number = 0; number < ready; number++) {
            Connection *c = events[number].data.ptr;
            if (events[number].events & EPOLLOUT) flush(poll, c, 1);
            if (!(events[number].events & ~(uint32_t)EPOLLOUT)) continue;
            receive(c);
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
    protocol = !strcmp(argv[1], "http") ? HTTP : !strcmp(argv[1], "resp") ? RESP : NATS;
    int port = atoi(argv[2]), count = atoi(argv[3]);
    replies_per_request = atoi(argv[6]);
    if (count < 1 || count > CONNECTIONS_MAX) fail("connections", argv[3], strlen(argv[3]));
    size_t length;
    char *text = read_all(argv[7], &length);
    shared_pieces = cut(text, length);
    if (piece_count < 2) fail("nothing to send in", argv[7], strlen(argv[7]));
    int poll = epoll_create1(0);
    for (int number = 0; number < count; number++) {
        connections[number].pieces = protocol == NATS ? numbered(text, length, number) : shared_pieces;
        open_connection(poll, &connections[number], port);
    }
    run(poll, connections, count, strtoul(argv[4], NULL, 10), atof(argv[5]));
    return 0;
}
