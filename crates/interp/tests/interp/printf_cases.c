/* Remakes printf_cases.txt with the C library of the host: gcc -w printf_cases.c -lm && ./a.out > printf_cases.txt
   A line is: format, kind of argument, its bits in hexadecimal, text; separated by tabs.
   Left out: "%#g" of 999999.5, where glibc 2.36 drops the zeros that C asks for. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#define LENGTH(a) (sizeof(a) / sizeof *(a))

static void line(const char *format, const char *kind, unsigned long long bits, const char *text) {
    printf("%s\t%s\t%llx\t%s\n", format, kind, bits, text);
}

int main(void) {
    char text[4096];
    const int ints[] = {0, 1, -1, 42, -12345, 2147483647, -2147483647 - 1};
    const char *int_formats[] = {"%d", "%5d", "%-5d|", "%05d", "%+d", "% d", "%.3d", "%8.3d", "%08.3d", "%.0d", "%i",
        "%u", "%x", "%X", "%#x", "%#X", "%#10x", "%#010x", "%o", "%#o", "%.5o", "%#.3o", "%hd", "%hhd", "%hu", "%hhu",
        "%hhx", "%-+6d|", "%+05d"};
    for (unsigned f = 0; f < LENGTH(int_formats); f++)
        for (unsigned i = 0; i < LENGTH(ints); i++) {
            snprintf(text, sizeof text, int_formats[f], ints[i]);
            line(int_formats[f], "int", (unsigned)ints[i], text);
        }
    const char *char_formats[] = {"%c|", "%3c|", "%-3c|"};
    for (unsigned f = 0; f < LENGTH(char_formats); f++) {
        snprintf(text, sizeof text, char_formats[f], 'A');
        line(char_formats[f], "int", 'A', text);
    }
    const long long longs[] = {0, -1, 9223372036854775807LL, -1234567890123LL};
    const char *long_formats[] = {"%lld", "%ld", "%llu", "%lx", "%#llx", "%zu", "%20lld|", "%-20lld|", "%020lld", "%jd",
        "%lo", "%p", "%20p|", "%-20p|"};
    for (unsigned f = 0; f < LENGTH(long_formats); f++)
        for (unsigned i = 0; i < LENGTH(longs); i++) {
            snprintf(text, sizeof text, long_formats[f], longs[i]);
            line(long_formats[f], "long", longs[i], text);
        }
    const double doubles[] = {0.0, -0.0, 1.0, -1.5, 0.1, 123456789.0, 1e-5, 1e22, 5e-324, 2.5, 9.9999995, 999999.5,
        1.0 / 3, 1.9999999, INFINITY, -INFINITY, NAN};
    const char *double_formats[] = {"%f", "%.0f", "%#.0f", "%.2f", "%10.3f|", "%-10.3f|", "%010.3f", "%+f", "% f", "%e",
        "%.0e", "%#.0e", "%.3e", "%14.3E|", "%g", "%.0g", "%.3g", "%#.8g", "%.10g", "%G", "%012g", "%a", "%.0a", "%.1a",
        "%.3a", "%#.0a", "%A", "%+20a|", "%-20a|", "%.15a", "%F"};
    for (unsigned f = 0; f < LENGTH(double_formats); f++)
        for (unsigned i = 0; i < LENGTH(doubles); i++) {
            unsigned long long bits;
            memcpy(&bits, &doubles[i], 8);
            snprintf(text, sizeof text, double_formats[f], doubles[i]);
            line(double_formats[f], "double", bits, text);
        }
    return 0;
}
