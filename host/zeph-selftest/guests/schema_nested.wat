;; A schema nested 50,000 deep.
(func (export "list") (result i32)
  (memory.fill (i32.const 4096) (i32.const 91) (i32.const 50000))
  (i32.store (i32.const 1128) (i32.const 4096))
  (i32.store (i32.const 1132) (i32.const 50000))
  (i32.const 1160))
