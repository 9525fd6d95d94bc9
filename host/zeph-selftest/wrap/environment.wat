  (import "wasi:cli/environment@0.2.0" (instance $environment
    (export "get-environment" (func (result (list (tuple string string)))))
    (export "get-arguments" (func (result (list string))))
    (export "initial-cwd" (func (result (option string))))))
  (import "wasi:cli/exit@0.2.0" (instance $exit
    (export "exit" (func (param "status" (result))))))
  (core func $environment-variables (canon lower (func $environment "get-environment") (memory $memory)
    (realloc $realloc)))
  (core func $environment-arguments (canon lower (func $environment "get-arguments") (memory $memory)
    (realloc $realloc)))
  (core func $environment-exit (canon lower (func $exit "exit")))
  (core instance $core-environment
    (export "variables" (func $environment-variables))
    (export "arguments" (func $environment-arguments))
    (export "exit" (func $environment-exit)))
