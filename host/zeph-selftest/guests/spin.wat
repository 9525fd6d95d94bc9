;; Never ends by itself. a: a loop. b: tail calls. c: memory filled over and over. d: memory copied over and over.
;; e: tables copied over and over. f: a table of jumps. g, h: as c and d with 240 MiB, close to the default limit.
(table $x 5000 funcref)
(table $y 5000 funcref)
(func $call (param $arguments i32) (result i32)
  (local $n i32)
  (local.set $n (call $variant (local.get $arguments)))
  (if (i32.eq (local.get $n) (i32.const 1)) (then (return (call $tail (i32.const 0)))))
  (if (i32.eq (local.get $n) (i32.const 2)) (then (call $fill (i32.const 512))))
  (if (i32.eq (local.get $n) (i32.const 3)) (then (call $copy (i32.const 512))))
  (if (i32.eq (local.get $n) (i32.const 4)) (then (call $tables)))
  (if (i32.eq (local.get $n) (i32.const 5)) (then (call $jumps)))
  (if (i32.eq (local.get $n) (i32.const 6)) (then (call $fill (i32.const 3840))))
  (if (i32.eq (local.get $n) (i32.const 7)) (then (call $copy (i32.const 3840))))
  (loop $again (br $again))
  (unreachable))
(func $tail (param $n i32) (result i32)
  (return_call $tail (i32.add (local.get $n) (i32.const 1))))
(func $fill (param $pages i32)
  (drop (memory.grow (local.get $pages)))
  (loop $again
    (memory.fill (i32.const 65536) (i32.const 7) (i32.sub (i32.mul (memory.size) (i32.const 65536)) (i32.const 65536)))
    (br $again)))
(func $copy (param $pages i32)
  (drop (memory.grow (local.get $pages)))
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
