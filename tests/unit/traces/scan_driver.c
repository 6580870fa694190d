/* Reads blocks (eight bytes of size, then the text) and scans each where nothing stands beside it.
 * Prints how many it took, of how many, and the longest way that a search for a text may go.
 */
#include <stdio.h>

#include "scan.c"

/* Of slots in use, one beside the other: as many as a search may have to look at. */
static long longest_run(const Table *table) {
    long run = 0, longest = 0;
    for (uint64_t at = 0; at < table->n_slots; at++) {
        run = table->slots[at].text ? run + 1 : 0;
        if (run > longest) longest = run;
    }
    return longest;
}

int main(void) {
    static const char *names[] = {"kernel", "cpu_op", "cuda_runtime", "user_annotation",
                                  "python_function", "gpu_memcpy"};
    static const int64_t kinds[] = {KERNEL, OPERATOR, RUNTIME, ANNOTATION, FRAME, MEMCPY};
    Scanner *scanner = scanner_new(7);
    int64_t size;
    long taken = 0, total = 0, longest = 0;
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
    for (int i = 0; i < N_TABLES; i++)
        if (longest_run(&scanner->tables[i]) > longest) longest = longest_run(&scanner->tables[i]);
    scanner_free(scanner);
    printf("%ld %ld %ld\n", taken, total, longest);
    return 0;
}
