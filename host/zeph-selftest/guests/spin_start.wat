;; Never ends in its start code.
(func $begin (loop $again (br $again)))
(start $begin)
