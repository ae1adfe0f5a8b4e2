// The client of the stdio benchmark: starts COMMAND, plays one scene with it and prints one line of JSON. Then it waits for
// a byte on its standard input, so that the caller can read /proc of the processes, and ends COMMAND by closing its input.
//
//   stdio_drive lat  SIZE SECS 0      -- COMMAND…   one request at a time: round trip times
//   stdio_drive pipe SIZE SECS WINDOW -- COMMAND…   WINDOW requests in flight: messages per second
//   stdio_drive big  SIZE REPS s2c    -- COMMAND…   a large answer (s2c) or a large request (c2s): bytes per second
//   stdio_drive idle 0 0 0            -- COMMAND…   the handshake only
//
// SIZE is the length of a request with its line end, and of its answer. Ids are checked in order: a proxy that drops, doubles
// or reorders messages ends the scene with {"error": …}. COMMAND gets pipes, as Python clients give, or with SOCK=1 UNIX
// sockets, as Node clients do.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { TIMEOUT_MS = 15000, MAX_SAMPLES = 2000000, ID_BYTES = 64 };
static const double WARM_UP_S = 0.15;

#define REQUEST "{\"jsonrpc\":\"2.0\",\"id\":%ld,\"method\":\"tools/call\",\"params\":{\"name\":\"echo\",\"arguments\":{\"n\":%zu"
#define PADDED ",\"pad\":\""
#define INITIALIZE                                                                                                     \
  "{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"initialize\",\"params\":{\"protocolVersion\":\"2025-06-18\","            \
  "\"capabilities\":{},\"clientInfo\":{\"name\":\"bench\",\"version\":\"1\"}}}\n"
#define INITIALIZED "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}\n"

static int to_server, from_server;
static pid_t server;
static char *buffer; // bytes read and not yet used
static size_t capacity = 4 << 20, length;
static long next_id = 1;
static long messages; // what we sent, requests and one notification

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec + time.tv_nsec * 1e-9;
}

static void fail(const char *why) {
  printf("\n{\"error\":\"%s\"}\n", why); // on a line of its own: the line before may be half written
  fflush(stdout);
  kill(-server, SIGKILL);
  exit(2);
}

// Write all, waiting where the pipe is full. What the server says meanwhile stays in its pipe.
static void send_all(const char *bytes, size_t count) {
  while (count) {
    ssize_t written = write(to_server, bytes, count);
    if (written < 0) {
      struct pollfd writable = {to_server, POLLOUT, 0};
      if (errno != EAGAIN)
        fail("write");
      if (poll(&writable, 1, TIMEOUT_MS) <= 0)
        fail("write timeout");
      continue;
    }
    bytes += written;
    count -= written;
  }
}

static long id_of(const char *line, size_t count) {
  char *found = memmem(line, count < 300 ? count : 300, "\"id\":", 5);
  if (!found)
    found = memmem(line, count, "\"id\":", 5);
  return found ? strtol(found + 5, 0, 10) : -1;
}

// Read up to the answer to `id`; returns its length. Lines without an id are passed over.
static size_t receive(long id) {
  size_t searched = 0;
  for (;;) {
    char *end = memchr(buffer + searched, '\n', length - searched);
    if (end) {
      size_t count = end - buffer;
      long got = id_of(buffer, count);
      length -= count + 1;
      memmove(buffer, end + 1, length);
      if (got == id)
        return count + 1;
      if (got != -1)
        fail("id mismatch");
      searched = 0;
      continue;
    }
    searched = length;
    if (length == capacity) {
      capacity *= 2;
      buffer = realloc(buffer, capacity);
    }
    ssize_t got = read(from_server, buffer + length, capacity - length);
    if (got < 0 && errno == EAGAIN) {
      struct pollfd readable = {from_server, POLLIN, 0};
      if (poll(&readable, 1, TIMEOUT_MS) <= 0)
        fail("read timeout");
      continue;
    }
    if (got <= 0)
      fail("eof");
    length += got;
  }
}

