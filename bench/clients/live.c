/* Watchers and writers of one log, for loopback: how long a record takes from its write to everybody who follows.
 *
 *     live PROTOCOL PORT WATCHERS WRITERS WRITES WINDOW RATE SECONDS FILE
 *
 * WRITERS connections write, each its next record when the last one is acked; all of it stops while WINDOW writes have
 * not reached all WATCHERS, or when RATE is not 0, until the next one is due. The run ends when WRITES were made or
 * SECONDS are over and everybody has everything, and prints one line of JSON. PROTOCOL frames the acks, see `wire.h`.
 * Before, it prints `ready` when all are connected, and waits for a line to begin.
 *
 * FILE holds pieces, each a 32-bit little-endian length and its bytes: how a watcher asks for more, without the place
 * where it goes on (empty when it is sent more by itself); what a watcher is sent once it follows (empty when it follows
 * at once); the greeting of a writer; a greeting for each watcher; and the writes, over and over. In what a writer
 * sends, `######` becomes its number.
 *
 * Every record has a stamp, `"live":"<nanoseconds>-<writer>-<number>"`, which its writer fills in. A watcher looks for
 * stamps and for nothing else, whatever they are wrapped in: it must get the numbers of each writer in order, each one
 * once, or the run ends with exit code 1. One thread, one epoll.
 */
#define PROGRAM "live"
#include "wire.h"

enum { READ_BYTES = 1 << 14, DIGITS = 12, NS_DIGITS = 20, STAMP_BYTES = NS_DIGITS + 2 * (1 + DIGITS) };

static const char MARK[] = "\"live\":\"";
static const size_t MARK_BYTES = sizeof MARK - 1;
static const uint64_t LATE_NS = 60000000000u; /* Nothing that must come takes longer. */

typedef struct {
    Input in;
    int number;
    int under_way;
    size_t written;
    char *request;
} Writer;

typedef struct {
    Input in;
    int is_ready;
    size_t *heard; /* by writer */
} Watcher;

static Protocol protocol;
static Piece again, ready_text, *writes;
static size_t write_count, watcher_count, writer_count;
static size_t sent, next_write, deliveries;
static Writer *writers;
static Watcher *watchers;

/* Writing. */

static size_t fill(char *to, Piece from, int number) {
    char digits[16];
    memcpy(to, from.start, from.length);
    snprintf(digits, sizeof digits, "%06d", number);
    for (char *at = to; (at = memmem(at, (size_t)(to + from.length - at), "######", 6)); at += 6) memcpy(at, digits, 6);
    return from.length;
}

static void write_next(Writer *w, uint64_t since_ns) {
    size_t length = fill(w->request, writes[next_write], w->number);
    char stamp[64];
    char *at = memmem(w->request, length, MARK, MARK_BYTES);
    if (!at) fail("a write without a stamp", w->request, length);
    snprintf(stamp, sizeof stamp, "%0*llu-%0*d-%0*zu", NS_DIGITS, (unsigned long long)since_ns, DIGITS, w->number,
             DIGITS, w->written);
    memcpy(at + MARK_BYTES, stamp, STAMP_BYTES);
    if (++next_write == write_count) next_write = 0;
    if (write(w->in.socket, w->request, length) != (ssize_t)length) fail_errno("write");
    w->under_way = 1;
    w->written++;
    sent++;
}

static void acked(Writer *w) {
    receive(&w->in, READ_BYTES);
    while (take_reply(protocol, &w->in)) w->under_way = 0;
}

/* Watching. */

static void deliver(Watcher *w, const char *stamp, uint64_t now) {
    uint64_t since_ns = strtoull(stamp, NULL, 10);
    size_t writer = strtoul(stamp + NS_DIGITS + 1, NULL, 10);
    size_t number = strtoul(stamp + NS_DIGITS + 1 + DIGITS + 1, NULL, 10);
    if (writer >= writer_count || number != w->heard[writer]) fail("lost, repeated or out of order", stamp, STAMP_BYTES);
    w->heard[writer]++;
    deliveries++;
    keep_latency(since_ns, now);
}

/* The stamps in a text; returns how much of it need not be looked at again. */
static size_t scan(Watcher *w, const char *text, size_t length, uint64_t now) {
    const char *at = text, *end = text + length, *found;
    while ((found = memmem(at, (size_t)(end - at), MARK, MARK_BYTES))) {
        if ((size_t)(end - found) < MARK_BYTES + STAMP_BYTES) return (size_t)(found - text);
        deliver(w, found + MARK_BYTES, now);
        at = found + MARK_BYTES + STAMP_BYTES;
    }
    size_t left = (size_t)(end - at);
    return length - (left < MARK_BYTES ? left : MARK_BYTES - 1);
}

/* XREAD: the reply to one question; the next one goes on behind the last entry. */
static void ask_again(Watcher *w, const char *reply, size_t length) {
    static const char FIELDS[] = "\r\n*2\r\n$4\r\ndata\r\n";
    const char *last = NULL, *at = reply, *end = reply + length;
    while ((at = memmem(at, (size_t)(end - at), FIELDS, sizeof FIELDS - 1))) last = at++;
    if (!last) fail("an answer without entries", reply, length);
    const char *id = last;
    while (id[-1] != '\n') id--;
    char question[512];
    int size = snprintf(question, sizeof question, "%.*s$%d\r\n%.*s\r\n", (int)again.length, again.start,
                        (int)(last - id), (int)(last - id), id);
    if (write(w->in.socket, question, (size_t)size) != size) fail_errno("write");
}

