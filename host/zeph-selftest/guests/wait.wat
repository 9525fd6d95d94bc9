;; Waits for ever inside the host. a: sleeps. b: polls two sleeps. c: sleeps a nanosecond over and over. d: reads a closed
;; standard input over and over.
;; with: poll clock streams cli
(import "poll" "block" (func $block (param i32)))
(import "poll" "poll" (func $poll (param i32 i32 i32)))
(import "poll" "drop" (func $drop (param i32)))
(import "clock" "subscribe" (func $subscribe (param i64) (result i32)))
(import "cli" "stdin" (func $stdin (result i32)))
(import "streams" "read" (func $read (param i32 i64 i32)))
(func $call (param $arguments i32) (result i32)
  (local $n i32)
  (local.set $n (call $variant (local.get $arguments)))
  (if (i32.eqz (local.get $n)) (then (call $block (call $subscribe (i64.const 0x7fffffffffffffff)))))
  (if (i32.eq (local.get $n) (i32.const 1))
    (then
      (i32.store (i32.const 4096) (call $subscribe (i64.const -1)))
      (i32.store (i32.const 4100) (call $subscribe (i64.const 0x1000000000000000)))
      (call $poll (i32.const 4096) (i32.const 2) (i32.const 4104))))
  (if (i32.eq (local.get $n) (i32.const 2)) (then (call $naps)))
  (if (i32.eq (local.get $n) (i32.const 3)) (then (call $reads)))
  (call $ok))
(func $naps
  (local $nap i32)
  (loop $again
    (local.set $nap (call $subscribe (i64.const 1)))
    (call $block (local.get $nap))
    (call $drop (local.get $nap))
    (br $again)))
(func $reads
  (local $stdin i32)
  (local.set $stdin (call $stdin))
  (loop $again
    (call $read (local.get $stdin) (i64.const -1) (i32.const 4096))
    (br $again)))