// A request of `size` bytes, line end included, whose answer has about the same size.
static size_t make_request(char *to, long id, size_t size) {
  size_t answer = size > 80 ? size - 74 - snprintf(0, 0, "%ld", id) : 8;
  size_t head = sprintf(to, REQUEST PADDED, id, answer);
  size_t padding = size > head + 5 ? size - head - 5 : 0;
  memset(to + head, 'p', padding);
  memcpy(to + head + padding, "\"}}}\n", 5);
  return head + padding + 5;
}

static void round_trip(char *scratch, size_t size) {
  send_all(scratch, make_request(scratch, next_id, size));
  receive(next_id++);
  messages++;
}

static int ascending(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return x < y ? -1 : x > y;
}

static void latency(size_t size, double seconds) {
  double *took = malloc(MAX_SAMPLES * sizeof *took), sum = 0;
  char *scratch = malloc(size + 512);
  size_t count = 0;
  for (double end = now() + WARM_UP_S; now() < end;)
    round_trip(scratch, size);
  double start = now();
  while (count < MAX_SAMPLES) {
    double before = now();
    if (before - start > seconds)
      break;
    round_trip(scratch, size);
    took[count++] = now() - before;
  }
  qsort(took, count, sizeof *took, ascending);
  for (size_t i = 0; i < count; i++)
    sum += took[i];
  printf(",\"n\":%zu,\"p50_us\":%.2f,\"p90_us\":%.2f,\"p99_us\":%.2f,\"max_us\":%.1f,\"mean_us\":%.2f", count,
         took[count / 2] * 1e6, took[(size_t)(count * .9)] * 1e6, took[(size_t)(count * .99)] * 1e6,
         took[count - 1] * 1e6, sum / count * 1e6);
}

// The answers of a pipelined scene, cut into lines as they come: only the start of each is kept, for its id.
static struct {
  char start[ID_BYTES + 1];
  size_t kept;
  int checked;
  long expected;
} answers;

// Take a chunk of answers; returns how many it completed.
static long take(const char *chunk, size_t count) {
  long done = 0;
  for (size_t at = 0; at < count;) {
    const char *end = memchr(chunk + at, '\n', count - at);
    size_t run = (end ? (size_t)(end - chunk) : count) - at;
    if (!answers.checked) {
      size_t room = ID_BYTES - answers.kept, copied = run < room ? run : room;
      memcpy(answers.start + answers.kept, chunk + at, copied);
      answers.kept += copied;
      answers.start[answers.kept] = 0;
      char *id = strstr(answers.start, "\"id\":");
      if (id && (end || answers.kept == ID_BYTES)) {
        if (strtol(id + 5, 0, 10) != answers.expected)
          fail("pipe id order");
        answers.checked = 1;
      }
    }
    at += run;
    if (end) {
      at++;
      done++;
      answers.expected++;
      answers.kept = answers.checked = 0;
    }
  }
  return done;
}

static void pipelined(size_t size, double seconds, long window) {
  char *request = malloc(size + 512);
  size_t request_length = 0, written = 0;
  long sent = 0, done = 0, done_before = 0;
  double warm = now() + WARM_UP_S, start = 0;
  int stop = 0;
  answers.expected = next_id;
  fcntl(from_server, F_SETFL, O_NONBLOCK);
  for (;;) {
    double time = now();
    if (!start && time > warm) {
      start = time;
      done_before = done;
    }
    if (start && time - start > seconds)
      stop = 1;
    int blocked = 0;
    while (!blocked) {
      if (written == request_length) { // one write(2) per message, as real clients do
        if (stop || sent - done >= window)
          break;
        request_length = make_request(request, next_id++, size);
        written = 0;
        sent++;
      }
      ssize_t count = write(to_server, request + written, request_length - written);
      if (count >= 0)
        written += count;
      else if (errno == EAGAIN)
        blocked = 1;
      else
        fail("write");
    }
    if (stop && done == sent)
      break;
    struct pollfd ready[2] = {{from_server, POLLIN, 0}, {to_server, blocked ? POLLOUT : 0, 0}};
    if (poll(ready, 2, TIMEOUT_MS) <= 0)
      fail("pipe timeout");
    if (!ready[0].revents)
      continue;
    ssize_t count = read(from_server, buffer, capacity);
    if (count == 0)
      fail("eof");
    if (count > 0)
      done += take(buffer, count);
    else if (errno != EAGAIN)
      fail("read");
  }
  double took = now() - start;
  messages += done;
  printf(",\"n\":%ld,\"msgs_s\":%.1f,\"MB_s\":%.2f", done - done_before, (done - done_before) / took,
         (done - done_before) / took * size / 1e6);
}

