  (import "wasi:random/random@0.2.0" (instance $random
    (export "get-random-bytes" (func (param "len" u64) (result (list u8))))))
  (import "wasi:random/insecure@0.2.0" (instance $insecure
    (export "get-insecure-random-bytes" (func (param "len" u64) (result (list u8))))))
  (core func $random-bytes (canon lower (func $random "get-random-bytes") (memory $memory) (realloc $realloc)))
  (core func $random-insecure (canon lower (func $insecure "get-insecure-random-bytes") (memory $memory)
    (realloc $realloc)))
  (core instance $core-random
    (export "bytes" (func $random-bytes))
    (export "insecure" (func $random-insecure)))
