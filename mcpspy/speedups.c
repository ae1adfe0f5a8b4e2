/* Functions of mcpspy in C: lines of usual frames, the chunks and events that they come in, and a search for tokens.
   No state; Python's stable ABI.

   Each does what the Python function of its name does (tests/test_speedups.py), in whose place mcpspy/compiled.py puts it. */

#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030b0000
#include <Python.h>
#include <stdint.h>
#include <string.h>
#include <zlib.h>

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "the first byte of a block has to be its lowest; without this module, all is done in Python"
#endif

#define NUMBER_ROOM 20                    /* digits of a 64-bit integer */
#define LINE_ROOM (128 + 4 * NUMBER_ROOM) /* a line without captured text: names, numbers and CRC */
#define ESCAPE_ROOM 6                     /* the most that one byte becomes: \u001f */
#define SHORTEST_EVENT 4                  /* bytes; a shorter one is left to the general path */
#define BLOCK 8                           /* bytes that are looked at together */
#define DECODED_BYTES 65536               /* text is checked in slices: decoded at once, it would take four times its length */

typedef struct {
    char *data;
    Py_ssize_t length;
} Bytes;

typedef struct {
    unsigned long long number, stream, at_ns;
} Numbers;

/* --- writing: each function returns where the next byte goes --- */

static char *put(char *at, const char *text, size_t length)
{
    memcpy(at, text, length);
    return at + length;
}

#define PUT(at, literal) put(at, literal, sizeof(literal) - 1)

static char *put_number(char *at, unsigned long long number)
{
    char digits[NUMBER_ROOM], *digit = digits + NUMBER_ROOM;
    do
        *--digit = (char)('0' + number % 10);
    while (number /= 10);
    return put(at, digit, (size_t)(digits + NUMBER_ROOM - digit));
}

static char *put_hex(char *at, uint32_t number, int digits)
{
    while (digits--)
        *at++ = "0123456789abcdef"[number >> 4 * digits & 15];
    return at;
}

/* Write one byte that JSON does not allow inside quotes. */
static char *put_escape(char *at, unsigned char byte)
{
    static const char shorts[] = "btn\0fr";
    *at++ = '\\';
    if (byte >= 0x20)
        *at++ = (char)byte;
    else if (byte >= '\b' && byte <= '\r' && shorts[byte - '\b'])
        *at++ = shorts[byte - '\b'];
    else
        at = put_hex(PUT(at, "u00"), byte, 2);
    return at;
}

#define EACH(byte) (0x0101010101010101ULL * (byte))
#define IS_ZERO(word) (~((((word)&EACH(0x7f)) + EACH(0x7f)) | (word)) & EACH(0x80))

/* Return a word with the high bit set in each byte that is a quote, a backslash or a control character. */
static uint64_t escapes(uint64_t word)
{
    uint64_t quotes = word ^ EACH('"'), slashes = word ^ EACH('\\');
    uint64_t perhaps = (quotes - EACH(1)) | (slashes - EACH(1)) | (word - EACH(0x20)); /* right but for what a borrow reaches */
    if (!(perhaps & EACH(0x80)))
        return 0;
    return (~((word & EACH(0x7f)) + EACH(0x60)) & ~word & EACH(0x80)) | IS_ZERO(quotes) | IS_ZERO(slashes);
}

