;; Lists a hundred thousand tools.
(func (export "list") (result i32)
  (local $at i32)
  (drop (memory.grow (i32.const 100)))
  (local.set $at (i32.const 65536))
  (loop $again
    (memory.copy (local.get $at) (i32.const 1100) (i32.const 56))
    (local.set $at (i32.add (local.get $at) (i32.const 56)))
    (br_if $again (i32.lt_u (local.get $at) (i32.const 5665536))))
  (i32.store (i32.const 1164) (i32.const 65536))
  (i32.store (i32.const 1168) (i32.const 100000))
  (i32.const 1160))
