/* Reads blocks (eight bytes of size, then the text) and scans each where nothing stands beside it. */
#include <stdio.h>

#include "scan.c"

int main(void) {
    static const char *names[] = {"kernel", "cpu_op", "cuda_runtime", "user_annotation",
                                  "python_function", "gpu_memcpy"};
    static const int64_t kinds[] = {KERNEL, OPERATOR, RUNTIME, ANNOTATION, FRAME, MEMCPY};
    Scanner *scanner = scanner_new(7);
    int64_t size;
    long taken = 0, total = 0;
    for (int i = 0; i < 6; i++)
        if (!scanner_category(scanner, names[i], kinds[i])) return 1;
    while (fread(&size, sizeof size, 1, stdin) == 1) {
        uint8_t *text = malloc((size_t)size + 1);
        if (fread(text, 1, (size_t)size, stdin) != (size_t)size) return 1;
        text[size] = 0;
        taken += scanner_scan(scanner, text, size);
        total++;
        free(text);
    }
    scanner_free(scanner);
    printf("%ld %ld\n", taken, total);
    return 0;
}
