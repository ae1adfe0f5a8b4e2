/* Functions of mcpspy in C: lines of usual messages, the chunks and events that they come in, and a search for tokens.
   No state; Python's stable ABI.

   Each does what the Python function of its name does (tests/test_speedups.py), in whose place mcpspy/compiled.py puts it. */

#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030b0000
#include <Python.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <zlib.h>

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "the first byte of a block has to be its lowest; without this module, all is done in Python"
#endif

#define NUMBER_ROOM 20                    /* digits of a 64-bit integer */
#define LINE_ROOM (128 + 4 * NUMBER_ROOM) /* a line without captured text: names, numbers and CRC */
#define ESCAPE_ROOM 6                     /* the most that one byte becomes: \u001f */
#define SHORTEST_EVENT 4                  /* bytes; a shorter one is left to the general path */
#define SHORT_READ 4096                   /* bytes; an event in a longer one is left to its caller by relay_event */
#define BLOCK 8                           /* bytes that are looked at together */
#define DECODED_BYTES 65536               /* text is checked in slices: decoded at once, it would take four times its length */

typedef struct { char *data; Py_ssize_t length; } Bytes;
typedef struct { unsigned long long number, stream, at_ns; } Numbers;

/* --- writing: each function returns where the next byte goes --- */

static char *put(char *at, const char *text, size_t length) {
    memcpy(at, text, length);
    return at + length;
}

#define PUT(at, literal) put(at, literal, sizeof(literal) - 1)
#define CLOSED "\",\"how\":\"eof\""

static char *put_number(char *at, unsigned long long number) {
    char digits[NUMBER_ROOM], *digit = digits + NUMBER_ROOM;
    do { *--digit = (char)('0' + number % 10); } while (number /= 10);
    return put(at, digit, (size_t)(digits + NUMBER_ROOM - digit));
}

static char *put_hex(char *at, uint32_t number, int digits) {
    while (digits--)
        *at++ = "0123456789abcdef"[number >> 4 * digits & 15];
    return at;
}

/* Write one byte that JSON does not allow inside quotes. */
static char *put_escape(char *at, unsigned char byte) {
    char letter = byte >= 0x20 ? (char)byte : byte >= '\b' && byte <= '\r' ? "btn\0fr"[byte - '\b'] : 0;
    *at++ = '\\';
    if (!letter)
        return put_hex(PUT(at, "u00"), byte, 2);
    *at++ = letter;
    return at;
}

#define EACH(byte) (0x0101010101010101ULL * (byte))
#define IS_ZERO(word) (~((((word)&EACH(0x7f)) + EACH(0x7f)) | (word)) & EACH(0x80))
/* Return a word with the high bit set in each byte that is a quote, a backslash or a control character. */
static uint64_t escapes(uint64_t word) {
    uint64_t quotes = word ^ EACH('"'), slashes = word ^ EACH('\\');
    uint64_t perhaps = (quotes - EACH(1)) | (slashes - EACH(1)) | (word - EACH(0x20)); /* right but for what a borrow reaches */
    if (!(perhaps & EACH(0x80)))
        return 0;
    return (~((word & EACH(0x7f)) + EACH(0x60)) & ~word & EACH(0x80)) | IS_ZERO(quotes) | IS_ZERO(slashes);
}

/* Escape for the inside of quotes, and tell in `is_ascii` what was seen. Writes up to a block too much, which is overwritten. */
static char *put_escaped(char *at, Bytes text, int *is_ascii) {
    const char *data = text.data, *end = data + text.length;
    uint64_t seen = 0;
    while (data < end) {
        uint64_t word = EACH(' ');
        Py_ssize_t length = end - data < BLOCK ? end - data : BLOCK;
        length == BLOCK ? memcpy(&word, data, BLOCK) : memcpy(&word, data, (size_t)length);
        uint64_t found = escapes(word);
        length = found ? __builtin_ctzll(found) / 8 : length;
        memcpy(at, &word, BLOCK);
        seen |= word;
        at += length;
        data += length;
        if (found)
            at = put_escape(at, (unsigned char)*data++);
    }
    *is_ascii = !(seen & EACH(0x80));
    return at;
}

static char *begin_line(char *at, Numbers numbers, const char *kind) {
    at = put_number(PUT(at, "{\"n\":"), numbers.number);
    at = put_number(PUT(at, ",\"at_ns\":"), numbers.at_ns);
    at = PUT(put(PUT(at, ",\"kind\":\""), kind, strlen(kind)), "\",\"stream\":");
    return put_number(at, numbers.stream);
}

static char *end_line(const char *begin, char *at) {
    uint32_t crc = (uint32_t)crc32_z(0, (const unsigned char *)begin, (size_t)(at - begin));
    return PUT(put_hex(PUT(at, ",\"crc\":\""), crc, 8), "\"}\n");
}

/* --- lines of frames --- */

