;; Takes handles without end. a: of the host, pollables. b: of its own resource.
;; with: poll clock resource
(import "clock" "subscribe" (func $subscribe (param i64) (result i32)))
(import "resource" "new" (func $new (param i32) (result i32)))
(func $call (param $arguments i32) (result i32)
  (local $n i32)
  (local.set $n (call $variant (local.get $arguments)))
  (loop $again
    (if (local.get $n)
      (then (drop (call $new (i32.const 0))))
      (else (drop (call $subscribe (i64.const 1000)))))
    (br $again))
  (unreachable))
