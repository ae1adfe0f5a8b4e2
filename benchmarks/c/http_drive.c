// The client of the HTTP benchmark: plays one scene with 127.0.0.1:PORT and prints one line of JSON, then waits for a byte on
// its standard input, so that the caller can read /proc of the proxy while the connections are open.
//
//   http_drive PORT PATH lat SECS               one POST at a time on one connection
//   http_drive PORT PATH tput SECS CONNECTIONS  one POST in flight on each
//   http_drive PORT PATH latv|tputv …           the same, and no two messages in a row have the same length
//   http_drive PORT PATH late|tpute …           the same, and each answer is one event, as the official SDKs answer
//   http_drive PORT PATH sselat N PACE_US SIZE  one POST answered by N events, each bearing the time it was sent
//   http_drive PORT PATH ssetput N SIZE         the same as fast as they come
//   http_drive PORT PATH idle CONNECTIONS       GET streams that say `endpoint` and then nothing
//   http_drive PORT PATH big SIZE REPS down|up  a large answer or a large request
//
// Every answer's status and every event's number is checked: what is lost, doubled or reordered ends the scene with {"error": …}.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { BODY_BYTES = 200, MIN_BODY_BYTES = 150, MAX_BODY_BYTES = 2050, MAX_SAMPLES = 1000000, READ_BYTES = 65536, TIMEOUT_S = 20, IDLE_TIMEOUT_S = 5, BATCH = 50 };

#define INITIALIZE                                                                                                     \
  "{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"initialize\",\"params\":{\"protocolVersion\":\"2025-06-18\","            \
  "\"capabilities\":{},\"clientInfo\":{\"name\":\"b\",\"version\":\"1\"}}}"
#define CALL "{\"jsonrpc\":\"2.0\",\"id\":%ld,\"method\":\"tools/call\",\"params\":{"
#define ECHO CALL "\"name\":\"echo\",\"arguments\":{\"n\":%ld"

// Reads responses: by Content-Length, chunked, or up to the close.
struct reader {
  int fd;
  char *input;
  size_t length, capacity;
  enum { HEAD, BODY } state;
  int status, chunked;
  long content_length; // -1 where there is none
  enum { SIZE_LINE, DATA, DATA_END, LAST } chunk_state;
  long chunk_left;
  size_t received; // bytes of this body so far
  char *body;      // only where it is kept
  size_t body_length, body_capacity;
};

static int port;
static const char *path;
static char session[128]; // what the server called it, or ""
static long requests;
static enum { FIXED, VARIED, EVENTS } calls; // lengths of requests and results; or each result is an event

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec + time.tv_nsec * 1e-9;
}

static void fail(const char *why) {
  printf("\n{\"error\":\"%s\"}\n", why); // on a line of its own: the line before may be half written
  fflush(stdout);
  exit(2);
}

static void set_timeout(int fd, int seconds) {
  struct timeval timeout = {seconds, 0};
  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof timeout);
}

static int open_connection(void) {
  int fd = socket(AF_INET, SOCK_STREAM, 0), one = 1;
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr = {htonl(INADDR_LOOPBACK)}};
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  if (connect(fd, (void *)&address, sizeof address))
    fail("connect");
  set_timeout(fd, TIMEOUT_S);
  return fd;
}

static void send_all(int fd, const char *bytes, size_t count) {
  while (count) {
    ssize_t sent = send(fd, bytes, count, MSG_NOSIGNAL);
    if (sent <= 0)
      fail("send");
    bytes += sent;
    count -= sent;
  }
}

// Head and body in one write, as real clients do with small bodies; a large body follows in writes of its own.
static void post(int fd, const char *body, size_t count) {
  static char request[8192];
  int head = sprintf(request,
                     "POST %s HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nContent-Type: application/json\r\n"
                     "Accept: application/json, text/event-stream\r\n%s%s%sContent-Length: %zu\r\n\r\n",
                     path, port, *session ? "Mcp-Session-Id: " : "", session, *session ? "\r\n" : "", count);
  if (head + count <= sizeof request) {
    memcpy(request + head, body, count);
    send_all(fd, request, head + count);
  } else {
    send_all(fd, request, head);
    send_all(fd, body, count);
  }
}

static void drop(struct reader *r, size_t count) {
  r->length -= count;
  memmove(r->input, r->input + count, r->length);
}