/* Return -1 with an exception if this is not UTF-8. */
static int check_utf8(Bytes text) {
    for (Py_ssize_t at = 0, used; at < text.length; at += used) {
        used = text.length - at > DECODED_BYTES ? DECODED_BYTES : text.length - at;
        PyObject *decoded = PyUnicode_DecodeUTF8Stateful(text.data + at, used, "strict", at + used < text.length ? &used : NULL);
        if (decoded == NULL)
            return -1;
        Py_DECREF(decoded);
    }
    return 0;
}

/* Write the line of a frame. Return NULL with an exception if it is not UTF-8, as CPython's decoder says. */
static char *put_frame(char *at, Numbers numbers, Bytes text, int is_event) {
    char *begin = at;
    int is_ascii;
    at = put_escaped(PUT(begin_line(at, numbers, "frame"), ",\"text\":\""), text, &is_ascii);
    if (!is_ascii && check_utf8(text) < 0)
        return NULL;
    at = PUT(at, "\"");
    if (is_event)
        at = PUT(put_number(PUT(at, ",\"chunks\":["), (size_t)text.length), "]");
    return end_line(begin, at);
}

#define FRAME_ROOM(text) (ESCAPE_ROOM * (size_t)(text).length + BLOCK + LINE_ROOM)
#define READ_BYTES(object, bytes) PyBytes_AsStringAndSize(object, &(bytes).data, &(bytes).length)
static int read_numbers(PyObject *const *arguments, Py_ssize_t count, Py_ssize_t wanted, Numbers *numbers) {
    unsigned long long *each[] = {&numbers->number, &numbers->stream, &numbers->at_ns};
    if (count != wanted)
        PyErr_Format(PyExc_TypeError, "takes %zd arguments, not %zd", wanted, count);
    for (int index = 0; !PyErr_Occurred() && index < 3; index++)
        *each[index] = PyLong_AsUnsignedLongLong(arguments[index]);
    return PyErr_Occurred() ? -1 : 0;
}

static PyObject *message_lines(PyObject *module, PyObject *const *arguments, Py_ssize_t count) {
    Numbers numbers;
    Bytes opening, text, by;
    if (read_numbers(arguments, count, 7, &numbers) < 0)
        return NULL;
    PyObject *frames = arguments[4], *bytes;
    opening.data = (char *)PyUnicode_AsUTF8AndSize(arguments[3], &opening.length);
    by.data = opening.data == NULL ? NULL : (char *)PyUnicode_AsUTF8AndSize(arguments[5], &by.length);
    int is_event = by.data == NULL ? -1 : PyObject_IsTrue(arguments[6]);
    if (is_event < 0 || !PyList_Check(frames))
        return PyErr_Occurred() ? NULL : PyErr_Format(PyExc_TypeError, "frames have to be a list");
    Py_ssize_t number_of_frames = PyList_Size(frames);
    size_t room = (size_t)(opening.length + by.length) + 2 * LINE_ROOM;
    for (Py_ssize_t index = 0; index < number_of_frames; index++, room += FRAME_ROOM(text))
        if (READ_BYTES(PyList_GetItem(frames, index), text) < 0)
            return NULL;
    char *lines = PyMem_Malloc(room), *at = lines;
    if (lines == NULL)
        return PyErr_NoMemory();
    if (opening.length)
        at = end_line(lines, put(begin_line(at, numbers, "open"), opening.data, (size_t)opening.length));
    numbers.number += at > lines;
    for (Py_ssize_t index = 0; at != NULL && index < number_of_frames; index++, numbers.number++) {
        READ_BYTES(PyList_GetItem(frames, index), text);
        at = put_frame(at, numbers, text, is_event);
    }
    if (at != NULL && by.length)
        at = end_line(at, PUT(put(PUT(begin_line(at, numbers, "close"), ",\"by\":\""), by.data, (size_t)by.length), CLOSED));
    bytes = at == NULL ? NULL : PyBytes_FromStringAndSize(lines, at - lines);
    PyMem_Free(lines);
    return bytes;
}

/* --- chunks and events --- */

/* Find the payload of the chunk that `*at` begins with, if its size is up to ten hex digits and not 0. Return 0 if there is none. */
static int read_chunk(char **at, const char *end, Bytes *payload) {
    char *digit = *at;
    payload->length = 0;
    for (; digit < end && digit < *at + 10; digit++) {
        int letter = *digit | 0x20;
        if (*digit >= '0' && *digit <= '9')
            payload->length = payload->length * 16 + *digit - '0';
        else if (letter >= 'a' && letter <= 'f')
            payload->length = payload->length * 16 + letter - 'a' + 10;
        else
            break;
    }
    if (!payload->length || end - digit < payload->length + 4 || memcmp(digit, "\r\n", 2))
        return 0;
    payload->data = digit + 2;
    *at = payload->data + payload->length + 2;
    return !memcmp(*at - 2, "\r\n", 2);
}

