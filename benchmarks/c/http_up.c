// The upstream of the HTTP benchmark: one thread, one epoll, and answers that look like an MCP server's.
//
//   http_up PORT     on 127.0.0.1; PORT 0 takes a free one; either way it is the first line on standard output
//
//   POST {"id":…,"n":N}                       one JSON result with N bytes of padding
//   POST {"sse":K,"size":S,"pace":US}         an SSE stream of K events of S bytes, one write(2) each, US microseconds apart
//   POST without an id                        202
//   GET                                       HTTP+SSE: the `endpoint` event, then the stream stays open and idle
//   DELETE                                    200
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

enum { HEAD_BYTES = 700, READ_BYTES = 65536, MAX_EVENTS = 512 };

#define OK_JSON "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
#define OK_SSE                                                                                                         \
  "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nCache-Control: no-cache\r\n"                                  \
  "Transfer-Encoding: chunked\r\n\r\n"
#define ENDPOINT_CHUNK "30\r\nevent: endpoint\ndata: /messages?session_id=abc\n\n\r\n" // 0x30 bytes
#define INITIALIZED                                                                                                    \
  "{\"jsonrpc\":\"2.0\",\"id\":%ld,\"result\":{\"protocolVersion\":\"2025-06-18\",\"capabilities\":{\"tools\":{}},"    \
  "\"serverInfo\":{\"name\":\"bench\",\"version\":\"1\"}}}"
#define RESULT "{\"jsonrpc\":\"2.0\",\"id\":%ld,\"result\":{\"content\":[{\"type\":\"text\",\"text\":\""
#define RESULT_END "\"}]}}"
#define PROGRESS                                                                                                       \
  "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{\"i\":%ld,\"t\":%lld,\"pad\":\""
#define PROGRESS_END "\"}} \n\n"

struct connection;

// What epoll hands back: which descriptor of which connection.
struct watch {
  enum { SOCKET, TIMER } kind;
  struct connection *owner;
};

struct connection {
  struct watch socket_watch, timer_watch;
  int fd, timer; // timer is -1 where there is none
  char *input;
  size_t input_length, input_capacity;
  char *output; // from `sent` to `output_length` still to be written
  size_t output_length, sent, output_capacity;
  long event_number, events_left, event_bytes; // events_left is -1 on an idle stream
  int dead, streaming, paced;
};

static int epoll;

static long long now_ns(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec * 1000000000LL + time.tv_nsec;
}

static void watch(int fd, unsigned events, struct watch *who) {
  struct epoll_event event = {events, {.ptr = who}};
  epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event);
}

static void watch_output(struct connection *c, int wanted) {
  struct epoll_event event = {EPOLLIN | (wanted ? EPOLLOUT : 0), {.ptr = &c->socket_watch}};
  epoll_ctl(epoll, EPOLL_CTL_MOD, c->fd, &event);
}

static void close_timer(struct connection *c) {
  if (c->timer >= 0)
    close(c->timer);
  c->timer = -1;
}

// The struct itself stays: an event for it may still be in the batch at hand.
static void close_connection(struct connection *c) {
  if (c->dead)
    return;
  c->dead = 1;
  close(c->fd);
  close_timer(c);
  free(c->input);
  free(c->output);
  c->input = c->output = NULL;
}

static char *reserve(struct connection *c, size_t bytes) {
  if (c->sent == c->output_length)
    c->sent = c->output_length = 0;
  if (c->output_capacity - c->output_length < bytes) {
    c->output_capacity = (c->output_length + bytes) * 2;
    c->output = realloc(c->output, c->output_capacity);
  }
  return c->output + c->output_length;
}

static void append(struct connection *c, const char *bytes, size_t count) {
  memcpy(reserve(c, count), bytes, count);
  c->output_length += count;
}

// 1: all is written; 0: the socket is full; -1: the connection is gone.
static int flush(struct connection *c) {
  while (c->sent < c->output_length) {
    ssize_t count = send(c->fd, c->output + c->sent, c->output_length - c->sent, MSG_NOSIGNAL);
    if (count < 0 && errno == EAGAIN) {
      watch_output(c, 1);
      return 0;
    }
    if (count < 0) {
      close_connection(c);
      return -1;
    }
    c->sent += count;
  }
  c->sent = c->output_length = 0;
  return 1;
}

