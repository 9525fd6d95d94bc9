;; Takes memory. a: page by page without end. b: everything there is at once. c: what a limit leaves, then a little more.
(func $call (param $arguments i32) (result i32)
  (local $n i32)
  (local.set $n (call $variant (local.get $arguments)))
  (if (i32.eqz (local.get $n))
    (then
      (loop $again
        (drop (memory.grow (i32.const 1)))
        ;; Touched, so that it is really there.
        (i32.store8 (i32.sub (i32.mul (memory.size) (i32.const 65536)) (i32.const 1)) (i32.const 1))
        (br $again))))
  (if (i32.eq (local.get $n) (i32.const 1)) (then (drop (memory.grow (i32.const 65534)))))
  (if (i32.eq (local.get $n) (i32.const 2))
    (then
      (loop $again
        (drop (memory.grow (i32.const 16)))
        (memory.fill (i32.const 65536) (i32.const 1)
          (i32.sub (i32.mul (memory.size) (i32.const 65536)) (i32.const 65536)))
        (br $again))))
  (call $ok))
