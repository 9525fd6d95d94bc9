;; Gives back a place for its arguments that is not aligned.
(func (export "realloc") (param i32 i32 i32 i32) (result i32) (i32.const 65537))
