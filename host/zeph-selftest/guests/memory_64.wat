;; Declares a second memory with 64-bit addresses and 256 TiB to begin with.
(memory $wide i64 0xffffffff)
