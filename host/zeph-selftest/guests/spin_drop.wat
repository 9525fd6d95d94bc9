;; Never ends in the destructor of a resource of its own.
;; with: resource
(import "resource" "new" (func $new (param i32) (result i32)))
(import "resource" "drop" (func $drop (param i32)))
(func $call (param i32) (result i32)
  (call $drop (call $new (i32.const 1)))
  (call $ok))
