// The server of the stdio benchmark: answers every request, with as many bytes as the request asks for ("n").
// One write(2) per response, as real servers do; with -b one per chunk read.
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// Members are looked for near the start of a line first: what a large message holds is not searched.
enum { HEAD_BYTES = 600 };

#define INITIALIZED                                                                                                    \
  "\"result\":{\"protocolVersion\":\"2025-06-18\",\"capabilities\":{\"tools\":{}},"                                    \
  "\"serverInfo\":{\"name\":\"bench\",\"version\":\"1\"}}}\n"
#define TOOLS "\"result\":{\"tools\":[{\"name\":\"echo\",\"inputSchema\":{\"type\":\"object\"}}]}}\n"

static char *out; // the answers that are not yet written
static size_t out_capacity, out_length;

static void reserve(size_t bytes) {
  if (out_capacity - out_length < bytes) {
    out_capacity = (out_length + bytes) * 2;
    out = realloc(out, out_capacity);
  }
}

static void flush(void) {
  for (size_t done = 0; done < out_length;) {
    ssize_t written = write(1, out + done, out_length - done);
    if (written <= 0)
      exit(1);
    done += written;
  }
  out_length = 0;
}

static char *find(const char *line, size_t length, const char *member) {
  size_t head = length < HEAD_BYTES ? length : HEAD_BYTES;
  char *found = memmem(line, head, member, strlen(member));
  if (!found)
    found = memmem(line, length, member, strlen(member));
  return found ? found + strlen(member) : NULL;
}

static void answer(const char *line, size_t length) {
  char *id = find(line, length, "\"id\":");
  if (!id)
    return; // a notification
  while (*id == ' ')
    id++;
  int id_length = 0; // the raw token: numbers and short strings
  while (id[id_length] != ',' && id[id_length] != '}' && id_length < 64)
    id_length++;
  size_t head = length < HEAD_BYTES ? length : HEAD_BYTES;
  if (memmem(line, head, "\"initialize\"", 12)) {
    reserve(512);
    out_length += sprintf(out + out_length, "{\"jsonrpc\":\"2.0\",\"id\":%.*s," INITIALIZED, id_length, id);
  } else if (memmem(line, head, "tools/list", 10)) {
    reserve(512);
    out_length += sprintf(out + out_length, "{\"jsonrpc\":\"2.0\",\"id\":%.*s," TOOLS, id_length, id);
  } else {
    char *wanted = find(line, length, "\"n\":");
    size_t padding = wanted ? strtoull(wanted, 0, 10) : 8;
    reserve(padding + 256);
    out_length += sprintf(
        out + out_length, "{\"jsonrpc\":\"2.0\",\"id\":%.*s,\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"",
        id_length, id);
    memset(out + out_length, 'x', padding);
    out_length += padding;
    out_length += sprintf(out + out_length, "\"}]}}\n");
  }
}

int main(int argc, char **argv) {
  int batch = argc > 1 && !strcmp(argv[1], "-b");
  size_t capacity = 1 << 20, length = 0, searched = 0;
  char *buffer = malloc(capacity);
  for (;;) {
    if (length == capacity) {
      capacity *= 2;
      buffer = realloc(buffer, capacity);
    }
    ssize_t got = read(0, buffer + length, capacity - length);
    if (got <= 0)
      return 0;
    length += got;
    char *line = buffer, *end;
    while ((end = memchr(buffer + searched, '\n', length - searched))) {
      answer(line, end - line);
      if (!batch)
        flush();
      line = end + 1;
      searched = line - buffer;
    }
    flush();
    length -= line - buffer;
    if (line != buffer)
      memmove(buffer, line, length);
    searched = length; // what is left holds no line end
  }
}