static void append_event(struct connection *c) {
  char head[160];
  size_t head_length = sprintf(head, PROGRESS, c->event_number++, now_ns()), tail_length = strlen(PROGRESS_END);
  size_t fixed = head_length + tail_length, wanted = c->event_bytes;
  size_t padding = wanted > fixed ? wanted - fixed : 0;
  char *to = reserve(c, fixed + padding + 32), *start = to;
  to += sprintf(to, "%zx\r\n", fixed + padding);
  to = mempcpy(to, head, head_length);
  memset(to, 'e', padding);
  to = mempcpy(to + padding, PROGRESS_END, tail_length);
  to = mempcpy(to, "\r\n", 2);
  c->output_length += to - start;
  c->events_left--;
}

static void end_stream(struct connection *c) {
  c->streaming = 0;
  append(c, "0\r\n\r\n", 5);
  flush(c);
}

// Events without a pace: as many as the socket takes.
static void pump(struct connection *c) {
  while (c->events_left > 0) {
    append_event(c);
    if (flush(c) <= 0)
      return;
  }
  if (c->events_left == 0 && c->streaming)
    end_stream(c);
}

static void start_timer(struct connection *c, long pace_us) {
  struct itimerspec every = {{0, pace_us * 1000}, {0, pace_us * 1000}};
  c->paced = 1;
  c->timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK);
  timerfd_settime(c->timer, 0, &every, NULL);
  watch(c->timer, EPOLLIN, &c->timer_watch);
}

static void on_timer(struct connection *c) {
  unsigned long long expirations;
  if (c->dead || c->timer < 0 || read(c->timer, &expirations, sizeof expirations) != sizeof expirations)
    return;
  if (c->events_left > 0) {
    append_event(c);
    if (flush(c) < 0)
      return;
  }
  if (c->events_left == 0) {
    close_timer(c);
    end_stream(c);
  }
}

// A number member of the body; only an id is looked for beyond its start.
static long number(const char *body, size_t length, const char *member, long otherwise) {
  size_t head = length < HEAD_BYTES ? length : HEAD_BYTES;
  char *found = memmem(body, head, member, strlen(member));
  if (!found && head < length && !strcmp(member, "\"id\":"))
    found = memmem(body, length, member, strlen(member));
  return found ? strtol(found + strlen(member), NULL, 10) : otherwise;
}

static void answer_stream(struct connection *c, const char *body, size_t length) {
  long pace_us = number(body, length, "\"pace\":", 0);
  c->event_bytes = number(body, length, "\"size\":", 200);
  c->events_left = number(body, length, "\"sse\":", 0);
  c->event_number = c->paced = 0;
  c->streaming = 1;
  append(c, OK_SSE, strlen(OK_SSE));
  if (flush(c) < 0)
    return;
  if (pace_us)
    start_timer(c, pace_us);
  else
    pump(c);
}

static void answer_request(struct connection *c, const char *body, size_t length) {
  char json[512];
  long id = number(body, length, "\"id\":", -1);
  if (memmem(body, length < 400 ? length : 400, "\"initialize\"", 12)) {
    int count = sprintf(json, INITIALIZED, id);
    char *to = reserve(c, 1024);
    c->output_length += sprintf(to, OK_JSON "Mcp-Session-Id: s1\r\nContent-Length: %d\r\n\r\n%s", count, json);
  } else if (id < 0) {
    const char *accepted = "HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n";
    append(c, accepted, strlen(accepted));
  } else {
    size_t padding = number(body, length, "\"n\":", 8);
    size_t count = sprintf(json, RESULT, id) + padding + strlen(RESULT_END);
    char *to = reserve(c, padding + 512);
    c->output_length += sprintf(to, OK_JSON "Content-Length: %zu\r\n\r\n%s", count, json);
    memset(c->output + c->output_length, 'x', padding);
    c->output_length += padding;
    append(c, RESULT_END, strlen(RESULT_END));
  }
}

// Joins the chunks from `at` on; returns where the message ends, or 0 if it is not all there.
static size_t dechunk(const char *input, size_t input_length, size_t at, char **body, size_t *length) {
  static char *joined;
  static size_t capacity;
  *length = 0;
  for (;;) {
    char *line_end = memmem(input + at, input_length - at, "\r\n", 2);
    if (!line_end)
      return 0;
    size_t size = strtoul(input + at, NULL, 16);
    at = line_end - input + 2;
    if (input_length < at + size + 2)
      return 0;
    if (capacity < *length + size + 1) {
      capacity = (*length + size) * 2 + 64;
      joined = realloc(joined, capacity);
    }
    memcpy(joined + *length, input + at, size);
    *length += size;
    at += size + 2;
    if (!size) {
      *body = joined;
      return at;
    }
  }
}

