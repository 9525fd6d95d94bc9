;; Names its tool with what moves the cursor of a terminal and turns text around.
(data (i32.const 4096) "\1b[2J\e2\80\aego\n")
(func (export "list") (result i32)
  (i32.store (i32.const 1100) (i32.const 4096))
  (i32.store (i32.const 1104) (i32.const 10))
  (i32.const 1160))