static int read_head(struct reader *r) {
  char *end = memmem(r->input, r->length, "\r\n\r\n", 4);
  if (!end)
    return 0;
  *end = 0;
  r->status = atoi(r->input + 9);
  char *length = strcasestr(r->input, "\r\ncontent-length:");
  char *id = strcasestr(r->input, "\r\nmcp-session-id:");
  r->content_length = length ? atol(length + 17) : -1;
  r->chunked = strcasestr(r->input, "\r\ntransfer-encoding: chunked") != NULL;
  if (id)
    sscanf(id + 17, " %127[^\r]", session);
  drop(r, end - r->input + 4);
  r->state = BODY;
  r->chunk_state = SIZE_LINE;
  r->received = r->body_length = 0;
  return 1;
}

static void take(struct reader *r, const char *bytes, size_t count, int keep) {
  r->received += count;
  if (!keep)
    return;
  if (r->body_capacity - r->body_length < count) {
    r->body_capacity = (r->body_length + count) * 2 + 4096;
    r->body = realloc(r->body, r->body_capacity);
  }
  memcpy(r->body + r->body_length, bytes, count);
  r->body_length += count;
}

static int read_chunks(struct reader *r, int keep) {
  size_t at = 0;
  int done = 0;
  while (!done) {
    size_t left = r->length - at;
    if (r->chunk_state == SIZE_LINE) {
      char *end = memchr(r->input + at, '\n', left);
      if (!end)
        break;
      r->chunk_left = strtol(r->input + at, NULL, 16);
      at = end - r->input + 1;
      r->chunk_state = r->chunk_left ? DATA : LAST;
    } else if (r->chunk_state == DATA) {
      size_t count = (long)left > r->chunk_left ? (size_t)r->chunk_left : left;
      if (!count)
        break;
      take(r, r->input + at, count, keep);
      at += count;
      r->chunk_left -= count;
      if (!r->chunk_left)
        r->chunk_state = DATA_END;
    } else { // the line end after a chunk's data, or after the last chunk
      if (left < 2)
        break;
      at += 2;
      done = r->chunk_state == LAST;
      r->chunk_state = SIZE_LINE;
    }
  }
  drop(r, at);
  return done;
}

// Use what has been read; 1 when that completed a response.
static int consume(struct reader *r, int keep) {
  int done = 0;
  if (r->state == HEAD && !read_head(r))
    return 0;
  if (r->chunked) {
    done = read_chunks(r, keep);
  } else {
    size_t wanted = r->content_length < 0 ? r->length : r->content_length - r->received;
    size_t count = r->length < wanted ? r->length : wanted;
    take(r, r->input, count, keep);
    drop(r, count);
    done = (long)r->received == r->content_length;
  }
  if (done)
    r->state = HEAD;
  return done;
}

static ssize_t fill(struct reader *r) {
  if (r->capacity - r->length < READ_BYTES) {
    r->capacity = r->capacity ? r->capacity * 2 : 1 << 20;
    r->input = realloc(r->input, r->capacity + 1);
  }
  ssize_t count = recv(r->fd, r->input + r->length, r->capacity - r->length, 0);
  if (count > 0)
    r->length += count;
  return count;
}

static void receive(struct reader *r) {
  while (!consume(r, 0)) {
    ssize_t count = fill(r);
    if (count < 0)
      fail("recv timeout");
    if (count == 0) {
      if (r->state == BODY && r->content_length < 0 && !r->chunked)
        return; // the close is its end
      fail("eof");
    }
  }
}

static int ascending(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return x < y ? -1 : x > y;
}

static void print_times(double *took, size_t count) {
  double sum = 0;
  if (!count)
    fail("no samples");
  qsort(took, count, sizeof *took, ascending);
  for (size_t i = 0; i < count; i++)
    sum += took[i];
  printf(",\"n\":%zu,\"p50_us\":%.2f,\"p99_us\":%.2f,\"max_us\":%.1f,\"mean_us\":%.2f", count, took[count / 2] * 1e6,
         took[(size_t)(count * .99)] * 1e6, took[count - 1] * 1e6, sum / count * 1e6);
}

