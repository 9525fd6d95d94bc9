  (import "wasi:io/poll@0.2.0" (instance $poll
    (export "pollable" (type $pollable (sub resource)))
    (export "[method]pollable.block" (func (param "self" (borrow $pollable))))
    (export "poll" (func (param "in" (list (borrow $pollable))) (result (list u32))))))
  (alias export $poll "pollable" (type $pollable))
  (core func $poll-block (canon lower (func $poll "[method]pollable.block")))
  (core func $poll-poll (canon lower (func $poll "poll") (memory $memory) (realloc $realloc)))
  (core func $poll-drop (canon resource.drop $pollable))
  (core instance $core-poll
    (export "block" (func $poll-block))
    (export "poll" (func $poll-poll))
    (export "drop" (func $poll-drop)))
