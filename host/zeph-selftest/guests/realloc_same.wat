;; Gives back one place for everything, so that its arguments overwrite each other.
(func (export "realloc") (param i32 i32 i32 i32) (result i32) (i32.const 8192))
