;; Declares 4 GiB of memory to begin with.
;; pages: 65536
