/* The program behind every name that the lines of the oracle can call. It appends its call to the file $ORACLE_LOG in one write (words end
 * in 1f, the call in 1e), and then does what its name says: it becomes the real program (REAL), fails (`no`), or prints one line and
 * succeeds, even when nobody reads what it prints, because loops wait for that. */
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/auxv.h>
#endif

static const char *base_name(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* The name of the file that was executed, which `argv[0]` need not be. */
static const char *own_name(char **argv) {
#ifdef __linux__
    const char *path = (const char *)getauxval(AT_EXECFN);
    if (path) return base_name(path);
#endif
    return base_name(argv[0]);
}

/* Whether the name is one of those with spaces around them. */
static int is_in(const char *names, const char *name) {
    char padded[64] = " ";
    strncat(padded, name, sizeof padded - 3);
    return strstr(names, strcat(padded, " ")) != NULL;
}

static void write_call(const char *name, char **words) {
    /* The `timeout` around all lines has no log. */
    const char *log = getenv("ORACLE_LOG");
    if (!log) return;
    size_t length = strlen(name) + 1;
    for (char **word = words; *word; word++) length += strlen(*word) + 1;
    char *call = malloc(length), *end = stpcpy(call, name);
    for (char **word = words; *word; word++) {
        *end++ = 0x1f;
        end = stpcpy(end, *word);
    }
    *end++ = 0x1e;
    int file = open(log, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
    if (file < 0 || write(file, call, length) != (ssize_t)length) exit(125);
    close(file);
}

static int become(const char *name, char **argv) {
    char path[64] = "/usr/bin/";
    argv[0] = strncat(path, name, sizeof path - 16);
    execv(path, argv);
    argv[0] = path + strlen("/usr");
    execv(argv[0], argv);
    return 126;
}

int main(int argc, char **argv) {
    const char *name = own_name(argv);
    write_call(name, argv + (argc > 0));
    if (is_in(REAL, name)) return become(name, argv);
    if (!strcmp(name, "no")) return 1;
    signal(SIGPIPE, SIG_IGN);
    const char *line = is_in(COUNTERS, name) ? "1\n" : TRAP "\n";
    return write(1, line, strlen(line)) < 0 ? 0 : 0;
}
