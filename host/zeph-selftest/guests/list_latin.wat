;; Describes its tool in what is no UTF-8.
(data (i32.const 4096) "\e4\f6\fc")
(func (export "list") (result i32)
  (i32.store (i32.const 1120) (i32.const 4096))
  (i32.store (i32.const 1124) (i32.const 3))
  (i32.const 1160))
