/* What the clients share: pieces to send, connections to loopback, and replies cut by their protocol's framing. */
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

enum { EVENTS = 256, SHOWN_BYTES = 400 };

typedef enum { HTTP, RESP, NATS } Protocol;

typedef struct {
    const char *start;
    size_t length;
} Piece;

/* A socket and what has come over it. */
typedef struct {
    int socket;
    char *text;
    size_t filled, parsed, capacity;
    long values_missing; /* resp: values until the reply is complete; 0 is between replies */
} Input;

static uint64_t bytes_received;

static void fail(const char *what, const char *text, size_t length) {
    fprintf(stderr, PROGRAM ": %s: %.*s\n", what, (int)(length < SHOWN_BYTES ? length : SHOWN_BYTES), text);
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

static double busy_s(void) {
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

static Protocol protocol_named(const char *name) {
    return !strcmp(name, "http") ? HTTP : !strcmp(name, "resp") ? RESP : NATS;
}

/* What to send: pieces, each a 32-bit little-endian length and its bytes. */

static Piece *cut(char *text, size_t length, size_t *piece_count) {
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
    *piece_count = count;
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

/* Connections. */

static void watch_socket(int poll, Input *in, void *owner, int change, uint32_t events) {
    struct epoll_event event = {.events = events, .data.ptr = owner};
    if (epoll_ctl(poll, change, in->socket, &event)) fail_errno("epoll_ctl");
}

static void open_socket(int poll, Input *in, void *owner, int port, Piece greeting) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    int on = 1;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    in->socket = socket(AF_INET, SOCK_STREAM, 0);
    if (in->socket < 0 || connect(in->socket, (struct sockaddr *)&address, sizeof address)) fail_errno("connect");
    setsockopt(in->socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    if (greeting.length && write(in->socket, greeting.start, greeting.length) != (ssize_t)greeting.length)
        fail_errno("greeting");
    if (fcntl(in->socket, F_SETFL, O_NONBLOCK)) fail_errno("fcntl");
    watch_socket(poll, in, owner, EPOLL_CTL_ADD, EPOLLIN);
}

/* Read once, at most so many bytes; what is parsed makes room. */
static void receive(Input *in, size_t read_bytes) {
    if (in->parsed == in->filled) in->parsed = in->filled = 0;
    if (in->capacity - in->filled < read_bytes) {
        if (in->parsed) memmove(in->text, in->text + in->parsed, in->filled - in->parsed);
        in->filled -= in->parsed;
        in->parsed = 0;
        while (in->capacity - in->filled < read_bytes)
            in->text = grown(in->text, in->capacity = in->capacity ? in->capacity * 2 : 2 * read_bytes);
    }
    ssize_t got = read(in->socket, in->text + in->filled, read_bytes);
    if (got == 0) fail("the server closed a connection", in->text + in->parsed, in->filled - in->parsed);
    if (got < 0 && errno != EAGAIN) fail_errno("read");
    if (got > 0) {
        in->filled += (size_t)got;
        bytes_received += (uint64_t)got;
    }
}

/* Replies. Each function looks at the unparsed bytes and returns whether one whole reply was taken. */

static int take_http(Input *in) {
    char *text = in->text + in->parsed;
    size_t have = in->filled - in->parsed;
    char *end = memmem(text, have, "\r\n\r\n", 4);
    if (!end) return 0;
    static const char NAME[] = "\r\ncontent-length:";
    char *field = text;
    while (field < end && strncasecmp(field, NAME, sizeof NAME - 1)) field = memchr(field + 1, '\r', have);
    if (field == end) fail("an answer without Content-Length", text, have);
    size_t total = (size_t)(end + 4 - text) + strtoul(field + sizeof NAME - 1, NULL, 10);
    if (have < total) return 0;
    if (text[9] != '2') fail("the server answered", text, total);
    in->parsed += total;
    return 1;
}

static int take_resp(Input *in) {
    if (!in->values_missing) in->values_missing = 1;
    while (in->values_missing) {
        char *text = in->text + in->parsed;
        size_t have = in->filled - in->parsed;
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
            if (members > 0) in->values_missing += members;
        }
        in->values_missing--;
        in->parsed += total;
    }
    return 1;
}

static int take_nats(Input *in) {
    for (;;) {
        char *text = in->text + in->parsed;
        size_t have = in->filled - in->parsed;
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
        if (!strncmp(text, "PING", 4) && write(in->socket, "PONG\r\n", 6) != 6) fail_errno("write");
        in->parsed += total;
        if (is_message) return 1;
    }
}

static int take_reply(Protocol protocol, Input *in) {
    if (in->parsed == in->filled) return 0;
    return protocol == HTTP ? take_http(in) : protocol == RESP ? take_resp(in) : take_nats(in);
}

/* Latencies. */

static float *latencies_us;
static size_t latency_count, latencies_capacity;

static void keep_latency(uint64_t since_ns, uint64_t until_ns) {
    if (latency_count == latencies_capacity) {
        latencies_capacity = latencies_capacity ? latencies_capacity * 2 : 1 << 16;
        latencies_us = grown(latencies_us, latencies_capacity * sizeof *latencies_us);
    }
    latencies_us[latency_count++] = (float)(until_ns - since_ns) / 1000;
}

static int by_size(const void *a, const void *b) {
    float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

static void sort_latencies(void) { qsort(latencies_us, latency_count, sizeof *latencies_us, by_size); }

/* Of those sorted; `share` is 0.99 for the 99th percentile. */
static float latency_at(double share) { return latencies_us[(size_t)((double)latency_count * share)]; }
