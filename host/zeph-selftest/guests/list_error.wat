;; Says 16 MiB about why it cannot list its tools.
(func (export "list") (result i32)
  (drop (memory.grow (i32.const 256)))
  (memory.fill (i32.const 65536) (i32.const 27) (i32.const 16777216))
  (i32.store (i32.const 1160) (i32.const 1))
  (i32.store (i32.const 1164) (i32.const 65536))
  (i32.store (i32.const 1168) (i32.const 16777216))
  (i32.const 1160))
