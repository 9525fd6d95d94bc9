  (import "wasi:cli/stdin@0.2.0" (instance $stdin
    (alias outer 1 $input-stream (type $input-stream))
    (export "input-stream" (type $input-stream' (eq $input-stream)))
    (export "get-stdin" (func (result (own $input-stream'))))))
  (import "wasi:cli/stdout@0.2.0" (instance $stdout
    (alias outer 1 $output-stream (type $output-stream))
    (export "output-stream" (type $output-stream' (eq $output-stream)))
    (export "get-stdout" (func (result (own $output-stream'))))))
  (import "wasi:cli/stderr@0.2.0" (instance $stderr
    (alias outer 1 $output-stream (type $output-stream))
    (export "output-stream" (type $output-stream' (eq $output-stream)))
    (export "get-stderr" (func (result (own $output-stream'))))))
  (core func $cli-stdin (canon lower (func $stdin "get-stdin")))
  (core func $cli-stdout (canon lower (func $stdout "get-stdout")))
  (core func $cli-stderr (canon lower (func $stderr "get-stderr")))
  (core instance $core-cli
    (export "stdin" (func $cli-stdin))
    (export "stdout" (func $cli-stdout))
    (export "stderr" (func $cli-stderr)))
