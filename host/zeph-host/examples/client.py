#!/usr/bin/env python3
"""A client of zeph-host: tools over JSON lines, with the standard library alone. ../schema has the form of the lines."""
import itertools, json, queue, subprocess, sys, threading

class Host:
    """A running `zeph-host run`. Threads may share it: each call waits for its own answer."""

    def __init__(self, *options, program="zeph-host", directory=None, on_message=print):
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "encoding": "utf-8"}
        self.process = subprocess.Popen([program, "run", "--jsonl", *options], cwd=directory, **pipes)
        self.ids, self.waiting, self.has_ended = itertools.count(1), {}, False
        self.lock, self.on_message = threading.Lock(), on_message
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()  # The host answers what it has, and ends.
        self.reader.join()
        self.process.wait()

    def call(self, tool, timeout=None, **params):
        """Makes a call and returns its answer. After `timeout` seconds it is cancelled, which the answer says."""
        number, answers = next(self.ids), queue.Queue()
        self.waiting[number] = answers
        self._write({"id": number, "tool": tool, "params": params})
        try:
            answer = answers.get(timeout=timeout)
        except queue.Empty:
            self._write({"cancel": number})
            answer = answers.get()
        if answer is None:
            raise ConnectionError("zeph-host has ended before it answered")
        return answer

    def _write(self, line):
        with self.lock:
            if self.has_ended:
                raise ConnectionError("zeph-host has ended")
            self.process.stdin.write(json.dumps(line) + "\n")
            self.process.stdin.flush()

    def _read(self):
        for line in self.process.stdout:
            answer = json.loads(line)
            if "role" in answer:  # For the model: something has ended in the background.
                self.on_message(answer["text"])
            elif answer.get("id") in self.waiting:
                self.waiting.pop(answer["id"]).put(answer)
        with self.lock:
            self.has_ended = True
        for answers in list(self.waiting.values()):
            answers.put(None)

if __name__ == "__main__":
    with Host() as host:
        print(host.call("list_directory", path=(sys.argv[1:] or ["."])[0])["text"])
