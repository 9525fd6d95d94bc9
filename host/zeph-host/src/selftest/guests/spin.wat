;; Never ends by itself. a: a loop. b: tail calls. c: memory filled over and over. d: memory copied over and over.
;; e: tables copied over and over. f: a table of jumps.
(table $x 5000 funcref)
(table $y 5000 funcref)
(func $call (param $arguments i32) (result i32)
  (local $n i32)
  (local.set $n (call $variant (local.get $arguments)))
  (if (i32.eq (local.get $n) (i32.const 1)) (then (return (call $tail (i32.const 0)))))
  (if (i32.eq (local.get $n) (i32.const 2)) (then (call $fill)))
  (if (i32.eq (local.get $n) (i32.const 3)) (then (call $copy)))
  (if (i32.eq (local.get $n) (i32.const 4)) (then (call $tables)))
  (if (i32.eq (local.get $n) (i32.const 5)) (then (call $jumps)))
  (loop $again (br $again))
  (unreachable))
(func $tail (param $n i32) (result i32)
  (return_call $tail (i32.add (local.get $n) (i32.const 1))))
(func $most
  ;; 32 MiB, less than any limit of the tests.
  (drop (memory.grow (i32.const 512))))
(func $fill
  (call $most)
  (loop $again
    (memory.fill (i32.const 65536) (i32.const 7) (i32.sub (i32.mul (memory.size) (i32.const 65536)) (i32.const 65536)))
    (br $again)))
(func $copy
  (call $most)
  (loop $again
    (memory.copy (i32.const 65536) (i32.const 131072)
      (i32.sub (i32.mul (memory.size) (i32.const 65536)) (i32.const 131072)))
    (br $again)))
(func $tables
  (loop $again
    (table.copy $x $y (i32.const 0) (i32.const 0) (i32.const 5000))
    (br $again)))
(func $jumps
  (local $n i32)
  (loop $a (loop $b (loop $c
    (local.set $n (i32.rem_u (i32.add (local.get $n) (i32.const 1)) (i32.const 3)))
    (br_table $a $b $c (local.get $n))))))