/* Find the event, if what was read is one chunk with one event and nothing else, with one kind of line ends. */
static int read_event(Bytes read, Bytes *event) {
    char *at = read.data, *end = read.data + read.length, *feed;
    if (!read_chunk(&at, end, event) || at != end || event->length < SHORTEST_EVENT)
        return 0;
    end = event->data + event->length;
    int line_end = memchr(event->data, '\r', (size_t)event->length) == NULL ? 1 : 2;
    for (char *line = event->data; line < end; line = feed + 1) {
        feed = memchr(line, '\n', (size_t)(end - line));
        if (feed == NULL || (line_end == 2 && memchr(line, '\r', (size_t)(feed - line)) != feed - 1))
            return 0;
        if (feed + 1 - line == line_end)
            return line > event->data && feed + 1 == end;
    }
    return 0;
}

static PyObject *event_of_chunk(PyObject *module, PyObject *data) {
    Bytes read, event;
    if (READ_BYTES(data, read) < 0)
        return NULL;
    if (read_event(read, &event))
        return PyBytes_FromStringAndSize(event.data, event.length);
    Py_RETURN_NONE;
}

static PyObject *whole_chunks(PyObject *module, PyObject *arguments) {
    Bytes read, payload;
    Py_ssize_t begin;
    if (!PyArg_ParseTuple(arguments, "y#n", &read.data, &read.length, &begin) || begin < 0 || begin > read.length)
        return PyErr_Occurred() ? NULL : PyErr_Format(PyExc_ValueError, "begins outside of the data");
    PyObject *payloads = PyList_New(0), *bytes;
    char *stop = read.data + begin;
    for (char *at = stop; payloads != NULL && read_chunk(&at, read.data + read.length, &payload); stop = at) {
        if ((bytes = PyBytes_FromStringAndSize(payload.data, payload.length)) == NULL || PyList_Append(payloads, bytes) < 0)
            Py_CLEAR(payloads);
        Py_XDECREF(bytes);
    }
    return payloads == NULL ? NULL : Py_BuildValue("nN", stop - read.data, payloads);
}

static PyObject *relay_event(PyObject *module, PyObject *const *arguments, Py_ssize_t count) {
    Numbers numbers;
    char data[1 << 16], line[ESCAPE_ROOM * SHORT_READ + BLOCK + LINE_ROOM], *end = NULL;
    Bytes read = {data, 0}, event = read;
    if (read_numbers(arguments, count, 6, &numbers) < 0)
        return NULL;
    int source = PyLong_AsLong(arguments[3]), capture = PyLong_AsLong(arguments[4]), target = PyLong_AsLong(arguments[5]);
    Py_ssize_t written = 0, sent = 0;
    if (PyErr_Occurred() || (read.length = recv(source, data, sizeof data, 0)) < 0)
        return PyErr_Occurred() ? NULL : PyErr_SetFromErrno(PyExc_OSError);
    if (read.length <= SHORT_READ && read_event(read, &event) && !memmem(data, (size_t)read.length, "endpoint", 8))
        end = put_frame(line, numbers, event, 1);
    PyErr_Clear(); /* not UTF-8 */
    if (end != NULL) {
        Py_BEGIN_ALLOW_THREADS
        written = write(capture, line, (size_t)(end - line));
        sent = written == end - line ? send(target, data, (size_t)read.length, 0) : 0;
        Py_END_ALLOW_THREADS
        if (sent == read.length)
            Py_RETURN_NONE;
    }
    return Py_BuildValue("y#y#nn", data, read.length, event.data, end == NULL ? 0 : event.length, written, sent);
}

/* --- words that may be tokens --- */

static PyObject *token_places(PyObject *module, PyObject *arguments) {
    const unsigned char *data, *kinds;
    Py_ssize_t length, size, shortest, words = 0, begin = 0, at;
    if (!PyArg_ParseTuple(arguments, "y#y#n", &data, &length, &kinds, &size, &shortest) || size != 1 << 16 || shortest < 2)
        return PyErr_Occurred() ? NULL : PyErr_Format(PyExc_ValueError, "takes the kinds of all pairs, and a length above 1");
    PyObject *places = PyList_New(0), *place;
    for (; places != NULL && begin <= length - shortest; begin = at) {
        for (at = begin + shortest; at > begin && kinds[data[at - 1]]; at--); /* of a short word, only its end is looked at */
        if (at > begin)
            continue;
        if (!words++ || kinds[data[begin] << 8 | data[begin + 1]] || (begin >= 2 && kinds[data[begin - 2] << 8 | data[begin - 1]])) {
            if ((place = PyLong_FromSsize_t(begin)) == NULL || PyList_Append(places, place) < 0)
                Py_CLEAR(places);
            Py_XDECREF(place);
        }
        for (at += shortest; at < length && kinds[data[at]]; at++);
    }
    return places;
}

#define METHOD(name, flags) {#name, (PyCFunction)(void (*)(void))name, flags, NULL}
static PyMethodDef methods[] = {
    METHOD(message_lines, METH_FASTCALL),
    METHOD(event_of_chunk, METH_O),
    METHOD(whole_chunks, METH_VARARGS),
    METHOD(relay_event, METH_FASTCALL),
    METHOD(token_places, METH_VARARGS),
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, "mcpspy.speedups", NULL, 0, methods, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit_speedups(void) {
    return PyModule_Create(&definition);
}
