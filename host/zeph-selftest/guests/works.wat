;; Behaves, for a while: leaves a pattern in its memory, naps a millisecond `{"n":"x"}` times (from `a`: 1) a hundred, and says
;; whether the pattern is still there.
;; with: poll clock
(import "poll" "block" (func $block (param i32)))
(import "poll" "drop" (func $drop (param i32)))
(import "clock" "subscribe" (func $subscribe (param i64) (result i32)))
(data (i32.const 4096) "intact")
(func $call (param $arguments i32) (result i32)
  (local $left i32) (local $nap i32)
  (memory.fill (i32.const 8192) (i32.const 0x5a) (i32.const 32768))
  (local.set $left (i32.mul (i32.add (call $variant (local.get $arguments)) (i32.const 1)) (i32.const 100)))
  (loop $again
    (local.set $nap (call $subscribe (i64.const 1000000)))
    (call $block (local.get $nap))
    (call $drop (local.get $nap))
    (br_if $again (local.tee $left (i32.sub (local.get $left) (i32.const 1)))))
  (local.set $left (i32.const 8192))
  (loop $again
    (if (i32.ne (i32.load8_u (local.get $left)) (i32.const 0x5a)) (then (unreachable)))
    (br_if $again (i32.lt_u (local.tee $left (i32.add (local.get $left) (i32.const 1))) (i32.const 40960))))
  (call $text (i32.const 4096) (i32.const 6)))
