;; Says that its list has 4,294,967,295 tools.
(func (export "list") (result i32)
  (i32.store (i32.const 1168) (i32.const -1))
  (i32.const 1160))