static void large(size_t size, int repetitions, int answer_is_large) {
  double *took = calloc(repetitions, sizeof *took);
  char *request = malloc(size + 512);
  fcntl(from_server, F_SETFL, O_NONBLOCK);
  for (int i = 0; i < repetitions; i++) {
    size_t count;
    if (answer_is_large) {
      count = sprintf(request, REQUEST "}}}\n", next_id, size);
    } else {
      size_t head = sprintf(request, REQUEST PADDED, next_id, (size_t)8);
      memset(request + head, 'p', size - head - 5);
      memcpy(request + size - 5, "\"}}}\n", 5);
      count = size;
    }
    double before = now();
    send_all(request, count);
    size_t got = receive(next_id++);
    took[i] = now() - before;
    messages++;
    if (answer_is_large && got < size)
      fail("short");
  }
  qsort(took, repetitions, sizeof *took, ascending);
  double median = took[repetitions / 2];
  printf(",\"n\":%d,\"med_ms\":%.2f,\"MB_s\":%.2f", repetitions, median * 1e3, size / median / 1e6);
}

static int make_channel(int ends[2]) { // ends[0] is read from, ends[1] is written to
  return getenv("SOCK") ? socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) : pipe2(ends, O_CLOEXEC);
}

static void start_server(char **command) {
  int input[2], output[2];
  if (make_channel(input) || make_channel(output))
    exit(1);
  server = fork();
  if (!server) {
    dup2(input[0], 0);
    dup2(output[1], 1);
    setpgid(0, 0);
    execvp(command[0], command);
    _exit(127);
  }
  setpgid(server, server);
  close(input[0]);
  close(output[1]);
  to_server = input[1];
  from_server = output[0];
  fcntl(to_server, F_SETFL, O_NONBLOCK);
}

// Close its input and drain its output until it is gone; five seconds, then by force.
static int end_server(void) {
  close(to_server);
  for (int i = 0; i < 100; i++) {
    if (waitpid(server, 0, WNOHANG) == server)
      return 0;
    struct pollfd readable = {from_server, POLLIN, 0};
    if (poll(&readable, 1, 50) > 0 && read(from_server, buffer, capacity) <= 0)
      usleep(50000);
  }
  kill(-server, SIGTERM);
  usleep(300000);
  kill(-server, SIGKILL);
  waitpid(server, 0, 0);
  return 0;
}

int main(int argc, char **argv) {
  int command = 5;
  while (command < argc && strcmp(argv[command], "--"))
    command++;
  if (command + 1 >= argc) {
    fprintf(stderr, "usage: stdio_drive lat|pipe|big|idle A B C -- COMMAND...\n");
    return 2;
  }
  const char *mode = argv[1];
  size_t size = strtoull(argv[2], 0, 10);
  signal(SIGPIPE, SIG_IGN);
  buffer = malloc(capacity);
  double spawned = now();
  start_server(argv + command + 1);
  send_all(INITIALIZE, strlen(INITIALIZE));
  receive(0);
  printf("{\"mode\":\"%s\",\"startup_ms\":%.3f", mode, (now() - spawned) * 1e3);
  send_all(INITIALIZED, strlen(INITIALIZED));
  messages = 2;
  if (!strcmp(mode, "lat"))
    latency(size, atof(argv[3]));
  else if (!strcmp(mode, "pipe"))
    pipelined(size, atof(argv[3]), atol(argv[4]));
  else if (!strcmp(mode, "big"))
    large(size, atoi(argv[3]), !strcmp(argv[4], "s2c"));
  printf(",\"msgs\":%ld,\"pid\":%d}\n", messages, server);
  fflush(stdout);
  char byte;
  if (read(0, &byte, 1) < 0)
    return 1;
  return end_server();
}