/* Escape for the inside of quotes, and tell in `is_ascii` what was seen. Writes up to a block too much, which is overwritten. */
static char *put_escaped(char *at, Bytes text, int *is_ascii)
{
    const char *data = text.data, *end = data + text.length;
    uint64_t seen = 0;
    while (data < end) {
        uint64_t word = EACH(' ');
        if (end - data >= BLOCK)
            memcpy(&word, data, BLOCK);
        else
            memcpy(&word, data, (size_t)(end - data));
        uint64_t found = escapes(word);
        Py_ssize_t length = found ? __builtin_ctzll(found) / 8 : end - data < BLOCK ? end - data : BLOCK;
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

static char *begin_line(char *at, Numbers numbers, const char *kind)
{
    at = put_number(PUT(at, "{\"n\":"), numbers.number);
    at = put_number(PUT(at, ",\"at_ns\":"), numbers.at_ns);
    at = PUT(put(PUT(at, ",\"kind\":\""), kind, strlen(kind)), "\",\"stream\":");
    return put_number(at, numbers.stream);
}

static char *end_line(const char *begin, char *at)
{
    uint32_t crc = (uint32_t)crc32_z(0, (const unsigned char *)begin, (size_t)(at - begin));
    return PUT(put_hex(PUT(at, ",\"crc\":\""), crc, 8), "\"}\n");
}

/* --- lines of frames --- */

/* Return -1 with an exception if this is not UTF-8. */
static int check_utf8(Bytes text)
{
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
static char *put_frame(char *at, Numbers numbers, Bytes text, int is_event)
{
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

/* Make bytes of what was written, and free it. NULL for its `end` is an exception. */
static PyObject *bytes_of(char *lines, const char *end)
{
    PyObject *bytes = end == NULL ? NULL : PyBytes_FromStringAndSize(lines, end - lines);
    PyMem_Free(lines);
    return bytes;
}

#define READ_BYTES(object, bytes) PyBytes_AsStringAndSize(object, &(bytes).data, &(bytes).length)

static int read_numbers(PyObject *const *arguments, Py_ssize_t count, Py_ssize_t wanted, Numbers *numbers)
{
    unsigned long long *each[] = {&numbers->number, &numbers->stream, &numbers->at_ns};
    if (count != wanted)
        PyErr_Format(PyExc_TypeError, "takes %zd arguments, not %zd", wanted, count);
    for (int index = 0; !PyErr_Occurred() && index < 3; index++)
        *each[index] = PyLong_AsUnsignedLongLong(arguments[index]);
    return PyErr_Occurred() ? -1 : 0;
}

static PyObject *lines_of(PyObject *const *arguments, Py_ssize_t count, int is_event)
{
    Numbers numbers;
    Bytes text;
    size_t room = 1;
    if (read_numbers(arguments, count, 4, &numbers) < 0)
        return NULL;
    PyObject *frames = arguments[3];
    if (!PyList_Check(frames))
        return PyErr_Format(PyExc_TypeError, "frames have to be a list");
    Py_ssize_t number_of_frames = PyList_Size(frames);
    for (Py_ssize_t index = 0; index < number_of_frames; index++, room += FRAME_ROOM(text))
        if (READ_BYTES(PyList_GetItem(frames, index), text) < 0)
            return NULL;
    char *lines = PyMem_Malloc(room), *at = lines;
    if (lines == NULL)
        return PyErr_NoMemory();
    for (Py_ssize_t index = 0; at != NULL && index < number_of_frames; index++, numbers.number++) {
        READ_BYTES(PyList_GetItem(frames, index), text);
        at = put_frame(at, numbers, text, is_event);
    }
    return bytes_of(lines, at);
}

static PyObject *plain_frame_lines(PyObject *module, PyObject *const *arguments, Py_ssize_t count)
{
    return lines_of(arguments, count, 0);
}

static PyObject *plain_event_lines(PyObject *module, PyObject *const *arguments, Py_ssize_t count)
{
    return lines_of(arguments, count, 1);
}

static PyObject *message_lines(PyObject *module, PyObject *const *arguments, Py_ssize_t count)
{
    Numbers numbers;
    Bytes opening, text, by;
    if (read_numbers(arguments, count, 7, &numbers) < 0 || READ_BYTES(arguments[4], text) < 0)
        return NULL;
    opening.data = (char *)PyUnicode_AsUTF8AndSize(arguments[3], &opening.length);
    by.data = opening.data == NULL ? NULL : (char *)PyUnicode_AsUTF8AndSize(arguments[5], &by.length);
    int is_sse = by.data == NULL ? -1 : PyObject_IsTrue(arguments[6]);
    if (is_sse < 0)
        return NULL;
    char *lines = PyMem_Malloc((size_t)(opening.length + by.length) + 2 * LINE_ROOM + FRAME_ROOM(text)), *at = lines;
    if (lines == NULL)
        return PyErr_NoMemory();
    if (opening.length) {
        at = end_line(lines, put(begin_line(at, numbers, "open"), opening.data, (size_t)opening.length));
        numbers.number++;
    }
    if (text.length) {
        at = put_frame(at, numbers, text, is_sse);
        numbers.number++;
    }
    if (at != NULL && by.length) {
        char *end = put(PUT(begin_line(at, numbers, "close"), ",\"by\":\""), by.data, (size_t)by.length);
        at = end_line(at, PUT(end, "\",\"how\":\"eof\""));
    }
    return bytes_of(lines, at);
}

/* --- chunks and events --- */

/* Find the payload of the chunk that `*at` begins with, if its size is up to ten hex digits and not 0. Return 0 if there is none. */
static int read_chunk(char **at, const char *end, Bytes *payload)
{
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

/* Tell whether this is one event and nothing else, with one kind of line ends. */
static int is_one_event(Bytes event)
{
    const char *end = event.data + event.length, *feed;
    int line_end = memchr(event.data, '\r', (size_t)event.length) == NULL ? 1 : 2;
    for (const char *line = event.data; line < end; line = feed + 1) {
        feed = memchr(line, '\n', (size_t)(end - line));
        if (feed == NULL || (line_end == 2 && memchr(line, '\r', (size_t)(feed - line)) != feed - 1))
            return 0;
        if (feed + 1 - line == line_end)
            return line > event.data && feed + 1 == end;
    }
    return 0;
}

static PyObject *event_of_chunk(PyObject *module, PyObject *data)
{
    Bytes read, event;
    if (READ_BYTES(data, read) < 0)
        return NULL;
    char *at = read.data, *end = read.data + read.length;
    if (read_chunk(&at, end, &event) && at == end && event.length >= SHORTEST_EVENT && is_one_event(event))
        return PyBytes_FromStringAndSize(event.data, event.length);
    Py_RETURN_NONE;
}

static PyObject *whole_chunks(PyObject *module, PyObject *const *arguments, Py_ssize_t count)
{
    Bytes read, payload;
    if (count != 2)
        return PyErr_Format(PyExc_TypeError, "takes 2 arguments, not %zd", count);
    Py_ssize_t begin = PyLong_AsSsize_t(arguments[1]), chunks = 0, total = 0;
    if (READ_BYTES(arguments[0], read) < 0 || PyErr_Occurred())
        return NULL;
    if (begin < 0 || begin > read.length)
        return PyErr_Format(PyExc_ValueError, "begins outside of the data");
    char *end = read.data + read.length, *stop = read.data + begin;
    for (char *next = stop; read_chunk(&next, end, &payload); stop = next, chunks++)
        total += payload.length;
    PyObject *sizes = PyTuple_New(chunks), *payloads = PyBytes_FromStringAndSize(NULL, total);
    char *to = payloads == NULL ? NULL : PyBytes_AsString(payloads);
    char *at = read.data + begin;
    for (Py_ssize_t index = 0; !PyErr_Occurred() && read_chunk(&at, stop, &payload); index++) {
        to = put(to, payload.data, (size_t)payload.length);
        PyTuple_SetItem(sizes, index, PyLong_FromSsize_t(payload.length));
    }
    if (!PyErr_Occurred())
        return Py_BuildValue("nNN", stop - read.data, payloads, sizes);
    Py_XDECREF(sizes);
    Py_XDECREF(payloads);
    return NULL;
}

/* --- words that may be tokens --- */

static PyObject *token_places(PyObject *module, PyObject *arguments)
{
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
    METHOD(plain_frame_lines, METH_FASTCALL),
    METHOD(plain_event_lines, METH_FASTCALL),
    METHOD(message_lines, METH_FASTCALL),
    METHOD(event_of_chunk, METH_O),
    METHOD(whole_chunks, METH_FASTCALL),
    METHOD(token_places, METH_VARARGS),
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, "mcpspy.speedups", NULL, 0, methods, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit_speedups(void)
{
    return PyModule_Create(&definition);
}
