;; Never ends while it makes room for its arguments.
(func (export "realloc") (param i32 i32 i32 i32) (result i32) (loop $again (br $again)) (unreachable))
