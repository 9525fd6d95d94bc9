  (import "zeph:plugin/log@0.1.0" (instance $log
    (type $level' (enum "trace" "debug" "info" "warn" "error"))
    (export "level" (type $level (eq $level')))
    (export "write" (func (param "level" $level) (param "message" string)))))
  (core func $log-write (canon lower (func $log "write") (memory $memory)))
  (core instance $core-log (export "write" (func $log-write)))