static void post_call(int fd, long id) {
  char body[MAX_BODY_BYTES + 1];
  size_t size = calls == VARIED ? MIN_BODY_BYTES + id * 7919 % (MAX_BODY_BYTES - MIN_BODY_BYTES) : BODY_BYTES;
  size_t head = calls == EVENTS ? sprintf(body, ECHO ",\"sse\":1,\"size\":200,\"pad\":\"", id, 128L)
                                : sprintf(body, ECHO ",\"pad\":\"", id, calls == VARIED ? id * 104729 % 3000 : 128L);
  memset(body + head, 'p', size - head - 4);
  memcpy(body + size - 4, "\"}}}", 4);
  post(fd, body, size);
}

static void latency(struct reader *r, double seconds) {
  double *took = malloc(MAX_SAMPLES * sizeof *took), warm = now() + .2, start = 0;
  size_t count = 0;
  for (long id = 1; count < MAX_SAMPLES; id++) {
    double before = now();
    if (!start && before > warm)
      start = before;
    if (start && before - start > seconds)
      break;
    before = now();
    post_call(r->fd, id);
    receive(r);
    double after = now();
    if (r->status != 200)
      fail("status");
    if (start)
      took[count++] = after - before;
    requests++;
  }
  print_times(took, count);
}

static void throughput(double seconds, int connections) {
  struct reader *readers = calloc(connections, sizeof *readers);
  struct epoll_event events[256];
  int epoll = epoll_create1(0);
  long id = 1, done = 0, done_before = 0;
  for (int i = 0; i < connections; i++) {
    struct epoll_event event = {EPOLLIN, {.ptr = readers + i}};
    readers[i].fd = open_connection();
    epoll_ctl(epoll, EPOLL_CTL_ADD, readers[i].fd, &event);
  }
  for (int i = 0; i < connections; i++)
    post_call(readers[i].fd, id++);
  double warm = now() + .25, start = 0, time;
  for (;;) {
    int count = epoll_wait(epoll, events, 256, TIMEOUT_S * 1000);
    if (count <= 0)
      fail("tput timeout");
    time = now();
    if (!start && time > warm) {
      start = time;
      done_before = done;
    }
    if (start && time - start > seconds)
      break;
    for (int i = 0; i < count; i++) {
      struct reader *r = events[i].data.ptr;
      if (fill(r) <= 0)
        fail("tput eof");
      while (consume(r, 0)) {
        if (r->status != 200)
          fail("tput status");
        done++;
        post_call(r->fd, id++);
      }
    }
  }
  requests += done;
  printf(",\"req_s\":%.1f", (done - done_before) / (time - start));
}

// Take the whole events out of the body; `took` gets how long each was under way, where it is wanted.
static long take_events(struct reader *r, long seen, long wanted, double *took) {
  char *at = r->body, *end;
  size_t left = r->body_length;
  double time = now();
  while ((end = memmem(at, left, "\n\n", 2))) {
    size_t head = end - at < 200 ? end - at : 200;
    char *number = memmem(at, head, "\"i\":", 4), *sent = memmem(at, head, "\"t\":", 4);
    if (seen == wanted)
      fail("sse count");
    if (!number || !sent || strtol(number + 4, NULL, 10) != seen)
      fail("sse order");
    if (took)
      took[seen] = time - strtoll(sent + 4, NULL, 10) * 1e-9;
    seen++;
    left -= end + 2 - at;
    at = end + 2;
  }
  memmove(r->body, at, left);
  r->body_length = left;
  return seen;
}

static void stream(struct reader *r, long wanted, long pace_us, long size, int timed) {
  double *took = timed ? malloc(wanted * sizeof *took) : NULL, first = 0;
  char body[BODY_BYTES];
  int count = sprintf(body, CALL "\"sse\":%ld,\"size\":%ld,\"pace\":%ld}}", 7L, wanted, size, pace_us);
  double start = now();
  long seen = 0;
  post(r->fd, body, count);
  for (int done = 0; !done;) {
    ssize_t got = fill(r);
    if (got < 0)
      fail("sse timeout");
    if (got == 0)
      break;
    done = consume(r, 1);
    if (r->body_length)
      seen = take_events(r, seen, wanted, took);
    if (seen && !first)
      first = now() - start;
  }
  double seconds = now() - start;
  if (seen != wanted)
    fail("sse count");
  if (timed)
    print_times(took, seen);
  printf(",\"first_ms\":%.2f,\"ev_s\":%.1f,\"MB_s\":%.2f,\"secs\":%.3f", first * 1e3, wanted / seconds,
         wanted * size / seconds / 1e6, seconds);
  requests++;
}