// Answers one request of the input; returns 0 if it is not all there.
static int handle(struct connection *c) {
  char *head_end = c->input_length ? memmem(c->input, c->input_length, "\r\n\r\n", 4) : NULL;
  if (!head_end)
    return 0;
  size_t head_length = head_end - c->input + 4, length = 0, used;
  char *body = c->input + head_length;
  *head_end = 0;
  char *content_length = strcasestr(c->input, "\r\ncontent-length:");
  int chunked = strcasestr(c->input, "\r\ntransfer-encoding: chunked") != NULL;
  int last = strcasestr(c->input, "\r\nconnection: close") != NULL;
  *head_end = '\r';
  if (chunked) {
    used = dechunk(c->input, c->input_length, head_length, &body, &length);
    if (!used)
      return 0;
  } else {
    if (content_length)
      length = strtoull(content_length + 17, NULL, 10);
    used = head_length + length;
    if (c->input_length < used)
      return 0;
  }
  if (!strncmp(c->input, "GET", 3)) {
    c->streaming = 1;
    c->events_left = -1;
    append(c, OK_SSE ENDPOINT_CHUNK, strlen(OK_SSE ENDPOINT_CHUNK));
  } else if (!strncmp(c->input, "DELETE", 6)) {
    append(c, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", 38);
  } else if (number(body, length, "\"sse\":", 0) > 0) {
    answer_stream(c, body, length);
  } else {
    answer_request(c, body, length);
  }
  if (c->dead)
    return 0;
  c->input_length -= used;
  memmove(c->input, c->input + used, c->input_length);
  if (flush(c) == 1 && last && !c->streaming)
    close_connection(c);
  return !c->dead;
}

static void on_input(struct connection *c) {
  for (ssize_t count = READ_BYTES; count >= READ_BYTES;) {
    if (c->input_capacity - c->input_length < READ_BYTES) {
      c->input_capacity = c->input_capacity * 2 + 2 * READ_BYTES;
      c->input = realloc(c->input, c->input_capacity);
    }
    count = recv(c->fd, c->input + c->input_length, c->input_capacity - c->input_length, 0);
    if (count < 0 && errno == EAGAIN)
      break;
    if (count <= 0) {
      close_connection(c);
      return;
    }
    c->input_length += count;
  }
  while (handle(c))
    ;
}

static void on_output(struct connection *c) {
  if (flush(c) != 1)
    return;
  watch_output(c, 0);
  if (c->streaming && c->events_left >= 0 && !c->paced)
    pump(c);
}

static void accept_all(int listener) {
  for (int fd, one = 1; (fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK)) >= 0;) {
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    struct connection *c = calloc(1, sizeof *c);
    c->fd = fd;
    c->timer = -1;
    c->socket_watch = (struct watch){SOCKET, c};
    c->timer_watch = (struct watch){TIMER, c};
    watch(fd, EPOLLIN, &c->socket_watch);
  }
}

static int listen_on(int port) {
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr = {htonl(INADDR_LOOPBACK)}};
  socklen_t size = sizeof address;
  int listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0), one = 1;
  setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
  if (bind(listener, (void *)&address, size) || listen(listener, 4096)) {
    perror("bind");
    exit(1);
  }
  getsockname(listener, (void *)&address, &size);
  printf("%d\n", ntohs(address.sin_port));
  fflush(stdout);
  return listener;
}

int main(int argc, char **argv) {
  struct rlimit files = {20000, 20000};
  struct epoll_event events[MAX_EVENTS];
  signal(SIGPIPE, SIG_IGN);
  setrlimit(RLIMIT_NOFILE, &files);
  int listener = listen_on(argc > 1 ? atoi(argv[1]) : 0);
  epoll = epoll_create1(0);
  watch(listener, EPOLLIN, NULL);
  for (;;) {
    int count = epoll_wait(epoll, events, MAX_EVENTS, -1);
    for (int i = 0; i < count; i++) {
      struct watch *who = events[i].data.ptr;
      if (!who) {
        accept_all(listener);
      } else if (who->kind == TIMER) {
        on_timer(who->owner);
      } else {
        if (!who->owner->dead && events[i].events & EPOLLOUT)
          on_output(who->owner);
        if (!who->owner->dead && events[i].events & (EPOLLIN | EPOLLHUP | EPOLLERR))
          on_input(who->owner);
      }
    }
  }
}
