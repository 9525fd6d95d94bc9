  (import "wasi:clocks/monotonic-clock@0.2.0" (instance $clock
    (alias outer 1 $pollable (type $pollable))
    (export "pollable" (type $pollable' (eq $pollable)))
    (export "now" (func (result u64)))
    (export "subscribe-duration" (func (param "when" u64) (result (own $pollable'))))))
  (import "wasi:clocks/wall-clock@0.2.0" (instance $wall-clock
    (type $datetime' (record (field "seconds" u64) (field "nanoseconds" u32)))
    (export "datetime" (type $datetime (eq $datetime')))
    (export "now" (func (result $datetime)))))
  (core func $clock-now (canon lower (func $clock "now")))
  (core func $clock-wall (canon lower (func $wall-clock "now") (memory $memory)))
  (core func $clock-subscribe (canon lower (func $clock "subscribe-duration")))
  (core instance $core-clock
    (export "now" (func $clock-now))
    (export "wall" (func $clock-wall))
    (export "subscribe" (func $clock-subscribe)))
