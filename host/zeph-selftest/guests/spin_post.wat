;; Never ends after it has returned its result.
(func (export "post_call") (param i32) (loop $again (br $again)))