// 1 if the stream said `endpoint` in time.
static int greets(struct reader *r) {
  set_timeout(r->fd, IDLE_TIMEOUT_S);
  while (fill(r) > 0) {
    consume(r, 1);
    if (r->body_length && memmem(r->body, r->body_length, "endpoint", 8)) {
      free(r->input);
      free(r->body);
      return 1;
    }
  }
  return 0;
}

static void idle(int connections) {
  struct reader *readers = calloc(connections, sizeof *readers);
  char request[1024];
  int count = sprintf(request, "GET %s HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nAccept: text/event-stream\r\n\r\n", path, port);
  int opened = 0, greeted = 0;
  double start = now();
  while (opened < connections && greeted == opened) { // ends early where a stream is refused
    int batch = opened + BATCH < connections ? opened + BATCH : connections;
    for (int i = opened; i < batch; i++) {
      readers[i].fd = open_connection();
      readers[i].capacity = 2 * READ_BYTES;
      readers[i].input = malloc(readers[i].capacity + 1);
      send_all(readers[i].fd, request, count);
    }
    for (; opened < batch; opened++)
      if (greets(readers + opened))
        greeted++;
      else
        break;
    if (opened < batch)
      break;
  }
  printf(",\"ok\":%d,\"secs\":%.2f", greeted, now() - start);
}

static void large(struct reader *r, size_t size, int repetitions, int up) {
  double *took = calloc(repetitions, sizeof *took);
  char *body = malloc(size + 1024);
  for (int i = 0; i < repetitions; i++) {
    size_t count;
    if (up) {
      size_t head = sprintf(body, ECHO ",\"pad\":\"", i + 1L, 8L);
      memset(body + head, 'p', size - head - 4);
      memcpy(body + size - 4, "\"}}}", 4);
      count = size;
    } else {
      count = sprintf(body, ECHO "}}}", i + 1L, (long)size);
    }
    double before = now();
    post(r->fd, body, count);
    receive(r);
    took[i] = now() - before;
    requests++;
    if (r->status != 200)
      fail("big status");
    if (!up && r->received < size)
      fail("short");
  }
  qsort(took, repetitions, sizeof *took, ascending);
  double median = took[repetitions / 2];
  printf(",\"med_ms\":%.2f,\"MB_s\":%.2f", median * 1e3, size / median / 1e6);
}

int main(int argc, char **argv) {
  struct rlimit files = {20000, 20000};
  char *arguments[4] = {"0", "0", "0", "0"};
  if (argc < 5) {
    fprintf(stderr, "usage: http_drive PORT PATH lat[v|e]|tput[v|e]|sselat|ssetput|idle|big A [B [C]]\n");
    return 2;
  }
  for (int i = 4; i < argc && i < 8; i++)
    arguments[i - 4] = argv[i];
  setrlimit(RLIMIT_NOFILE, &files);
  port = atoi(argv[1]);
  path = argv[2];
  char *mode = argv[3];
  long a = atol(arguments[0]), b = atol(arguments[1]), c = atol(arguments[2]);
  printf("{\"mode\":\"%s\"", mode);
  size_t last = strlen(mode) - 1;
  if (!strcmp(mode, "latv") || !strcmp(mode, "tputv"))
    calls = VARIED;
  else if (!strcmp(mode, "late") || !strcmp(mode, "tpute"))
    calls = EVENTS;
  if (calls != FIXED)
    mode[last] = 0;
  struct reader first = {.fd = open_connection()};
  if (!getenv("NOINIT")) { // learn the session id, if there is one
    post(first.fd, INITIALIZE, strlen(INITIALIZE));
    receive(&first);
    if (first.status != 200)
      fail("initialize refused");
  }
  requests = 1;
  if (!strcmp(mode, "lat"))
    latency(&first, atof(arguments[0]));
  else if (!strcmp(mode, "tput"))
    throughput(atof(arguments[0]), b);
  else if (!strcmp(mode, "sselat"))
    stream(&first, a, b, c, 1);
  else if (!strcmp(mode, "ssetput"))
    stream(&first, a, 0, b, 0);
  else if (!strcmp(mode, "idle"))
    idle(a);
  else if (!strcmp(mode, "big"))
    large(&first, a, b, !strcmp(arguments[2], "up"));
  printf(",\"reqs\":%ld}\n", requests);
  fflush(stdout);
  char byte;
  return read(0, &byte, 1) < 0;
}
