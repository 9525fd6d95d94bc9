;; Describes its tool in 16 MiB.
(func (export "list") (result i32)
  (drop (memory.grow (i32.const 256)))
  (memory.fill (i32.const 65536) (i32.const 65) (i32.const 16777216))
  (i32.store (i32.const 1120) (i32.const 65536))
  (i32.store (i32.const 1124) (i32.const 16777216))
  (i32.const 1160))