static void hear(Watcher *w) {
    Input *in = &w->in;
    receive(in, READ_BYTES);
    uint64_t now = now_ns();
    if (!w->is_ready) {
        char *found = memmem(in->text + in->parsed, in->filled - in->parsed, ready_text.start, ready_text.length);
        if (!found) return;
        w->is_ready = 1;
        in->parsed = (size_t)(found - in->text) + ready_text.length;
    }
    if (!again.length) {
        in->parsed += scan(w, in->text + in->parsed, in->filled - in->parsed, now);
        return;
    }
    size_t start = in->parsed;
    while (in->parsed < in->filled && take_resp(in)) {
        scan(w, in->text + start, in->parsed - start, now);
        ask_again(w, in->text + start, in->parsed - start);
        start = in->parsed;
    }
    if (in->values_missing) {
        /* Look at the reply from its beginning when the rest has come. */
        in->parsed = start;
        in->values_missing = 0;
    }
}

/* The run. */

static void wait_for_events(int poll, int timeout_ms) {
    struct epoll_event events[EVENTS];
    int ready = epoll_wait(poll, events, EVENTS, timeout_ms);
    if (ready < 0 && errno != EINTR) fail_errno("epoll_wait");
    for (int number = 0; number < ready; number++) {
        void *owner = events[number].data.ptr;
        if ((Writer *)owner >= writers && (Writer *)owner < writers + writer_count) acked(owner);
        else hear(owner);
    }
}

static void open_all(int poll, int port, Piece writer_greeting, Piece *watcher_greetings) {
    size_t longest = writer_greeting.length;
    for (size_t number = 0; number < write_count; number++)
        if (writes[number].length > longest) longest = writes[number].length;
    for (size_t number = 0; number < watcher_count; number++) {
        Watcher *w = &watchers[number];
        w->heard = calloc(writer_count, sizeof *w->heard);
        w->is_ready = !ready_text.length;
        open_socket(poll, &w->in, w, port, watcher_greetings[number]);
        /* One after the other: the queue of a listener is short. */
        uint64_t end_ns = now_ns() + LATE_NS;
        while (!w->is_ready) {
            wait_for_events(poll, 1000);
            if (now_ns() > end_ns) fail("a watcher was told something else", w->in.text, w->in.filled);
        }
    }
    for (size_t number = 0; number < writer_count; number++) {
        Writer *w = &writers[number];
        w->number = (int)number;
        w->request = grown(NULL, longest);
        size_t length = fill(w->request, writer_greeting, w->number);
        open_socket(poll, &w->in, w, port, (Piece){w->request, length});
    }
}

static double run(int poll, size_t count, size_t window, double rate, double seconds) {
    uint64_t began_ns = now_ns(), now = began_ns, due_ns = began_ns;
    uint64_t end_ns = began_ns + (uint64_t)(seconds * 1e9), gap_ns = rate > 0 ? (uint64_t)(1e9 / rate) : 0;
    for (;;) {
        int is_over = sent == count || now >= end_ns;
        if (is_over && deliveries == sent * watcher_count) return (double)(now - began_ns) / 1e9;
        if (now >= end_ns + LATE_NS) fail("not everything was delivered", "", 0);
        for (size_t number = 0; number < writer_count && !is_over; number++) {
            Writer *w = &writers[number];
            if (w->under_way || sent == count || sent - deliveries / watcher_count >= window || now < due_ns) continue;
            write_next(w, gap_ns ? due_ns : now_ns());
            due_ns += gap_ns;
        }
        int timeout_ms = 1000;
        if (gap_ns && !is_over) timeout_ms = due_ns > now ? (int)((due_ns - now) / 1000000) : 0;
        wait_for_events(poll, timeout_ms);
        now = now_ns();
    }
}

static void allow_many_files(void) {
    struct rlimit files;
    getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
}

int main(int argc, char **argv) {
    if (argc != 10) fail("usage", "PROTOCOL PORT WATCHERS WRITERS WRITES WINDOW RATE SECONDS FILE", SHOWN_BYTES);
    protocol = protocol_named(argv[1]);
    watcher_count = strtoul(argv[3], NULL, 10);
    writer_count = strtoul(argv[4], NULL, 10);
    size_t length, piece_count;
    char *text = read_all(argv[9], &length);
    Piece *pieces = cut(text, length, &piece_count);
    if (piece_count < 4 + watcher_count || !watcher_count || !writer_count) fail("too little in", argv[9], SHOWN_BYTES);
    again = pieces[0];
    ready_text = pieces[1];
    writes = pieces + 3 + watcher_count;
    write_count = piece_count - 3 - watcher_count;
    watchers = calloc(watcher_count, sizeof *watchers);
    writers = calloc(writer_count, sizeof *writers);
    allow_many_files();
    int poll = epoll_create1(0);
    open_all(poll, atoi(argv[2]), pieces[2], pieces + 3);
    puts("ready");
    fflush(stdout);
    getchar();
    double busy_before_s = busy_s();
    double seconds =
        run(poll, strtoul(argv[5], NULL, 10), strtoul(argv[6], NULL, 10), atof(argv[7]), atof(argv[8]));
    if (!deliveries) fail("nothing was written in time", "", 0);
    sort_latencies();
    printf("{\"writes\":%zu,\"deliveries\":%zu,\"seconds\":%.6f,", sent, deliveries, seconds);
    printf("\"p50_us\":%.1f,\"p99_us\":%.1f,", latency_at(0.5), latency_at(0.99));
    printf("\"received_bytes\":%llu,\"client_busy_s\":%.3f}\n", (unsigned long long)bytes_received,
           busy_s() - busy_before_s);
    return 0;
}
