;; Lists one tool twice.
(func (export "list") (result i32)
  (memory.copy (i32.const 4096) (i32.const 1100) (i32.const 56))
  (memory.copy (i32.const 4152) (i32.const 1100) (i32.const 56))
  (i32.store (i32.const 1164) (i32.const 4096))
  (i32.store (i32.const 1168) (i32.const 2))
  (i32.const 1160))
